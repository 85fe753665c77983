//! Connections: each answers its requests one after the other, until it ends or the server does.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Extensions;
use http::HeaderValue;
use http::Request;
use http::StatusCode;
use http::header;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::inbound::bodies::Outflow;
use crate::inbound::bodies::Uptake;
use crate::inbound::head::check_head;
use crate::inbound::pace::ConnectionPace;
use crate::inbound::pace::PacedStream;
use crate::inbound::places::ConnectionPlace;
use crate::inbound::timeouts::Timeouts;
use crate::limits;
use crate::task::boxed;

/// Set on requests that came through a socket of the file system, to which browsers have no way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromFileSystem;

/// Set on requests that came over TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverTls;

/// Set on requests that came over the network: the address of the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromAddress(pub(crate) IpAddr);

/// How the requests of a connection come in.
#[derive(Clone, Copy)]
enum Transport {
    Tcp,
    Tls,
    FileSystem,
}

/// How a server words that a head is refused.
pub(crate) type RefuseHead = fn(&'static str) -> Response;

/// All connections of a server.
pub(crate) struct Connections {
    router: Router,
    /// How a head is refused that could mean two things.
    refuse: RefuseHead,
    head_bytes_max: usize,
    timeouts: Timeouts,
    /// Set when the server is about to stop: no connection takes another request.
    stopping: CancellationToken,
    /// Set when it has waited long enough.
    cut: CancellationToken,
    tracker: TaskTracker,
}

impl Connections {
    pub(crate) fn new(
        router: Router,
        refuse: RefuseHead,
        timeouts: Timeouts,
        stopping: CancellationToken,
    ) -> Connections {
        let (cut, tracker) = (CancellationToken::new(), TaskTracker::new());
        let head_bytes_max = limits::HTTP_HEAD_BYTES_MAX;
        Connections { router, refuse, head_bytes_max, timeouts, stopping, cut, tracker }
    }

    /// Takes heads of other lengths.
    pub(crate) fn head_bytes_max(self, head_bytes_max: usize) -> Connections {
        Connections { head_bytes_max, ..self }
    }

    /// Serves a connection from the network.
    pub(crate) fn open(&self, stream: TcpStream, tls: Option<TlsAcceptor>, place: ConnectionPlace) {
        // Answers are written whole; waiting for more of them would only delay them.
        let _ = stream.set_nodelay(true);
        let transport = if tls.is_some() { Transport::Tls } else { Transport::Tcp };
        let peer = stream.peer_addr().ok().map(|peer| FromAddress(peer.ip()));
        let (http_connection, timeouts) = (self.http_connection(transport, peer), self.timeouts.head);
        self.spawn(place, async move {
            let Some(tls) = tls else { return http_connection.over(stream).await };
            match tokio::time::timeout(timeouts, tls.accept(stream)).await {
                Ok(Ok(stream)) => http_connection.over(stream).await,
                Ok(Err(error)) => tracing::debug!(%error, "agree on TLS"),
                Err(_) => tracing::debug!("agree on TLS: it took too long"),
            }
        });
    }

    /// Serves a connection from the file system.
    pub(crate) fn open_local<S>(&self, stream: S, place: ConnectionPlace)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let http_connection = self.http_connection(Transport::FileSystem, None);
        self.spawn(place, http_connection.over(stream));
    }

    /// Serves a connection that somebody else has accepted, and counts, and cuts. Each request has these extensions; what a
    /// request turns the connection into is no affair of this server any more.
    pub(crate) fn over<S>(
        &self,
        stream: S,
        is_tls: bool,
        peer: IpAddr,
        extensions: Extensions,
    ) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let transport = if is_tls { Transport::Tls } else { Transport::Tcp };
        let http_connection = self.http_connection(transport, Some(FromAddress(peer)));
        HttpConnection { extensions, ..http_connection }.over(stream)
    }

    fn http_connection(&self, transport: Transport, peer: Option<FromAddress>) -> HttpConnection {
        HttpConnection {
            router: self.router.clone(),
            refuse: self.refuse,
            head_bytes_max: self.head_bytes_max,
            timeouts: self.timeouts,
            stopping: self.stopping.clone(),
            transport,
            peer,
            extensions: Extensions::default(),
        }
    }

    fn spawn(&self, place: ConnectionPlace, connection: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.tracker.spawn(boxed(async move {
            let _place = place;
            tokio::select! {
                () = connection => {}
                () = cut.cancelled() => {}
            }
        }));
    }

    /// Waits until all have ended, and ends those that do not.
    pub(crate) async fn end(self) {
        self.tracker.close();
        if tokio::time::timeout(limits::HTTP_DRAIN_MAX, self.tracker.wait()).await.is_err() {
            tracing::warn!(open = self.tracker.len(), "closed connections whose requests did not end");
            self.cut.cancel();
            self.tracker.wait().await;
        }
    }
}

/// What it takes to answer the requests of one connection.
struct HttpConnection {
    router: Router,
    refuse: RefuseHead,
    head_bytes_max: usize,
    timeouts: Timeouts,
    stopping: CancellationToken,
    transport: Transport,
    peer: Option<FromAddress>,
    extensions: Extensions,
}

impl HttpConnection {
    /// Answers requests until one side ends the connection, or one of them makes another protocol of it.
    async fn over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        let HttpConnection {
            router,
            refuse,
            head_bytes_max,
            timeouts,
            stopping,
            transport,
            peer,
            extensions,
        } = self;
        let pace = Arc::new(ConnectionPace::default());
        let io = TokioIo::new(PacedStream::new(stream, pace.clone(), timeouts));
        let service = service_fn(|request: Request<Incoming>| {
            pace.note_request();
            let mut request = request.map(|body| Body::new(Uptake::new(body, pace.clone())));
            request.extensions_mut().extend(extensions.clone());
            if let Some(peer) = peer {
                request.extensions_mut().insert(peer);
            }
            match transport {
                Transport::Tcp => {}
                Transport::Tls => drop(request.extensions_mut().insert(OverTls)),
                Transport::FileSystem => drop(request.extensions_mut().insert(FromFileSystem)),
            }
            let (router, pace) = (router.clone(), pace.clone());
            let checked = check_head(request.version(), request.uri(), request.headers());
            async move {
                let response = match checked {
                    Ok(()) => {
                        let Ok(response) = router.oneshot(request).await;
                        response
                    }
                    // Where the next request would begin is not certain either.
                    Err(why) => closing(refuse(why)),
                };
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    pace.note_upgraded();
                }
                Ok::<_, Infallible>(response.map(|body| Outflow::new(body, pace)))
            }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(head_bytes_max);
        let mut connection = std::pin::pin!(builder.serve_connection(io, service).with_upgrades());
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "end a connection");
        }
    }
}

/// The last answer of a connection.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
