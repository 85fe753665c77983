//! What a daemon knows after a restart, and what it does with a completion that is refused.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::api::WireTime;

use crate::daemon::fixture::Fixture;
use crate::daemon::fixture::read_whole;
use crate::fixture::pause_between_looks;

/// How long a message may take until it is handled.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A secret of a webhook.
const SECRET: &str = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\n";

#[test]
fn a_pause_outlives_a_restart() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "[[handler]]\nexec = [\"true\"]\n");
    let daemon = fixture.start();
    daemon.json("POST", "/v1/queues/orders/pause", &Value::Null);
    daemon.kill();
    let daemon = fixture.start();
    assert_eq!(daemon.json("GET", "/v1/queues/orders", &Value::Null)["paused"], true);
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
    daemon.json("POST", "/v1/queues/orders/resume", &Value::Null);
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    assert_eq!(daemon.stop(), Some(0));
    let daemon = fixture.start();
    assert_eq!(daemon.json("GET", "/v1/queues/orders", &Value::Null)["paused"], false);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_restored_backup_keeps_what_was_paused() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    for fixture in [&fixture, &other] {
        fixture.write("orders.toml", "[[handler]]\nexec = [\"true\"]\n");
    }
    let daemon = fixture.start();
    daemon.json("POST", "/v1/queues/orders/pause", &Value::Null);
    let made = daemon.json("POST", "/v1/backup", &json!({ "path": "copy.redb" }));
    assert_eq!(daemon.stop(), Some(0));
    std::fs::create_dir(other.path().join("data")).unwrap();
    std::fs::copy(made["path"].as_str().unwrap(), other.path().join("data/seriatim.redb")).unwrap();
    let daemon = other.start();
    assert_eq!(daemon.json("GET", "/v1/queues/orders", &Value::Null)["paused"], true);
    assert_eq!(daemon.json("GET", "/v1/audit", &Value::Null)["actions"][0]["verb"], "pause_queue");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_pause_that_an_older_daemon_kept_beside_the_store_is_taken_over_once() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "[[handler]]\nexec = [\"true\"]\n");
    assert_eq!(fixture.start().stop(), Some(0));
    let file = fixture.path().join("data/seriatim.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["paused"] = json!(["orders", "gone"]);
    std::fs::write(&file, kept.to_string()).unwrap();
    let daemon = fixture.start();
    assert_eq!(daemon.json("GET", "/v1/queues/orders", &Value::Null)["paused"], true);
    daemon.json("POST", "/v1/queues/orders/resume", &Value::Null);
    assert_eq!(daemon.stop(), Some(0));
    let daemon = fixture.start();
    assert_eq!(daemon.json("GET", "/v1/queues/orders", &Value::Null)["paused"], false);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_message_that_is_forwarded_to_another_daemon_arrives_once_and_is_done() {
    let (from, to) = (Fixture::new(), Fixture::new());
    to.write("invoices.toml", "");
    let receiver = to.start();
    let handler = format!("forward = \"http://{}/invoices\"\nallow_private = true", receiver.address);
    from.write("orders.toml", &format!("[[handler]]\n{handler}\n"));
    let daemon = from.start();
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n");
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    assert_eq!(receiver.json("GET", "/v1/queues/invoices", &Value::Null)["counts"]["accepted"], 1);
    assert_eq!((daemon.stop(), receiver.stop()), (Some(0), Some(0)));
}

#[test]
fn a_failed_attempt_and_a_hold_have_a_line_each_in_the_log_and_no_colours_in_a_file() {
    let fixture = Fixture::new();
    let options = "[retry]\ndelays = [\"1ms\"]\n[delivery]\ncount_max = 2\n";
    fixture.write(
        "orders.toml",
        &format!("{options}[[handler]]\nexec = [\"sh\", \"-c\", \"echo no >&2; exit 1\"]\n"),
    );
    let path = fixture.path().join("log");
    let daemon = fixture.start_logging(&path);
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n");
    daemon.wait_for("/v1/blocked", |view| view["blocked"][0]["cause"] == "held");
    assert_eq!(daemon.stop(), Some(0));
    let log = std::fs::read_to_string(path).unwrap();
    let lines = |word: &str| log.lines().filter(|line| line.contains(word)).collect::<Vec<_>>();
    let (failed, held) = (lines("an attempt failed"), lines("a workflow is held"));
    assert_eq!((failed.len(), held.len()), (1, 1), "{log}");
    for line in [failed[0], held[0]] {
        let is_told = ["queue=\"orders\"", "workflow=\"w\"", "exit code 1: no", "next="];
        assert!(is_told.iter().all(|word| line.contains(word)), "{line}");
    }
    assert!(!log.contains('\u{1b}') && !log.contains("answered a request"), "{log}");
}

#[test]
fn another_key_is_refused_after_a_restart_while_messages_wait() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "key = \"/order\"\n");
    let daemon = fixture.start();
    daemon.json("POST", "/v1/queues/orders/messages", &json!({ "order": "a", "customer": "b" }));
    assert_eq!(daemon.stop(), Some(0));
    fixture.write("orders.toml", "key = \"/customer\"\n");
    let output = fixture.command().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("its key or position cannot change while it stores a message"), "{said}");
    fixture.write("orders.toml", "key = \"/order\"\n");
    assert_eq!(fixture.start().stop(), Some(0));
}

#[test]
fn a_completion_that_is_refused_is_tried_again_after_the_delays_of_the_definition() {
    let fixture = Fixture::new();
    let answer = r#"{\"send\":[{\"queue\":\"nobody\",\"body\":1}]}"#;
    let handler = format!("[[handler]]\nexec = [\"echo\", '{answer}']\n");
    fixture.write("orders.toml", &format!("[retry]\ndelays = [\"1h\"]\n{}", handler.replace("\\", "")));
    let daemon = fixture.start();
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n");
    let blocked = daemon.wait_for("/v1/blocked", |view| view["blocked"][0]["cause"] == "retry");
    let row = &blocked["blocked"][0];
    let at = |field: &str| serde_json::from_value::<WireTime>(row[field].clone()).unwrap().0;
    let daemon_time = daemon.json("GET", "/v1/queues/orders/messages", &Value::Null);
    let accepted = serde_json::from_value::<WireTime>(daemon_time["messages"][0]["accepted_at"].clone());
    let waits = at("next_at").since(accepted.unwrap().0).as_secs();
    assert!((3_600..3_700).contains(&waits), "{waits} s: {row}");
    assert!(row["last_error"].as_str().unwrap().contains("nobody"), "{row}");
    let shown = daemon.json("GET", "/v1/queues/orders", &Value::Null);
    assert_eq!((&shown["retry_delays"], shown["options"]["retry"].get("backoff")), (&json!(["1h"]), None));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_daemon_whose_output_nobody_reads_serves_all_the_same() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    let daemon = fixture.start();
    daemon.send("orders", r#"{"workflow_id":"w","body":{}}"#);
    assert_eq!(daemon.stop(), Some(0));
    fixture.write("orders.toml", "[[handler]]\nexec = [\"touch\", \"handled\"]\n");
    let handled = fixture.path().join("workflows").join("handled");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut daemon = fixture.command().stdout(writer).spawn().expect("the binary starts");
    let clock = SystemClock::default();
    while !handled.exists() {
        assert_eq!(daemon.try_wait().expect("it is a child"), None);
        if clock.elapsed() > TIMEOUT {
            daemon.kill().expect("it can be ended");
            panic!("what was sent is not handled");
        }
        pause_between_looks();
    }
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be asked");
    assert_eq!(daemon.wait().expect("it is a child").code(), Some(0));
}

#[test]
fn a_start_that_fails_hands_nothing_out() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    let daemon = fixture.start();
    for workflow in 0..50 {
        daemon.send("orders", &format!("{{\"workflow_id\":\"w{workflow}\",\"body\":1}}\n"));
    }
    assert_eq!(daemon.stop(), Some(0));
    let handler =
        "[[handler]]\nexec = [\"sh\", \"-c\", \"echo $SERIATIM_DELIVERY_COUNT >> \\\"$0\\\"\", \"COUNTS\"]\n";
    let counts = fixture.path().join("counts");
    fixture.write("orders.toml", &handler.replace("COUNTS", counts.to_str().expect("a plain path")));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = fixture.command().args(["--amqp", &address]).output().expect("it can be started");
    assert!(!output.status.success() && !counts.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let daemon = fixture.start();
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 50);
    assert_eq!(daemon.stop(), Some(0));
    let counts = std::fs::read_to_string(counts).expect("handlers wrote it");
    assert_eq!(counts, "1\n".repeat(50), "nothing was attempted before");
}

#[test]
fn handlers_that_could_not_start_when_their_queue_was_resumed_start_once_they_can() {
    let fixture = Fixture::new();
    let secret = fixture.path().join("secret");
    std::fs::write(&secret, SECRET).expect("the folder can be written");
    let receiver = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = receiver.local_addr().expect("an address");
    let handler = format!("[[handler]]\nhttp = \"http://{address}/\"\nallow_private = true\n");
    fixture.write("orders.toml", &format!("{handler}secret_file = {:?}\n", secret.display().to_string()));
    let daemon = fixture.start();
    daemon.json("POST", "/v1/queues/orders/pause", &Value::Null);
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n");
    std::fs::remove_file(&secret).expect("the folder can be written");
    daemon.json("POST", "/v1/queues/orders/resume", &Value::Null);
    std::fs::write(&secret, SECRET).expect("the folder can be written");
    let answer = move || {
        let (mut request, _) = receiver.accept().expect("the handler posts");
        read_whole(&mut request);
        request.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("an answer");
    };
    // If nobody asks, it ends with the tests.
    std::thread::Builder::new().spawn(answer).expect("a thread");
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    assert_eq!(daemon.stop(), Some(0));
}
