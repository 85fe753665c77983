//! Spans reach a collector.

use std::io::Write;
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::Value;

use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;
use crate::daemon::fixture::read_whole;

/// What the body of an export begins with in front of the ID of a span's trace, its own, and its parent's: field and length.
const TRACE_ID: [u8; 2] = [0x0a, 16];
const SPAN_ID: [u8; 2] = [0x12, 8];
const PARENT_ID: [u8; 2] = [0x22, 8];

const SENDERS_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SENDERS_SPAN: &str = "00f067aa0ba902b7";

/// A collector that hears one request.
struct Collector {
    address: String,
    heard: JoinHandle<Vec<u8>>,
}

impl Collector {
    fn listen() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let heard = std::thread::Builder::new().spawn(move || hear(&listener)).expect("a thread");
        Collector { address, heard }
    }

    fn start(&self, fixture: &Fixture) -> Daemon {
        fixture.start_as(fixture.command().env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.address))
    }

    fn heard(self) -> Vec<u8> {
        self.heard.join().expect("the exporter came")
    }
}

#[test]
fn the_span_of_a_handler_reaches_the_collector() {
    let collector = Collector::listen();
    let fixture = Fixture::new();
    fixture.write("orders.toml", "[[handler]]\nexec = [\"true\"]\n");
    let daemon = collector.start(&fixture);
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    assert_eq!(daemon.stop(), Some(0));
    let heard = collector.heard();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.starts_with("POST /v1/traces "), "{heard}");
    for word in ["handle", "orders", "attempt"] {
        assert!(heard.contains(word), "{word} is not in {heard}");
    }
}

#[test]
fn the_span_of_a_handler_is_a_child_of_the_senders_and_the_parent_of_its_programs() {
    let (seen, heard) = handled(&format!("00-{SENDERS_TRACE}-{SENDERS_SPAN}-01"));
    let parts: Vec<&str> = seen.split('-').collect();
    let ["00", SENDERS_TRACE, own, "01"] = parts[..] else { panic!("{seen} is not of the sender's trace") };
    assert_ne!(own, SENDERS_SPAN);
    assert!(has(&heard, TRACE_ID, SENDERS_TRACE) && has(&heard, SPAN_ID, own));
    assert!(has(&heard, PARENT_ID, SENDERS_SPAN));
}

#[test]
fn a_trace_that_is_none_is_not_continued_and_another_begins_with_the_handler() {
    let (seen, heard) = handled("00-1-2-01");
    let parts: Vec<&str> = seen.split('-').collect();
    let ["00", trace, own, "01"] = parts[..] else { panic!("{seen} is no trace") };
    assert!(has(&heard, TRACE_ID, trace) && has(&heard, SPAN_ID, own));
}

/// What the program of a handler sees of the trace of a message that was sent with this one, and what the collector hears.
fn handled(trace: &str) -> (String, Vec<u8>) {
    let collector = Collector::listen();
    let fixture = Fixture::new();
    fixture
        .write("orders.toml", "[[handler]]\nexec = [\"sh\", \"-c\", \"printf %s $TRACEPARENT > ../seen\"]\n");
    let daemon = collector.start(&fixture);
    let (status, text) = daemon.ask("POST", "/v1/queues/orders/messages", &[("traceparent", trace)], b"a");
    assert_eq!(status, 201, "{text}");
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    assert_eq!(daemon.stop(), Some(0));
    let seen = std::fs::read_to_string(fixture.path().join("seen")).expect("the program has written it");
    (seen, collector.heard())
}

/// Whether a field with this ID was heard.
fn has(heard: &[u8], field: [u8; 2], id: &str) -> bool {
    let bytes = [&field[..], &bytes_of(id)[..]].concat();
    heard.windows(bytes.len()).any(|part| part == bytes)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// The first request of an exporter, head and body.
fn hear(listener: &TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().expect("the exporter comes");
    let heard = read_whole(&mut stream);
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(answer).expect("the exporter listens");
    heard
}
