//! What comes to an address of the endpoint: AMQP, TLS, WebSockets, and what is none of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::amqp::Value;
use crate::id::SequenceNumber;
use crate::inbound::tls::TlsFiles;
use crate::intake::Intake;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::service_bus::accepted_connection::tests::accepted;
use crate::service_bus::arrival::Arrivals;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::meters::Meters;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::shared::Owners;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::websockets::as_bytes;
use crate::service_bus::tests::websockets::websocket;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::described;
use crate::testing::ManualClock;
use crate::tls_connector::tls_connector;

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/key.pem");
const HEADER: &[u8] = b"AMQP\0\x01\0\0";

/// How long anything may take before a test gives up.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) fn certificate() -> Arc<ArcSwapOption<ServerConfig>> {
    let files = TlsFiles { certificate: CERTIFICATE.into(), key: KEY.into(), client_ca: None };
    Arc::new(ArcSwapOption::new(Some(files.read().unwrap())))
}

/// An endpoint at one address, with a certificate.
pub(super) fn with_tls() -> EndpointOptions {
    let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    EndpointOptions { tls: certificate(), ..options }
}

pub(super) async fn host(options: EndpointOptions) -> Host {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    Host::with(engine, clock, options).await
}

/// TLS over a connection.
pub(super) async fn encrypted(stream: TcpStream) -> TlsStream<TcpStream> {
    let tls = tls_connector(Some(CERTIFICATE.as_ref())).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    tls.connect(name, stream).await.unwrap()
}

/// A client for each way to the endpoint at an address.
async fn every_way(address: SocketAddr) -> [(&'static str, Wire); 4] {
    let stream = async || TcpStream::connect(address).await.unwrap();
    let plain_socket = websocket(stream().await, "AMQPWSB10").await.unwrap();
    let encrypted_socket = websocket(encrypted(stream().await).await, "amqp").await.unwrap();
    [
        ("AMQP", Wire::over(stream().await).opened().await),
        ("AMQP in TLS", Wire::over(encrypted(stream().await).await).opened().await),
        ("a WebSocket", Wire::over(as_bytes(plain_socket)).opened().await),
        ("a WebSocket in TLS", Wire::over(as_bytes(encrypted_socket)).opened().await),
    ]
}

/// All that is heard until the endpoint ends the connection.
async fn rest(mut stream: impl AsyncReadExt + Unpin) -> Vec<u8> {
    let mut heard = Vec::new();
    // A stream that is reset, or TLS that ends without a word, has ended too.
    let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut heard)).await.expect("it ends");
    heard
}

#[tokio::test]
async fn each_address_takes_messages_of_900_kb_over_amqp_tls_and_websockets_both_ways() {
    let mut options = with_tls();
    options.addresses.push(SocketAddr::from(([127, 0, 0, 1], 0)));
    let host = host(options).await;
    host.queue("q", QueueOptions::default()).await;
    for address in host.addresses.clone() {
        for (way, mut client) in every_way(address).await {
            let body: Vec<u8> = (0..900_000_u32).map(|index| index.to_le_bytes()[1]).collect();
            client.attach_sender(0, vec![Value::from("q")]).await;
            client.transfer(0, 0, &data(&body)).await;
            assert_eq!(client.another_answer().await.state(4), ACCEPTED, "{way}");
            client.attach_receiver(1, Source::of("q").deleting()).await;
            client.credit(1, 0, 1, false).await;
            let message = client.answer(1).await;
            assert!(message.ends_with(&body), "{way}: {} bytes", message.len());
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_quiet_for_long_is_told_what_comes_over_every_way() {
    let host = host(with_tls()).await;
    let queue = host.queue("q", QueueOptions::default()).await;
    for (way, mut client) in every_way(host.addresses[0]).await {
        client.attach_receiver(0, Source::of("q")).await;
        client.credit(0, 0, 2, false).await;
        for (number, body) in [(0, "x"), (1, "y")] {
            queue.send(Message::new(body)).await.unwrap();
            assert_eq!(client.another_answer().await.body(), body, "{way}");
            assert_eq!(client.settle(number, described(ACCEPTED, Vec::new())).await.state(4), ACCEPTED);
            host.clock.advance(limits::AMQP_WRITE_TIMEOUT + Duration::from_secs(5));
        }
        client.detach(0).await;
    }
}

#[tokio::test]
async fn what_is_deleted_by_being_sent_is_gone_when_the_link_has_ended_over_every_way() {
    let host = host(with_tls()).await;
    let queue = host.queue("q", QueueOptions::default()).await;
    for (way, mut client) in every_way(host.addresses[0]).await {
        queue.send(Message::new("x")).await.unwrap();
        client.attach_receiver(0, Source::of("q").deleting()).await;
        client.credit(0, 0, 1, false).await;
        assert_eq!(client.another_answer().await.body(), "x", "{way}");
        client.detach(0).await;
        assert!(queue.peek(SequenceNumber::new(0), 1).await.unwrap().is_empty(), "{way}");
    }
}

#[tokio::test]
async fn who_says_nothing_is_closed() {
    let options = EndpointOptions { arrival_max: Duration::from_millis(50), ..with_tls() };
    let host = host(options).await;
    assert_eq!(rest(host.stream().await).await, b"");
    assert_eq!(rest(encrypted(host.stream().await).await).await, b"", "nothing inside TLS");
    let mut begun = host.stream().await;
    begun.write_all(&[0x16]).await.unwrap();
    assert_eq!(rest(begun).await, b"", "a handshake that does not go on");
}

#[tokio::test]
async fn who_says_what_nobody_understands_is_closed() {
    let host = host(with_tls()).await;
    let says = async |bytes: &[u8]| {
        let mut stream = host.stream().await;
        stream.write_all(bytes).await.unwrap();
        rest(stream).await
    };
    assert_eq!(&says(&[0xff; 8]).await[..4], b"AMQP", "it hears what is expected");
    assert!(says(b"GARBAGE\r\n\r\n").await.starts_with(b"HTTP/1.1 400"));
    assert!(
        says(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await
            .starts_with(b"HTTP/1.1 404")
    );
    // An alert of TLS, or nothing.
    assert!(says(&[0x16; 64]).await.len() <= 7);
    let mut inside = encrypted(host.stream().await).await;
    inside.write_all(&[0xff; 8]).await.unwrap();
    assert_eq!(&rest(inside).await[..4], b"AMQP");
}

#[tokio::test]
async fn without_a_certificate_tls_is_closed() {
    let host = host(EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))).await;
    let mut stream = host.stream().await;
    stream.write_all(&[0x16, 3, 1]).await.unwrap();
    assert_eq!(rest(stream).await, b"");
}

#[tokio::test]
async fn another_certificate_is_shown_to_who_comes_after_it() {
    let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let tls = options.tls.clone();
    let host = host(options).await;
    tls.store(certificate().load_full());
    Wire::over(encrypted(host.stream().await).await).opened().await;
}

#[tokio::test]
async fn each_connection_counts_from_when_it_is_accepted() {
    let host = host(EndpointOptions { connections_max: 2, ..with_tls() }).await;
    let silent = host.stream().await;
    let socket = websocket(host.stream().await, "AMQPWSB10").await.unwrap();
    let mut client = Wire::over(as_bytes(socket)).opened().await;
    assert_eq!(rest(host.stream().await).await, b"", "there are as many as there may be");
    drop(silent);
    // The place of who has left is free a moment later.
    let coming = async {
        loop {
            let mut stream = host.stream().await;
            let _ = stream.write_all(HEADER).await;
            let mut header = [0; 8];
            if stream.read_exact(&mut header).await.is_ok() {
                return stream;
            }
        }
    };
    let _other = tokio::time::timeout(TIMEOUT, coming).await.expect("there is a place again");
    assert_eq!(rest(host.stream().await).await, b"", "a WebSocket has its place still");
    host.queue("q", QueueOptions::default()).await;
    client.attach_sender(0, vec![Value::from("q")]).await;
}

#[tokio::test]
async fn every_connection_is_told_when_the_endpoint_stops() {
    let host = host(with_tls()).await;
    let _silent = host.stream().await;
    let clients = every_way(host.addresses[0]).await;
    let stopping = tokio::spawn(host.stop());
    for (way, mut client) in clients {
        let close = client.another_answer().await;
        assert_eq!((close.code, close.error(0).0.as_str()), (0x18, "amqp:connection:forced"), "{way}");
    }
    tokio::time::timeout(TIMEOUT, stopping).await.expect("it stops").unwrap();
}

/// What a client of another machine hears when it says the header of AMQP.
async fn heard_elsewhere(has_tls: bool, uses_tls: bool, is_insecure: bool) -> Vec<u8> {
    let (engine, clock): (_, ManualClock) = crate::testing::engine().await.unwrap();
    let intake = Intake::new(engine.client().clone());
    let shared = EndpointState::new(
        intake,
        Owners::nobody(),
        Arc::new(clock),
        Meters::default(),
        Default::default(),
        true,
    );
    let tls = if has_tls { certificate() } else { Arc::default() };
    let arrivals = Arrivals::new(Arc::new(shared), tls, is_insecure, TIMEOUT);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        arrivals.serve(stream, accepted("10.0.0.1")).await;
    };
    let asking = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if !uses_tls {
            stream.write_all(HEADER).await.unwrap();
            stream.shutdown().await.unwrap();
            return rest(stream).await;
        }
        let mut stream = encrypted(stream).await;
        stream.write_all(HEADER).await.unwrap();
        stream.shutdown().await.unwrap();
        rest(stream).await
    };
    tokio::join!(serving, asking).1
}

#[tokio::test]
async fn from_another_machine_nobody_comes_in_without_tls_unless_that_is_asked_for() {
    assert_eq!(heard_elsewhere(true, false, false).await, b"");
    assert_eq!(heard_elsewhere(false, false, false).await, b"");
    assert!(heard_elsewhere(true, true, false).await.starts_with(HEADER));
    assert!(heard_elsewhere(true, false, true).await.starts_with(HEADER));
}
