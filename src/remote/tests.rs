//! What the client makes of those who answer in the daemon's place, and of those who do not answer.

use bytes::Bytes;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::api::SendEnvelope;
use crate::api::WireTime;
use crate::clock::Timestamp;
use crate::remote::Remote;
use crate::remote::RemoteError;

/// An empty answer, as a daemon gives it.
const NOTHING: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// What a proxy says that has not reached the daemon.
const BAD_GATEWAY: &str =
    "HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 14\r\n\r\n<p>no luck</p>";

/// A connection that breaks before anything is answered.
const BROKEN: &str = "";

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Who answers the connections that come with these, each with one, and tells what was asked.
struct Scripted {
    remote: Remote,
    asked: JoinHandle<Vec<String>>,
}

impl Scripted {
    async fn new(answers: &[&str]) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remote = Remote::connect(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        let asked = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                asked.push(read_request(&mut socket).await);
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        Scripted { remote, asked }
    }

    /// What it was asked, once it has given all its answers.
    async fn asked(self) -> Vec<String> {
        self.asked.await.unwrap()
    }
}

/// A request with its body.
async fn read_request(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut bytes = [0; 4096];
        let read = socket.read(&mut bytes).await.unwrap();
        assert!(read > 0, "it ends in its midst: {text:?}");
        text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}

fn message() -> SendEnvelope {
    SendEnvelope { body_text: Some("paid".to_owned()), ..SendEnvelope::default() }
}

/// Every call that has nothing, or little, to read in its answer: its name, and what became of it.
async fn calls(remote: &Remote) -> Vec<(&'static str, Result<(), RemoteError>)> {
    let nothing = json!({});
    let mut calls = vec![
        ("cancel", remote.cancel("q", 1).await),
        ("cancel_and_void", remote.cancel_and_void("q", 1).await),
        ("reschedule", remote.reschedule("q", 1, WireTime(Timestamp::from_millis(0))).await),
        ("delete_queue", remote.delete_queue("q").await),
        ("pause", remote.pause("q").await),
        ("unpause", remote.unpause("q").await),
        ("set_state", remote.set_state("q", "w", Some(Bytes::from_static(b"a"))).await),
        ("clear_state", remote.set_state("q", "w", None).await),
        ("health", remote.health().await),
        ("ready", remote.ready().await),
        ("clock", remote.clock().await.map(drop)),
        ("settle_run", remote.settle_run("q", "r", &nothing).await.map(drop)),
        ("renew_run", remote.renew_run("q", "r").await.map(drop)),
    ];
    for verb in ["complete", "abandon", "defer", "dead_letter", "release", "renew"] {
        calls.push((verb, remote.settle("q", "d", verb, &nothing).await.map(drop)));
    }
    calls
}

#[tokio::test]
async fn whoever_answers_in_the_place_of_a_daemon_has_done_nothing() {
    let accepted = "HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for stranger in [ok("<html>it works</html>").as_str(), ok("{}").as_str(), ok("").as_str(), accepted] {
        let scripted = Scripted::new(&[stranger; 19]).await;
        for (call, answer) in calls(&scripted.remote).await {
            assert!(matches!(answer, Err(RemoteError::Malformed { .. })), "{call} of {stranger}: {answer:?}");
        }
        assert_eq!(scripted.asked().await.len(), 19, "none of them is asked again");
    }
}

#[tokio::test]
async fn what_a_daemon_says_is_understood() {
    let receipts = ok("{\"receipts\":[{\"status\":\"accepted\",\"sequence_number\":7}]}");
    let renewed = ok("{\"locked_until\":\"2027-01-31T12:00:00Z\",\"lock_ms\":60000}");
    let (healthy, ready) = (ok("ok\n"), ok("ready\n"));
    let answers = [NOTHING, &receipts, &renewed, NOTHING, &receipts, &renewed, NOTHING, &healthy, &ready];
    let scripted = Scripted::new(&answers).await;
    let (remote, nothing) = (&scripted.remote, json!({}));
    assert!(remote.settle("q", "d", "complete", &nothing).await.unwrap().is_null());
    let completed = remote.settle("q", "d", "complete", &nothing).await.unwrap();
    assert_eq!(completed["receipts"][0]["sequence_number"], 7);
    let until = remote.settle("q", "d", "renew", &nothing).await.unwrap();
    assert_eq!(until["locked_until"], "2027-01-31T12:00:00Z");
    assert!(remote.settle_run("q", "r", &nothing).await.unwrap().is_null());
    assert_eq!(remote.settle_run("q", "r", &nothing).await.unwrap(), completed);
    assert_eq!(remote.renew_run("q", "r").await.unwrap(), until);
    remote.cancel("q", 1).await.unwrap();
    remote.health().await.unwrap();
    remote.ready().await.unwrap();
}

#[tokio::test]
async fn what_was_never_sent_is_told_from_what_was_not_answered() {
    let scripted = Scripted::new(&[BROKEN]).await;
    let unanswered = scripted.remote.pause("q").await.unwrap_err();
    assert!(!unanswered.is_unsent(), "{unanswered}");
    scripted.asked.await.unwrap();
    // Nobody listens there any more.
    let unreached = scripted.remote.pause("q").await.unwrap_err();
    assert!(matches!(unreached, RemoteError::Unreachable { .. }), "{unreached}");
    assert!(unreached.is_unsent(), "{unreached}");
    let misused = scripted.remote.send_once("q", "k\r\n", &[message()]).await.unwrap_err();
    assert!(misused.is_unsent(), "{misused}");
}

#[tokio::test]
async fn what_a_daemon_does_once_is_asked_again_when_the_answer_is_lost() {
    let completed = ok("{\"completed\":1,\"results\":[{\"delivery\":\"d\"}]}");
    let sent = ok("{\"sequence_number\":7,\"status\":\"accepted\"}\n");
    let published = ok("{\"copies\":[]}");
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
    let answers = [
        [BROKEN, NOTHING],
        [BAD_GATEWAY, NOTHING],
        [cut, &completed],
        [BROKEN, &sent],
        [BAD_GATEWAY, &published],
    ];
    let scripted = Scripted::new(answers.as_flattened()).await;
    let (remote, nothing) = (&scripted.remote, json!({}));
    remote.settle("q", "d", "complete", &nothing).await.unwrap();
    remote.settle_run("q", "r", &nothing).await.unwrap();
    assert_eq!(remote.complete_all("q", &["d".to_owned()]).await.unwrap().completed, 1);
    let receipts = remote.send_once("q", "key", &[message()]).await.unwrap();
    assert_eq!(receipts[0].sequence_number, Some(7));
    assert!(remote.publish_once("t", "key", &[message()]).await.unwrap().copies.is_empty());
    let asked = scripted.asked().await;
    for pair in asked.chunks(2) {
        assert_eq!(pair[0], pair[1], "the same is asked again, with its key");
    }
}

#[tokio::test]
async fn what_would_be_done_twice_is_asked_once() {
    let scripted = Scripted::new(&[BROKEN, BAD_GATEWAY, BROKEN]).await;
    let remote = &scripted.remote;
    assert!(matches!(remote.send("q", &message()).await, Err(RemoteError::Unreachable { .. })));
    assert!(matches!(remote.send("q", &message()).await, Err(RemoteError::Malformed { .. })));
    assert!(matches!(remote.publish("t", &[message()]).await, Err(RemoteError::Unreachable { .. })));
    assert_eq!(scripted.asked().await.len(), 3);
}

// Only the client of NATS brings a clock of tokio's that can be moved.
#[cfg(feature = "cluster")]
#[tokio::test]
async fn who_does_not_come_back_is_asked_for_a_while_and_what_was_sent_before_may_have_been_done() {
    use crate::limits;

    let Scripted { remote, asked } = Scripted::new(&[BROKEN]).await;
    let nothing = json!({});
    let most = limits::REMOTE_REPEAT_FOR + limits::REMOTE_CONNECT_MAX;
    let asking = tokio::time::timeout(most, remote.settle("q", "d", "complete", &nothing));
    let vanishing = async {
        assert_eq!(asked.await.unwrap().len(), 1);
        tokio::time::pause();
    };
    let (failed, ()) = tokio::join!(asking, vanishing);
    let failed = failed.expect("it ends").unwrap_err();
    assert!(matches!(failed, RemoteError::Unreachable { .. }), "{failed}");
    assert!(!failed.is_unsent(), "the first of them was sent: {failed}");
}
