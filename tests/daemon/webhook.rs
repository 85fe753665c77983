//! A real receiver of webhooks on loopback, while the daemon is killed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::daemon::fixture::Fixture;

/// What a receiver was sent: for each workflow the positions it took, and every ID it ever saw for each place.
#[derive(Default)]
struct Ledger {
    taken: BTreeMap<String, Vec<u64>>,
    ids: BTreeMap<(String, u64), String>,
    seen: u64,
}

#[test]
fn a_webhook_receiver_sees_every_workflow_in_order_although_it_fails_and_the_daemon_is_killed() {
    let (workflows, length) = (10_u64, 12_u64);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let receiving = ledger.clone();
    // It ends with the test's process.
    std::thread::Builder::new().spawn(move || receive(&listener, &receiving)).unwrap();

    let fixture = Fixture::new();
    fixture.write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    fixture.write(
        "orders.toml",
        &format!(
            "order = \"position\"\n[retry]\ndelays = [\"5ms\"]\n[delivery]\ncount_max = 1000\n[[handler]]\n\
             http = \"http://127.0.0.1:{port}/orders\"\nallow_private = true\nsecret_file = \"secret\"\n"
        ),
    );
    let mut lines = String::new();
    for position in (1..=length).rev() {
        for workflow in 0..workflows {
            writeln!(lines, r#"{{"workflow_id":"w{workflow}","position":{position},"body":{{}}}}"#).unwrap();
        }
    }
    fixture.complete_and_kill(&lines, workflows * length, 4);

    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(ledger.taken.len() as u64, workflows);
    for (workflow, taken) in &ledger.taken {
        let mut once = taken.clone();
        once.dedup();
        assert_eq!(once, (1..=length).collect::<Vec<_>>(), "{workflow} was taken as {taken:?}");
    }
}

fn receive(listener: &TcpListener, ledger: &Arc<Mutex<Ledger>>) {
    for stream in listener.incoming() {
        let (stream, ledger) = (stream.expect("it is as the test made it"), ledger.clone());
        // Whoever is killed leaves a broken connection behind.
        std::thread::Builder::new()
            .spawn(move || drop(converse(stream, &ledger)))
            .expect("it is as the test made it");
    }
}

fn converse(stream: TcpStream, ledger: &Mutex<Ledger>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut headers = BTreeMap::new();
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
                None => break,
            };
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        let status = note(&headers, &mut ledger.lock().unwrap_or_else(PoisonError::into_inner));
        write!(writer, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")?;
    }
}

/// Takes a post, or fails every seventh.
fn note(headers: &BTreeMap<String, String>, ledger: &mut Ledger) -> &'static str {
    let place = (
        headers["seriatim-workflow-id"].clone(),
        headers["seriatim-position"].parse().expect("it is as the test made it"),
    );
    assert!(headers["webhook-signature"].starts_with("v1,"), "{headers:?}");
    let id = headers["webhook-id"].clone();
    let first = ledger.ids.entry(place.clone()).or_insert_with(|| id.clone());
    assert_eq!(*first, id, "the ID stays the same over attempts");
    ledger.seen += 1;
    match ledger.seen % 7 {
        0 => "503 Service Unavailable",
        _ => {
            ledger.taken.entry(place.0).or_default().push(place.1);
            "204 No Content"
        }
    }
}
