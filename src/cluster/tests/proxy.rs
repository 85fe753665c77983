//! A network whose links can be cut, or left open while nothing comes through: a TCP proxy for each.

use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Open,
    /// What was connected is not any more, and whoever connects is sent away.
    Cut,
    /// What is sent stays where it is until this ends.
    Hanging,
}

/// A way to one server.
pub(crate) struct Link {
    /// Where it begins.
    pub(crate) port: u16,
    state: watch::Sender<LinkState>,
}

impl Link {
    pub(crate) fn set(&self, state: LinkState) {
        self.state.send_replace(state);
    }
}

/// What carries links. Without it they are gone.
pub(crate) struct Network {
    runtime: Option<Runtime>,
}

impl Network {
    pub(crate) fn begin() -> Network {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Network { runtime: Some(runtime.worker_threads(1).enable_all().build().unwrap()) }
    }

    /// Lays a link to a port.
    pub(crate) fn link(&self, to: u16) -> Link {
        let runtime = self.runtime.as_ref().unwrap();
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, seen) = watch::channel(LinkState::Open);
        runtime.spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                tokio::spawn(connect(from, to, seen.clone()));
            }
        });
        Link { port, state }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Carries a connection until one of its sides ends it, or the link is cut.
async fn connect(from: TcpStream, to: u16, mut state: watch::Receiver<LinkState>) {
    let is_open = state.wait_for(|state| *state != LinkState::Hanging).await;
    if !is_open.is_ok_and(|state| *state == LinkState::Open) {
        return;
    }
    let Ok(to) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    let ((from_reader, from_writer), (to_reader, to_writer)) = (from.into_split(), to.into_split());
    let mut cut = state.clone();
    tokio::select! {
        _ = carry(from_reader, to_writer, state.clone()) => {}
        _ = carry(to_reader, from_writer, state) => {}
        _ = cut.wait_for(|state| *state == LinkState::Cut) => {}
    }
}

/// Carries what is read to where it is written; nothing while the link hangs.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<LinkState>,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        let is_over = state.wait_for(|state| *state != LinkState::Hanging).await.is_err();
        if count == 0 || is_over {
            return Ok(());
        }
        to.write_all(&bytes[..count]).await?;
    }
}
