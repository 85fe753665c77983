//! The daemon is killed again and again under load: state chains and atomic sends of a handler that runs on, a client
//! that pulls, a sender that sends again what was not answered, and a ledger outside of it all.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;
use crate::fixture::http;

/// Each message finds the state that the one before it has left, and sends a result with its completion.
const HANDLER: &str = r#"
import json, os, random, sys

for line in sys.stdin:
    request = json.loads(line)
    message = request["message"]
    workflow, position, state = message["workflow_id"], message["position"], message.get("state", 0)
    if state != position - 1:
        with open(os.environ["BROKEN"], "a") as file:
            file.write(f"{workflow}: position {position} found state {state}\n")
    answer = {"id": request["id"], "state": position}
    answer["send"] = [{"queue": "results", "workflow_id": workflow, "position": position, "body": {}}]
    if random.random() < 0.05:
        answer = {"id": request["id"], "outcome": "retry", "retry_after": "5ms"}
    print(json.dumps(answer), flush=True)
"#;

/// How often the daemon is killed, unless `SERIATIM_DAEMON_KILLS` says otherwise.
const KILLS: u64 = 10;

const WORKFLOWS: u64 = 12;

/// How long an answer, or the next completion, may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What the threads share.
struct Shared {
    /// Where the daemon listens now.
    address: Mutex<String>,
    is_over: AtomicBool,
}

impl Shared {
    /// A request; nothing when the daemon was killed meanwhile, so that nobody knows what became of it.
    fn ask(&self, path: &str, kind: &str, body: &str) -> Option<(u16, String)> {
        let address = self.address.lock().expect("nobody panics with it").clone();
        let answer =
            http::ask(&address, TIMEOUT, ("POST", path), &[("content-type", kind)], body.as_bytes())?;
        Some((answer.status, answer.text()))
    }

    fn json(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let (status, text) = self.ask(path, "application/json", &body.to_string())?;
        // An answer that broke off is none.
        Some((status, serde_json::from_str(&text).ok()?))
    }
}

/// Ends the threads, also when a test ends badly.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends everything, piece by piece, and each piece until it is answered.
fn send(shared: &Shared, length: u64) {
    for position in (1..=length).rev().collect::<Vec<_>>().chunks(3).rev() {
        let places =
            position.iter().flat_map(|position| (0..WORKFLOWS).map(move |workflow| (workflow, position)));
        let lines: Vec<String> = places
            .map(|(workflow, position)| {
                let id = format!("w{workflow}-{position}");
                json!({ "workflow_id": format!("w{workflow}"), "position": position, "message_id": id, "body": {} })
                    .to_string()
            })
            .collect();
        let lines = lines.join("\n");
        while !shared.is_over.load(Ordering::Relaxed) {
            let answer = shared.ask("/v1/queues/orders/messages", "application/x-ndjson", &lines);
            if let Some((200, text)) = answer {
                assert!(!text.contains("\"error\""), "{text}");
                break;
            }
        }
    }
}

/// What a puller knows of a workflow.
#[derive(Default)]
struct Page {
    /// The last position whose completion was answered.
    completed: u64,
    /// A completion that was never answered.
    unanswered: Option<u64>,
}

impl Page {
    /// Whether this position may come now.
    fn expects(&mut self, position: u64) -> bool {
        if self.unanswered == Some(self.completed + 1) && position == self.completed + 2 {
            self.completed += 1;
        }
        position == self.completed + 1
    }
}

/// Pulls results, and archives each in the transaction that completes it, until all of them are.
fn pull(shared: &Shared, heard: &Sender<()>) {
    let mut pages: BTreeMap<String, Page> = BTreeMap::new();
    while !shared.is_over.load(Ordering::Relaxed) {
        let received = shared.json("/v1/queues/results/receive", &json!({ "max": 8, "wait": "500ms" }));
        let Some((200, received)) = received else { continue };
        for delivery in received["deliveries"].as_array().into_iter().flatten() {
            let text = |name: &str| delivery[name].as_str().unwrap_or_default().to_owned();
            let (workflow, position) =
                (text("workflow_id"), delivery["position"].as_u64().unwrap_or_default());
            let page = pages.entry(workflow.clone()).or_default();
            assert!(page.expects(position), "{workflow}: {position} comes after {}", page.completed);
            let archived = json!({ "queue": "archive", "workflow_id": workflow, "body": position });
            let path = format!("/v1/queues/results/deliveries/{}/complete", text("delivery"));
            match shared.json(&path, &json!({ "send": [archived] })) {
                Some((200, _)) => {
                    page.completed = position;
                    let _ = heard.send(());
                }
                // The daemon was killed: it comes again unless it is completed.
                _ => page.unanswered = Some(position),
            }
        }
    }
}

fn counts(daemon: &Daemon, queue: &str) -> Value {
    daemon.json("GET", &format!("/v1/queues/{queue}"), &Value::Null)["counts"].clone()
}

/// All that was archived, in order.
fn archived(daemon: &Daemon) -> BTreeMap<String, Vec<u64>> {
    let mut archived: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    loop {
        let received = daemon.json("POST", "/v1/queues/archive/receive", &json!({ "max": 64, "wait": "0s" }));
        let deliveries = received["deliveries"].as_array().cloned().unwrap_or_default();
        if deliveries.is_empty() {
            return archived;
        }
        for delivery in &deliveries {
            let workflow = delivery["workflow_id"].as_str().unwrap_or_default().to_owned();
            archived.entry(workflow).or_default().extend(delivery["body"].as_u64());
        }
        let ids: Vec<&Value> = deliveries.iter().map(|delivery| &delivery["delivery"]).collect();
        daemon.json("POST", "/v1/queues/archive/complete", &json!({ "deliveries": ids }));
    }
}

#[test]
fn states_and_what_is_sent_with_completions_survive_every_kill_of_the_daemon() {
    let kills =
        std::env::var("SERIATIM_DAEMON_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let (clock, fixture) = (SystemClock::default(), Fixture::new());
    let length = (kills * 6).div_ceil(WORKFLOWS) + 6;
    let broken = fixture.path().join("broken");
    fixture.write("handler.py", HANDLER);
    let handler =
        "[[handler]]\npersistent = [\"python3\", \"handler.py\"]\nprocesses = 2\nin_flight_max = 4\n";
    let env = format!("env = {{ BROKEN = {:?} }}\n", broken.to_str().expect("a plain name"));
    let limits = "[retry]\ndelays = [\"5ms\"]\n[delivery]\ncount_max = 10000\n";
    fixture.write("orders.toml", &format!("order = \"position\"\n{limits}{handler}{env}"));
    fixture.write("results.toml", &format!("order = \"position\"\n{limits}"));
    fixture.write("archive.toml", "order = \"arrival\"\n");
    let daemon = fixture.start();
    let shared = Shared { address: Mutex::new(daemon.address.clone()), is_over: AtomicBool::new(false) };
    let (heard, completions) = channel();
    let daemon = std::thread::scope(|threads| {
        let (shared, mut daemon) = (&shared, daemon);
        let _ending = Ending(&shared.is_over);
        threads.spawn(move || send(shared, length));
        threads.spawn(move || pull(shared, &heard));
        for round in 0..kills {
            // At once, after one completion, after a few: whatever is under way then.
            for _ in 0..round * 7 % 11 {
                completions.recv_timeout(TIMEOUT).expect("the next completion is answered");
            }
            daemon.kill();
            daemon = fixture.start();
            shared.address.lock().expect("nobody panics with it").clone_from(&daemon.address);
        }
        let total = WORKFLOWS * length;
        daemon.wait_for("/v1/queues/results", |view| view["counts"]["completed"].as_u64() == Some(total));
        for queue in ["orders", "results", "archive"] {
            assert_eq!(
                counts(&daemon, queue)["accepted"].as_u64(),
                Some(total),
                "{queue}: none lost, none doubled"
            );
        }
        daemon
    });
    let archived = archived(&daemon);
    assert_eq!(archived.len() as u64, WORKFLOWS);
    for (workflow, positions) in archived {
        assert_eq!(positions, (1..=length).collect::<Vec<_>>(), "{workflow}");
    }
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(
        std::fs::read_to_string(broken).unwrap_or_default(),
        "",
        "a state is not that of the message before"
    );
    let found = seriatim::store::verify(fixture.path().join("data/seriatim.redb"), |_| {})
        .expect("it can be looked at");
    assert!(found.is_sound(), "{:?}", found.damages);
    let seconds = clock.elapsed().as_secs_f64();
    let line = json!({ "name": "daemon killed", "count": kills, "seconds": seconds, "failures": 0 });
    let _ = writeln!(std::io::stderr().lock(), "reliability: {line}");
}
