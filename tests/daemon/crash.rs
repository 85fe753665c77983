//! What children see when the daemon is killed again and again: every message, in order, and never two at once.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::daemon::fixture::Fixture;

/// Appends each message to a ledger of its workflow. It fails now and then, and it notices when another handler of its
/// workflow is alive.
const HANDLER: &str = r#"
import json, os, random, sys, time

folder = os.environ["LEDGER"]

def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False

def handle(workflow, position, count):
    busy = os.path.join(folder, workflow + ".busy")
    try:
        with open(busy) as file:
            other = int(file.read() or 0)
        if other != os.getpid() and alive(other):
            with open(os.path.join(folder, "OVERLAP"), "a") as file:
                file.write(f"{workflow} {position}\n")
    except OSError:
        pass
    with open(busy, "w") as file:
        file.write(str(os.getpid()))
    if random.random() < 0.1 and count < 5:
        os.remove(busy)
        return False
    with open(os.path.join(folder, workflow + ".ledger"), "a") as file:
        file.write(f"{position}\n")
    os.remove(busy)
    return True

if len(sys.argv) > 1:
    for line in sys.stdin:
        request = json.loads(line)
        message = request["message"]
        done = handle(message["workflow_id"], message["position"], message["delivery_count"])
        answer = {"id": request["id"], "outcome": "complete" if done else "retry", "retry_after": "5ms"}
        if done:
            del answer["retry_after"]
        print(json.dumps(answer), flush=True)
else:
    sys.stdin.read()
    done = handle(os.environ["SERIATIM_WORKFLOW"], os.environ["SERIATIM_POSITION"],
                  int(os.environ["SERIATIM_DELIVERY_COUNT"]))
    sys.exit(0 if done else 1)
"#;

#[test]
fn a_program_run_for_each_message_sees_every_workflow_in_order_although_the_daemon_is_killed() {
    run_and_kill("exec = [\"python3\", \"handler.py\"]", 12, 10, 6);
}

#[test]
fn a_program_that_runs_on_sees_every_workflow_in_order_although_the_daemon_is_killed() {
    run_and_kill("persistent = [\"python3\", \"handler.py\", \"on\"]\nprocesses = 2", 60, 50, 8);
}

/// Sends messages shuffled, kills the daemon again and again, and then reads the ledgers.
fn run_and_kill(handler: &str, workflows: u64, length: u64, kills: u64) {
    let fixture = Fixture::new();
    fixture.write("handler.py", HANDLER);
    let ledgers = fixture.path().join("ledgers");
    std::fs::create_dir(&ledgers).expect("it is as the test made it");
    let delays = "[retry]\ndelays = [\"5ms\"]\n[delivery]\ncount_max = 1000\nconcurrency = 16\n";
    let env = format!("env = {{ LEDGER = {:?} }}\n", ledgers.to_str().expect("it is as the test made it"));
    fixture.write("orders.toml", &format!("order = \"position\"\n{delays}[[handler]]\n{handler}\n{env}"));
    fixture.complete_and_kill(&shuffled(workflows, length), workflows * length, kills);
    let overlaps = std::fs::read_to_string(ledgers.join("OVERLAP")).unwrap_or_default();
    assert_eq!(overlaps, "", "two handlers of one workflow were alive at once");
    for (name, handled) in read(&ledgers) {
        // At least once: a message whose handler had finished when the daemon was killed comes again, in its place.
        let mut once = handled.clone();
        once.dedup();
        assert_eq!(once, (1..=length).collect::<Vec<_>>(), "{name} was handled as {handled:?}");
    }
}

/// Every position of every workflow, in an order that is not theirs.
fn shuffled(workflows: u64, length: u64) -> String {
    let mut lines = String::new();
    let total = workflows * length;
    // A step that shares no factor with the total visits each place once.
    let step = (total / 3..).find(|step| gcd(*step, total) == 1).expect("it is as the test made it");
    for index in 0..total {
        let place = index * step % total;
        let (workflow, position) = (place / length, place % length + 1);
        writeln!(lines, r#"{{"workflow_id":"w{workflow}","position":{position},"body":{{}}}}"#)
            .expect("it is as the test made it");
    }
    lines
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn read(ledgers: &std::path::Path) -> BTreeMap<String, Vec<u64>> {
    let entries = std::fs::read_dir(ledgers)
        .expect("it is as the test made it")
        .map(|entry| entry.expect("it is as the test made it").path());
    let ledgers = entries.filter(|path| path.extension().is_some_and(|extension| extension == "ledger"));
    ledgers
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("it is as the test made it");
            (
                path.display().to_string(),
                text.lines().map(|line| line.parse().expect("it is as the test made it")).collect(),
            )
        })
        .collect()
}
