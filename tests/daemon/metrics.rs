//! The page of metrics, of a daemon with all its endpoints.

use std::io::Write;
use std::net::TcpStream;

use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;
use crate::daemon::fixture::read_whole;

#[test]
fn requests_and_connections_of_storage_queues_are_on_the_page_when_they_are_served() {
    let fixture = Fixture::new();
    let daemon = fixture.start_with(&["--storage-queue", "localhost:0", "--amqp", "localhost:0"]);
    let address = daemon.storage_queue.as_ref().expect("storage queues are served");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut client = TcpStream::connect(address).unwrap();
    assert_eq!(ask(&mut client, "PUT /shop/orders"), "HTTP/1.1 201");
    assert_eq!(ask(&mut client, "PUT /shop/orders"), "HTTP/1.1 204");
    assert_eq!(ask(&mut client, "GET /shop/invoices/messages"), "HTTP/1.1 404");
    let page = page(&daemon);
    for line in [
        "seriatim_storage_queue_connections 1",
        "seriatim_storage_queue_requests_total{operation=\"create_queue\",status=\"2xx\"} 2",
        "seriatim_storage_queue_requests_total{operation=\"get_messages\",status=\"4xx\"} 1",
        "seriatim_storage_queue_requests_total{operation=\"get_messages\",status=\"5xx\"} 0",
        "seriatim_amqp_connections 0",
    ] {
        assert!(page.lines().any(|known| known == line), "{line} is not in {page}");
    }
    drop(client);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn an_endpoint_that_is_off_is_not_on_the_page() {
    let fixture = Fixture::new();
    let daemon = fixture.start();
    let page = page(&daemon);
    assert!(page.contains("seriatim_store_bytes"), "{page}");
    assert!(!page.contains("storage_queue") && !page.contains("amqp"), "{page}");
    assert_eq!(daemon.stop(), Some(0));
}

fn page(daemon: &Daemon) -> String {
    let (status, page) = daemon.ask("GET", "/metrics", &[], b"");
    assert_eq!(status, 200, "{page}");
    page
}

/// Asks over a connection that stays open; the version and the status of the answer.
fn ask(client: &mut TcpStream, what: &str) -> String {
    let request = format!("{what} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n");
    client.write_all(request.as_bytes()).expect("it listens");
    let answer = String::from_utf8_lossy(&read_whole(client)).into_owned();
    answer.split(' ').take(2).collect::<Vec<_>>().join(" ")
}
