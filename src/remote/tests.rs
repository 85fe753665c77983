//! What the client makes of those who answer in the daemon's place, and of those who do not answer.

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::api::SendEnvelope;
use crate::remote::Remote;
use crate::remote::RemoteError;

/// A connection that breaks before anything is answered.
const BROKEN: &str = "";

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
