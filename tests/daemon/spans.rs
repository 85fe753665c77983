//! Spans reach a collector.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;

use serde_json::Value;

use crate::house::House;

#[test]
fn the_span_of_a_handler_reaches_the_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let heard = std::thread::Builder::new().spawn(move || hear(&listener)).unwrap();
    let house = House::new();
    house.write("orders.toml", "[[handler]]\nexec = [\"true\"]\n");
    let daemon = house.start_as(house.command().env("OTEL_EXPORTER_OTLP_ENDPOINT", collector));
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    assert_eq!(daemon.stop(), Some(0));
    let heard = heard.join().unwrap();
    assert!(heard.starts_with("POST /v1/traces "), "{heard}");
    for word in ["handle", "orders", "attempt"] {
        assert!(heard.contains(word), "{word} is not in {heard}");
    }
}

/// The first request of an exporter, head and body as far as they are text.
fn hear(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().expect("the exporter comes");
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).expect("a request");
        heard.extend_from_slice(&piece[..read]);
        let Some(end) = heard.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&heard[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if read == 0 || heard.len() >= end + 4 + length.unwrap_or(0) {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).expect("the exporter listens");
            return String::from_utf8_lossy(&heard).into_owned();
        }
    }
}
