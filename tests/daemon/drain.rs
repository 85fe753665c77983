//! A program that outlasts `--drain`: it is asked to end, then killed, and everybody can see why.

use serde_json::Value;
use serde_json::json;

use crate::daemon::fixture::Fixture;

/// Says who it is, and does not listen when it is asked to end.
const STUBBORN: &str = "[[handler]]\nexec = [\"sh\", \"-c\", \"trap 'echo asked >> asked' TERM; echo $$ > pid; \
    echo > up; while true; do sleep 0.05; done\"]\n";

const REASON: &str = "killed: the daemon was stopped, its drain time was over, and the program did not end when it was asked to";

#[test]
fn a_program_that_outlasts_the_drain_is_asked_to_end_then_killed_and_its_attempt_says_why() {
    let fixture = Fixture::new();
    let up = fixture.pipe("up");
    fixture.write("orders.toml", STUBBORN);
    let log = fixture.path().join("log");
    let file = std::fs::File::create(&log).expect("the folder can be written");
    let mut command = fixture.command();
    let daemon = fixture.start_as(command.args(["--drain", "0s"]).env_remove("SERIATIM_LOG").stderr(file));
    daemon.json("POST", "/v1/queues/orders/messages", &json!("a"));
    // Returns once the program has opened it and gone on.
    std::fs::read(up).expect("it is a pipe");
    let workflows = fixture.path().join("workflows");
    let pid = std::fs::read_to_string(workflows.join("pid")).expect("the program has written it");
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(std::fs::read_to_string(workflows.join("asked")).expect("it was asked first"), "asked\n");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "and then killed");
    let log = std::fs::read_to_string(&log).expect("there is a log");
    let said = "terminating a program that still runs: the drain time is over";
    let is_said = |line: &&str| line.contains(" WARN ") && line.contains(said) && line.contains("orders");
    assert_eq!(log.lines().filter(is_said).count(), 1, "{log}");
    fixture.write("orders.toml", "");
    let daemon = fixture.start();
    let shown = daemon.json("GET", "/v1/queues/orders/messages?from=0&limit=10", &Value::Null);
    assert!(shown.to_string().contains(REASON), "{shown}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_drain_that_a_second_signal_cuts_off_ends_with_a_code_that_says_so() {
    let fixture = Fixture::new();
    let up = fixture.pipe("up");
    fixture.write("orders.toml", STUBBORN);
    let log = fixture.path().join("log");
    let mut command = fixture.command();
    let daemon = fixture.start_as(
        command
            .args(["--drain", "1h"])
            .stderr(std::fs::File::create(&log).expect("the folder can be written")),
    );
    daemon.json("POST", "/v1/queues/orders/messages", &json!("a"));
    // Returns once the program has opened it and gone on.
    std::fs::read(up).expect("it is a pipe");
    assert_eq!(daemon.stop_at_once(), Some(3));
    let log = std::fs::read_to_string(&log).expect("there is a log");
    assert!(log.contains("seriatim: cannot stop in order: the drain was cut off"), "{log}");
    // The next start ends what it has left behind.
    fixture.write("orders.toml", "");
    assert_eq!(fixture.start().stop(), Some(0));
}
