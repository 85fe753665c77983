//! What a person is told: a line at the beginning, a bar on the way, the result at the end.

use indicatif::ProgressBar;
use indicatif::ProgressStyle;

use crate::demo::replay::plan::Handling;
use crate::demo::replay::plan::ReplayPlan;
use crate::demo::replay::report::Report;

/// The story of a replay. With `--json` only the result is told on stdout.
pub(crate) struct Story {
    bar: ProgressBar,
    json: bool,
    handling: Handling,
}

impl Story {
    pub(crate) fn begin(plan: &ReplayPlan, changes: usize, early: usize) -> Story {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} changes, {per_sec}, {eta} left");
        let bar = ProgressBar::new(changes as u64)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let story = Story { bar, json: plan.json, handling: plan.handling };
        story.say(&format!(
            "replaying {}: {changes} changes, {early} arrive early",
            plan.repository.display()
        ));
        if let Some(control) = story.control() {
            story.say(control);
        }
        story
    }

    fn control(&self) -> Option<&'static str> {
        match self.handling {
            Handling::Ordered => None,
            Handling::AsTheyArrive => {
                Some("control: handled as they arrive, as a queue without positions does")
            }
            Handling::RetryAtBack => Some("control: what fails goes to the back, as in an ordinary queue"),
        }
    }

    pub(crate) fn go_on(&self, applied: u64) {
        self.bar.set_position(applied);
    }

    pub(crate) fn report_crash(&self, crash: u32, applied: u64) {
        self.say(&format!("kill -9 number {crash} after {applied} changes; going on from the file"));
    }

    pub(crate) fn end(&mut self, report: &Report) {
        self.bar.finish_and_clear();
        if self.json {
            let line = serde_json::to_string(report).expect("a report has no part that is not JSON");
            println!("{line}");
            return;
        }
        let Report { changes, workflows, deferred_max, failures_injected, crashes, .. } = report;
        self.say(&format!(
            "failed and retried {failures_injected}, deferred at once {deferred_max}, crashes {crashes}"
        ));
        self.say(&format!(
            "applied {changes} changes to {workflows} paths in {:.1} s, {} a second",
            report.seconds, report.changes_per_second
        ));
        self.say(&format!("wrong predecessors: {}", report.wrong_predecessors));
        self.say(match (report.tree_equal, report.complete) {
            (true, true) => "end state == HEAD tree: yes",
            (true, false) => "end state == HEAD tree: yes, but not every change was applied once",
            (false, _) => "end state == HEAD tree: NO",
        });
        if !report.is_right() && self.control().is_some() {
            self.say(
                "this is what the control is for: without --no-reorder and --retry-at-back it is 0 and yes",
            );
        }
    }

    /// Says a line to a person; with `--json` stdout is for the result alone.
    pub(crate) fn say(&self, line: &str) {
        if !self.json {
            self.bar.suspend(|| println!("{line}"));
        }
    }
}
