//! The protocol of a connection, known by its first byte: AMQP, TLS with AMQP or HTTP inside, or HTTP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Extensions;
use http::StatusCode;
use rustls::ServerConfig;
use tokio::io::AsyncBufReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::inbound::accept::Complaints;
use crate::inbound::connection::Connections;
use crate::inbound::timeouts::Timeouts;
use crate::service_bus::accepted_connection::AcceptedConnection;
use crate::service_bus::http::router;
use crate::service_bus::prompt::Prompt;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::stream::ConnectionStream;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Amqp,
    Http,
    Tls,
}

impl Spoken {
    /// By the first byte: of AMQP's header, of a method of HTTP, or of a handshake of TLS. Anything else is taken for AMQP,
    /// which answers with the header that it expects, as its standard wants it.
    fn of(first: Option<u8>) -> Spoken {
        match first {
            Some(0x16) => Spoken::Tls,
            Some(b'D' | b'G' | b'H' | b'O' | b'P') => Spoken::Http,
            _ => Spoken::Amqp,
        }
    }
}

/// A connection of which is known what it speaks.
enum DetectedConnection {
    Plain(TcpStream, Spoken),
    Encrypted(Box<TlsStream<Prompt>>, Spoken),
}

/// Takes connections as they come.
pub(crate) struct Arrivals {
    shared: Arc<EndpointState>,
    http: Connections,
    tls: Arc<ArcSwapOption<ServerConfig>>,
    /// Whether other machines may come in although nothing is encrypted.
    is_insecure: bool,
    /// How long it may take until it is known what is spoken.
    arrival_max: Duration,
}

impl Arrivals {
    pub(crate) fn new(
        shared: Arc<EndpointState>,
        tls: Arc<ArcSwapOption<ServerConfig>>,
        is_insecure: bool,
        arrival_max: Duration,
    ) -> Arrivals {
        let (routes, stopping) = (router(shared.clone()), shared.stopping.clone());
        let http = Connections::new(routes, refuse_head, Timeouts::default(), stopping);
        Arrivals { shared, http, tls, is_insecure, arrival_max }
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve(&self, stream: TcpStream, accepted: AcceptedConnection) {
        let arriving = tokio::time::timeout(self.arrival_max, self.arrive(stream, &accepted));
        let arrived = tokio::select! {
            arrived = arriving => arrived,
            () = self.shared.stopping.cancelled() => return,
        };
        match arrived {
            Ok(Ok(Some(arrived))) => self.speak(arrived, accepted).await,
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::debug!(%error, peer = %accepted.peer, "take an AMQP connection"),
            Err(_) => {
                tracing::debug!(peer = %accepted.peer, "take an AMQP connection: its first bytes did not come in time")
            }
        }
    }

    /// Finds out what is spoken, if it may be.
    async fn arrive(
        &self,
        stream: TcpStream,
        accepted: &AcceptedConnection,
    ) -> io::Result<Option<DetectedConnection>> {
        let mut first = [0];
        let count = stream.peek(&mut first).await?;
        let spoken = Spoken::of(first.first().copied().filter(|_| count > 0));
        if spoken != Spoken::Tls {
            let may_come = accepted.is_from_here() || self.is_insecure;
            if !may_come {
                refuse_plain(accepted);
            }
            return Ok(may_come.then_some(DetectedConnection::Plain(stream, spoken)));
        }
        let Some(tls) = self.tls.load_full() else {
            tracing::debug!(peer = %accepted.peer, "a client wants TLS, and there is no certificate");
            return Ok(None);
        };
        // Who is here without TLS needs no room for its handshake.
        let agreeing = Box::pin(async {
            let mut stream = Box::new(TlsAcceptor::from(tls).accept(accepted.over(stream)).await?);
            let first = stream.fill_buf().await?.first().copied();
            Ok(Some(DetectedConnection::Encrypted(stream, Spoken::of(first))))
        });
        agreeing.await
    }

    async fn speak(&self, arrived: DetectedConnection, mut accepted: AcceptedConnection) {
        let shared = self.shared.clone();
        match arrived {
            DetectedConnection::Plain(stream, Spoken::Http) => {
                Box::pin(self.answer(accepted.over(stream), accepted)).await;
            }
            DetectedConnection::Plain(stream, _) => {
                accepted.speak(shared, ConnectionStream::Tcp(stream)).await
            }
            DetectedConnection::Encrypted(stream, spoken) => {
                accepted.is_tls = true;
                match spoken {
                    Spoken::Http => Box::pin(self.answer(stream, accepted)).await,
                    _ => {
                        let piped = accepted.piped(stream);
                        accepted.speak(shared, piped).await;
                    }
                }
            }
        }
    }

    /// Answers requests of HTTP.
    async fn answer<S>(&self, stream: S, accepted: AcceptedConnection)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let mut extensions = Extensions::new();
        extensions.insert(accepted.clone());
        let answering = self.http.over(stream, accepted.is_tls, accepted.peer, extensions);
        accepted.unless_cut(answering).await;
    }
}

/// Where there is a certificate, others have to use it: what they send without, such as a token, others can read.
fn refuse_plain(accepted: &AcceptedConnection) {
    static COMPLAINTS: Complaints = Complaints::new();
    if let Some(unlogged) = COMPLAINTS.note_now() {
        let peer = accepted.peer;
        tracing::warn!(
            %peer,
            unlogged,
            "closed a connection from another machine that came without TLS; --insecure-network would allow it"
        );
    }
}

fn refuse_head(why: &'static str) -> Response {
    (StatusCode::BAD_REQUEST, why).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_what_is_spoken() {
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
            assert_eq!(Spoken::of(method.bytes().next()), Spoken::Http, "{method}");
        }
        assert_eq!(Spoken::of(Some(0x16)), Spoken::Tls);
        for other in [Some(b'A'), Some(0), Some(0xff), Some(b'g'), None] {
            assert_eq!(Spoken::of(other), Spoken::Amqp, "{other:?}");
        }
    }
}
