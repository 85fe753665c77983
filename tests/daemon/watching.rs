//! What operators are given to watch a daemon with fits the daemon.

use std::collections::BTreeSet;
use std::process::Command;

use crate::daemon::fixture::Fixture;
use crate::fixture::skip::skip;

const RULES: &str = include_str!("../../docs/watching/alerts.yml");
const DASHBOARD: &str = include_str!("../../docs/watching/dashboard.json");
const OPERATIONS: &str = include_str!("../../docs/operations.md");
const WATCHING: &str = include_str!("../../docs/watching.md");

/// What is on the page only once it has happened.
const LATER: &[&str] = &[
    "seriatim_attempts",
    "seriatim_handler_duration_seconds",
    "seriatim_source_failing",
    "seriatim_workflows_blocked",
];

/// Metrics that a text names, without what a series adds to the name of its family.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let names = words.filter(|word| word.starts_with("seriatim_"));
    let family = |name: &str| {
        let endings = ["_bucket", "_count", "_sum", "_total"];
        endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name).to_owned()
    };
    names.map(family).collect()
}

#[test]
fn every_metric_of_the_alert_rules_and_the_dashboard_is_one_that_a_daemon_tells() {
    let fixture = Fixture::new();
    let daemon = fixture.start_with(&["--amqp", "localhost:0"]);
    let (status, page) = daemon.ask("GET", "/metrics", &[], b"");
    assert_eq!(status, 200, "{page}");
    let told: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let watched: BTreeSet<String> = named(RULES).union(&named(DASHBOARD)).cloned().collect();
    assert!(watched.len() > 12, "{watched:?}");
    for metric in &watched {
        assert!(
            told.contains(metric.as_str()) || LATER.contains(&metric.as_str()),
            "{metric} is not in {page}"
        );
        assert!(OPERATIONS.contains(metric.as_str()), "{metric} is not documented");
    }
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn every_alert_says_what_to_do_in_a_section_of_its_own() {
    let sections: BTreeSet<&str> = WATCHING.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let runbooks: Vec<&str> =
        RULES.lines().filter_map(|line| line.trim().strip_prefix("runbook: docs/watching.md#")).collect();
    assert_eq!(runbooks.len(), RULES.matches("- alert: ").count());
    for runbook in runbooks {
        assert!(sections.iter().any(|section| section.to_lowercase() == runbook), "{runbook}");
    }
    let alerts = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(WATCHING.contains(alert), "{alert} is not explained");
    }
}

#[test]
fn the_alert_rules_fire_for_what_they_are_for() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watching");
    let run = |arguments: [&str; 3]| Command::new("promtool").args(arguments).current_dir(folder).output();
    let Ok(checked) = run(["check", "rules", "alerts.yml"]) else {
        return skip("the alert rules", "there is no promtool");
    };
    let tested = run(["test", "rules", "alerts.test.yml"]).expect("it was there before");
    for output in [checked, tested] {
        let words = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&words));
    }
}
