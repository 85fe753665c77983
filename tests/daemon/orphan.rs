//! What a daemon that was killed leaves behind, and what a program's exit code uses up.

use crate::daemon::fixture::Fixture;

/// The first writes down who it is and stays for long; the second writes down whether the first is still alive.
const HANDLER: &str = r#"
import os, sys, time

folder = os.environ["LEDGER"]
sys.stdin.read()

def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False

first = os.path.join(folder, "first")
if os.path.exists(first):
    with open(first) as file:
        text = "alive" if alive(int(file.read())) else "gone"
    with open(os.path.join(folder, "second"), "w") as file:
        file.write(text)
else:
    with open(first + ".half", "w") as file:
        file.write(str(os.getpid()))
    os.rename(first + ".half", first)
    time.sleep(600)
"#;

fn definition(fixture: &Fixture, argv: &str, more: &str) -> String {
    let ledger = format!("env = {{ LEDGER = {:?} }}", fixture.path().to_str().expect("a plain name"));
    format!("order = \"arrival\"\n{more}\n[[handler]]\nexec = {argv}\n{ledger}\n")
}

#[test]
fn a_handler_of_a_daemon_that_was_killed_is_gone_before_its_message_is_handed_out_again() {
    let fixture = Fixture::new();
    fixture.write("handler.py", HANDLER);
    fixture.write("orders.toml", &definition(&fixture, "[\"python3\", \"handler.py\"]", ""));
    let daemon = fixture.start();
    daemon.send("orders", r#"{"workflow_id":"w","body":{}}"#);
    // Asking is what lets time pass until the handler has begun.
    daemon.wait_for("/v1/queues/orders", |_| fixture.path().join("first").exists());
    daemon.kill();
    let daemon = fixture.start();
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"].as_u64() == Some(1));
    let seen = std::fs::read_to_string(fixture.path().join("second")).expect("the second has run");
    assert_eq!(seen, "gone", "two handlers of one message at once");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_program_that_asks_for_another_attempt_uses_one_up() {
    let fixture = Fixture::new();
    fixture.write("handler.sh", "echo attempt >> \"$LEDGER/attempts\"\nexit 75\n");
    let limits = "[delivery]\ncount_max = 3\n[retry]\ndelays = [\"5ms\"]\nthen = \"skip\"";
    fixture.write("orders.toml", &definition(&fixture, "[\"sh\", \"handler.sh\"]", limits));
    let daemon = fixture.start();
    daemon.send("orders", r#"{"workflow_id":"w","body":{}}"#);
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["dead_lettered"].as_u64() == Some(1));
    let attempts = std::fs::read_to_string(fixture.path().join("attempts")).expect("it has run");
    assert_eq!(attempts.lines().count(), 3);
    assert_eq!(daemon.stop(), Some(0));
}
