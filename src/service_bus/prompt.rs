//! A socket upon which TLS or HTTP stands: packets are acknowledged as soon as they are read, and it can be silenced.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// A client that waits for the acknowledgement of its last packet before it sends the next (Nagle's algorithm) would
/// otherwise wait 40 ms for it, again and again. The system forgets the wish, so it is said after each read.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn acknowledge_at_once(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn acknowledge_at_once(_stream: &TcpStream) {}

/// Whether nothing leaves a socket any more. What stands upon it may have taken what is not to arrive, and would pass it on with the
/// next answer that it gives by itself.
#[derive(Clone, Default)]
pub(crate) struct Silence(Arc<AtomicBool>);

impl Silence {
    /// Silences the socket for good. What comes is still read.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A socket upon which something stands; what is read of it is acknowledged at once.
pub(crate) struct Prompt {
    stream: TcpStream,
    silence: Silence,
}

impl Prompt {
    pub(crate) fn new(stream: TcpStream, silence: Silence) -> Prompt {
        Prompt { stream, silence }
    }
}

impl AsyncRead for Prompt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(read, Poll::Ready(Ok(()))) {
            acknowledge_at_once(&self.stream);
        }
        read
    }
}

impl AsyncWrite for Prompt {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.silence.has_begun() {
            true => Poll::Ready(Ok(bytes.len())),
            false => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.silence.has_begun() {
            true => Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum())),
            false => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn nothing_leaves_a_socket_that_was_silenced_and_what_comes_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let silence = Silence::default();
        let mut near = Prompt::new(listener.accept().await.unwrap().0, silence.clone());
        near.write_all(b"before").await.unwrap();
        silence.begin();
        near.write_all(b"after").await.unwrap();
        assert_eq!(near.write_vectored(&[io::IoSlice::new(b"after")]).await.unwrap(), 5);
        far.write_all(b"heard").await.unwrap();
        let mut heard = [0; 5];
        near.read_exact(&mut heard).await.unwrap();
        near.shutdown().await.unwrap();
        let mut arrived = Vec::new();
        far.read_to_end(&mut arrived).await.unwrap();
        assert_eq!((&heard, &arrived[..]), (b"heard", &b"before"[..]));
    }
}
