//! AMQP over a WebSocket: its binary messages, one behind the other, are the bytes of the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::CloseCode;
use axum::extract::ws::CloseFrame;
use axum::extract::ws::Message;
use axum::extract::ws::WebSocket;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::close_code;
use axum::response::IntoResponse;
use axum::response::Response;
use bytes::Buf;
use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::StreamExt;
use http::StatusCode;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;

use crate::limits;
use crate::service_bus::accepted_connection::AcceptedConnection;
use crate::service_bus::shared::EndpointState;

/// What the SDKs of Azure call AMQP over a WebSocket, and what its standard does.
const PROTOCOLS: [&str; 2] = ["AMQPWSB10", "amqp"];

/// Why a text ends the connection.
const NO_TEXT: &str = "AMQP is sent in binary messages";

/// Makes an AMQP connection of a connection of HTTP.
pub(crate) async fn open(
    State(shared): State<Arc<EndpointState>>,
    Extension(accepted): Extension<AcceptedConnection>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade.protocols(PROTOCOLS);
    if upgrade.selected_protocol().is_none() {
        let why = "ask for the subprotocol AMQPWSB10 or amqp";
        return (StatusCode::BAD_REQUEST, why).into_response();
    }
    let upgrade = upgrade
        .read_buffer_size(limits::AMQP_WEBSOCKET_BUFFER_BYTES)
        .write_buffer_size(limits::AMQP_WEBSOCKET_BUFFER_BYTES)
        .max_write_buffer_size(limits::AMQP_WEBSOCKET_BUFFER_BYTES + 2 * limits::AMQP_PIPED_BYTES)
        .max_message_size(limits::AMQP_WEBSOCKET_MESSAGE_BYTES_MAX)
        .max_frame_size(limits::AMQP_WEBSOCKET_MESSAGE_BYTES_MAX);
    upgrade.on_upgrade(|socket| {
        let piped = accepted.piped(WebSocketBytes::new(socket));
        accepted.speak(shared, piped)
    })
}

/// The bytes of a WebSocket.
struct WebSocketBytes {
    socket: WebSocket,
    /// What is left of the message that came last.
    incoming: Bytes,
    has_ended: bool,
    /// Whether what comes is only read to its end.
    is_refused: bool,
}

impl WebSocketBytes {
    fn new(socket: WebSocket) -> WebSocketBytes {
        WebSocketBytes { socket, incoming: Bytes::new(), has_ended: false, is_refused: false }
    }

    /// Says why the connection ends, if there is room for it.
    fn refuse(&mut self, context: &mut Context<'_>, (code, why): (CloseCode, String)) -> io::Error {
        self.is_refused = true;
        // The reason of a close has 123 bytes; what is said here is ASCII.
        let reason: String = why.chars().filter(char::is_ascii).take(123).collect();
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        if let Poll::Ready(Ok(())) = self.socket.poll_ready_unpin(context)
            && self.socket.start_send_unpin(close).is_ok()
        {
            let _ = self.socket.poll_flush_unpin(context);
        }
        io::Error::new(io::ErrorKind::InvalidData, why)
    }
}

impl AsyncRead for WebSocketBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.incoming.is_empty() && !self.has_ended {
            match ready!(self.socket.poll_next_unpin(context)) {
                Some(Ok(Message::Binary(_) | Message::Text(_))) if self.is_refused => {}
                Some(Ok(Message::Binary(bytes))) => self.incoming = bytes,
                // The socket answers pings by itself.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => self.has_ended = true,
                Some(Ok(Message::Text(_))) => {
                    let why = (close_code::UNSUPPORTED, NO_TEXT.to_owned());
                    return Poll::Ready(Err(self.refuse(context, why)));
                }
                Some(Err(error)) => {
                    let why = (close_code::PROTOCOL, error.to_string());
                    return Poll::Ready(Err(self.refuse(context, why)));
                }
            }
        }
        let count = self.incoming.len().min(buffer.remaining());
        buffer.put_slice(&self.incoming[..count]);
        self.incoming.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocketBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.socket.poll_ready_unpin(context)).map_err(io::Error::other)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        self.socket.start_send_unpin(message).map_err(io::Error::other)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush_unpin(context).map_err(io::Error::other)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_close_unpin(context).map_err(io::Error::other)
    }
}
