//! A receiver of posts on loopback, with TLS or without.

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::HeaderMap;
use http::Response;
use http::Uri;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::handlers::tests::stage::LONG;

/// A request as it came.
pub(super) struct Seen {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// What is answered: a status, headers and a body; none for never.
pub(super) type Answer = Option<(u16, &'static [(&'static str, &'static str)], &'static str)>;

/// Answers every post the same, and shows what came.
pub(super) struct Receiver {
    address: SocketAddr,
    scheme: &'static str,
    seen: mpsc::UnboundedReceiver<Seen>,
    connections: Arc<AtomicUsize>,
}

impl Receiver {
    pub(super) async fn start(answer: Answer) -> Receiver {
        Receiver::begin(answer, None).await
    }

    /// One whose certificate [`certificate_file`] signs.
    pub(super) async fn start_tls(answer: Answer) -> Receiver {
        let certificate = CertificateDer::from_pem_file(certificate_file()).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder().join("localhost-key.pem")).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![certificate], key).unwrap();
        Receiver::begin(answer, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn begin(answer: Answer, tls: Option<TlsAcceptor>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (show, seen) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (tls, show) = (tls.clone(), show.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, answer, show).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, answer, show).await;
                            }
                        }
                    }
                });
            }
        });
        Receiver { address, scheme, seen, connections }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The next request.
    pub(super) async fn seen(&mut self) -> Seen {
        tokio::time::timeout(LONG, self.seen.recv()).await.unwrap().unwrap()
    }

    /// How many requests were not looked at.
    pub(super) fn unseen(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    show: mpsc::UnboundedSender<Seen>,
) {
    let service = service_fn(|request: http::Request<Incoming>| {
        let show = show.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let _ = show.send(Seen { uri: head.uri, headers: head.headers, body });
            let Some((status, headers, body)) = answer else { std::future::pending().await };
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            Ok::<_, hyper::Error>(response.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap())
        }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Who has signed the receiver's certificate: itself.
pub(super) fn certificate_file() -> PathBuf {
    folder().join("localhost.pem")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handlers/tests")
}
