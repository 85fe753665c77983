//! WebSockets that carry AMQP, and what they may not carry.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::SinkExt;
use futures_util::StreamExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::limits;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::piped_stream::Pipe;
use crate::service_bus::tests::arriving::host;
use crate::service_bus::tests::wire::Host;

/// A WebSocket over a connection, or the status with which it is refused.
pub(super) async fn websocket<S: Pipe>(stream: S, protocol: &str) -> Result<WebSocketStream<S>, u16> {
    let protocols: &[_] = if protocol.is_empty() { &[] } else { &[("sec-websocket-protocol", protocol)] };
    websocket_with(stream, protocols).await
}

async fn websocket_with<S: Pipe>(
    stream: S,
    headers: &[(&'static str, &str)],
) -> Result<WebSocketStream<S>, u16> {
    let mut request = "ws://localhost/$servicebus/websocket".into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// The bytes of a WebSocket, in both directions.
pub(super) fn as_bytes<S: Pipe + 'static>(socket: WebSocketStream<S>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (mut says, mut hears) = socket.split();
    let (mut from_client, mut to_client) = tokio::io::split(far);
    tokio::spawn(async move {
        // As small as it likes: frames and messages need not be the same.
        let mut bytes = vec![0; 50_000];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            if says.send(Message::binary(bytes[..count].to_vec())).await.is_err() {
                return;
            }
        }
        let _ = says.close().await;
    });
    tokio::spawn(async move {
        while let Some(Ok(message)) = hears.next().await {
            if to_client.write_all(&message.into_data()).await.is_err() {
                return;
            }
        }
    });
    near
}

async fn plain_host() -> Host {
    host(EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))).await
}

#[tokio::test]
async fn a_text_message_ends_a_websocket_with_the_reason() {
    let host = plain_host().await;
    let mut socket = websocket(host.stream().await, "AMQPWSB10").await.unwrap();
    socket.send(Message::text("AMQP")).await.unwrap();
    let close = loop {
        let heard = socket.next().await.expect("it is closed in order").unwrap();
        if let Message::Close(close) = heard {
            break close.expect("it says why");
        }
    };
    assert_eq!(
        (close.code, close.reason.as_str()),
        (CloseCode::Unsupported, "AMQP is sent in binary messages")
    );
    while let Some(message) = socket.next().await {
        message.unwrap();
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_a_websocket() {
    let host = plain_host().await;
    let mut socket = websocket(host.stream().await, "AMQPWSB10").await.unwrap();
    // It may end before all of the message is sent.
    let _ = socket.send(Message::binary(vec![0; limits::AMQP_WEBSOCKET_MESSAGE_BYTES_MAX + 1])).await;
    let ending = async {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Close(Some(close)) = message {
                assert_eq!(close.code, CloseCode::Protocol, "{close}");
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ending).await.expect("it ends");
}

#[tokio::test]
async fn a_ping_is_answered_before_anything_else_is_said() {
    let host = plain_host().await;
    let mut socket = websocket(host.stream().await, "amqp").await.unwrap();
    socket.send(Message::Ping("are you there".into())).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong("are you there".into()));
}

#[tokio::test]
async fn a_websocket_that_the_client_closes_is_closed_in_order() {
    let host = plain_host().await;
    let mut socket = websocket(host.stream().await, "amqp").await.unwrap();
    socket.close(None).await.unwrap();
    while let Some(message) = socket.next().await {
        message.unwrap();
    }
}

#[tokio::test]
async fn a_websocket_names_a_protocol_that_is_amqp() {
    let host = plain_host().await;
    for protocol in ["", "mqtt"] {
        assert_eq!(websocket(host.stream().await, protocol).await.err(), Some(400), "{protocol}");
    }
    for protocol in ["amqp", "AMQPWSB10", "mqtt, AMQPWSB10"] {
        assert!(websocket(host.stream().await, protocol).await.is_ok(), "{protocol}");
    }
}

#[tokio::test]
async fn without_keys_no_page_of_another_origin_has_a_websocket() {
    let host = plain_host().await;
    let from = async |origin| {
        let headers = [("sec-websocket-protocol", "amqp"), ("origin", origin)];
        websocket_with(host.stream().await, &headers).await.err()
    };
    assert_eq!(from("https://example.com").await, Some(403));
    assert_eq!(from("http://localhost").await, None);
}
