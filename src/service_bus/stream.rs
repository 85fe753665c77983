//! What a connection speaks over: a socket, or what stands upon one, behind the same words.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::limits;
use crate::service_bus::piped_stream::PipedStream;
use crate::service_bus::prompt::acknowledge_at_once;

/// What a connection speaks over.
pub(crate) enum ConnectionStream {
    /// The socket itself: nothing stands between it and the connection.
    Tcp(TcpStream),
    /// TLS, or a WebSocket.
    Piped(PipedStream),
}

impl ConnectionStream {
    /// Reads what has come.
    pub(crate) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ConnectionStream::Tcp(stream) => {
                let count = stream.try_read(buffer)?;
                if count > 0 {
                    acknowledge_at_once(stream);
                }
                Ok(count)
            }
            ConnectionStream::Piped(piped) => piped.try_read(buffer),
        }
    }

    /// Writes as much as is taken now.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ConnectionStream::Tcp(stream) => stream.try_write(bytes),
            ConnectionStream::Piped(piped) => piped.try_write(bytes),
        }
    }

    /// Waits until there is something to read, or room to write, or what was written is gone; says whether to read.
    pub(crate) async fn ready(&mut self, interest: Option<Interest>) -> io::Result<bool> {
        match (self, interest) {
            (ConnectionStream::Tcp(stream), Some(interest)) => {
                Ok(stream.ready(interest).await?.is_readable())
            }
            (ConnectionStream::Tcp(_), None) => std::future::pending().await,
            (ConnectionStream::Piped(piped), interest) => Ok(piped.ready(interest).await),
        }
    }

    /// How much of what was written is on this side of the socket still.
    pub(crate) fn unsent(&self) -> u64 {
        match self {
            ConnectionStream::Tcp(_) => 0,
            ConnectionStream::Piped(piped) => piped.unsent(),
        }
    }

    /// Why nothing that is written arrives any more; reported once.
    pub(crate) fn take_write_error(&mut self) -> Option<io::Error> {
        match self {
            ConnectionStream::Tcp(_) => None,
            ConnectionStream::Piped(piped) => piped.take_write_error(),
        }
    }

    /// Nothing that waits is written any more: what was deleted by being sent is given back, and must not arrive as well.
    pub(crate) fn stop_writing(&mut self) {
        match self {
            ConnectionStream::Tcp(_) => {}
            ConnectionStream::Piped(piped) => piped.stop_writing(),
        }
    }

    /// Ends it in order: to drop it while the peer still writes would make its system drop what it has not read yet.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        let mut rest = [0; 1_024];
        match self {
            ConnectionStream::Tcp(stream) => {
                stream.shutdown().await?;
                let reading = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
                let _ = tokio::time::timeout(limits::AMQP_LINGER, reading).await;
            }
            ConnectionStream::Piped(piped) => {
                let ending = async {
                    piped.shutdown().await?;
                    while piped.read(&mut rest).await.is_ok_and(|count| count > 0) {}
                    Ok::<_, io::Error>(())
                };
                tokio::time::timeout(limits::AMQP_LINGER, ending).await.unwrap_or(Ok(()))?;
            }
        }
        Ok(())
    }
}
