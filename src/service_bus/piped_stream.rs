//! A stream that only waits, such as TLS, made into one that can be asked what it takes and gives now.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use bytes::Buf;
use bytes::BytesMut;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::io::ReadBuf;

use crate::limits;
use crate::service_bus::prompt::Silence;

/// How many bytes are written and passed on at once: a record of TLS, which cannot be read before all of it has arrived. Of more, a part
/// could be read that counts as unsent.
const RECORD_BYTES: usize = 16 * 1_024;

/// What bytes go through, in both directions.
pub(crate) trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<P: AsyncRead + AsyncWrite + Send + Unpin> Pipe for P {}

/// A stream with a bounded buffer in each direction.
pub(crate) struct PipedStream {
    pipe: Box<dyn Pipe>,
    /// What was read ahead: nothing, or what one read has brought.
    incoming: BytesMut,
    /// What waits to be written.
    outgoing: BytesMut,
    /// Bytes that the pipe has taken and not passed on yet.
    unflushed: usize,
    has_ended: bool,
    read_error: Option<io::Error>,
    is_broken: bool,
    write_error: Option<io::Error>,
    /// Of the socket below the pipe.
    silence: Silence,
}

impl PipedStream {
    /// Speaks through a pipe, which stands upon a socket that can be silenced.
    pub(crate) fn new(pipe: impl Pipe + 'static, silence: Silence) -> PipedStream {
        PipedStream {
            pipe: Box::new(pipe),
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            unflushed: 0,
            has_ended: false,
            read_error: None,
            is_broken: false,
            write_error: None,
            silence,
        }
    }

    pub(crate) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.incoming.is_empty() {
            let count = self.incoming.len().min(buffer.len());
            self.incoming.copy_to_slice(&mut buffer[..count]);
            if self.incoming.is_empty() {
                // Thousands of connections that say nothing need no buffer each.
                self.incoming = BytesMut::new();
            }
            return Ok(count);
        }
        if let Some(error) = self.read_error.take() {
            return Err(error);
        }
        if self.has_ended {
            return Ok(0);
        }
        // Whoever wants to be woken asks `ready`, which reads again.
        let mut context = Context::from_waker(Waker::noop());
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut self.pipe).poll_read(&mut context, &mut buffer) {
            Poll::Ready(read) => {
                self.has_ended = read.is_err() || buffer.filled().is_empty();
                read.map(|()| buffer.filled().len())
            }
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.room().min(bytes.len()) {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            count => {
                self.outgoing.extend_from_slice(&bytes[..count]);
                Ok(count)
            }
        }
    }

    pub(crate) async fn ready(&mut self, interest: Option<Interest>) -> bool {
        poll_fn(|context| self.poll_ready(interest, context)).await
    }

    pub(crate) fn unsent(&self) -> u64 {
        (self.outgoing.len() + self.unflushed) as u64
    }

    pub(crate) fn take_write_error(&mut self) -> Option<io::Error> {
        self.write_error.take()
    }

    pub(crate) fn stop_writing(&mut self) {
        self.is_broken = true;
        self.silence.begin();
    }

    /// Writes all that waits, and says that nothing follows; neither, where nothing more is to arrive: the pipe would first pass on
    /// what it has taken.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        if self.is_broken {
            return Ok(());
        }
        self.pipe.write_all_buf(&mut self.outgoing).await?;
        self.pipe.shutdown().await
    }

    /// Reads what nobody wants any more.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pipe.read(buffer).await
    }

    fn room(&self) -> usize {
        limits::AMQP_PIPED_BYTES.saturating_sub(self.outgoing.len())
    }

    fn poll_ready(&mut self, interest: Option<Interest>, context: &mut Context<'_>) -> Poll<bool> {
        let had_unsent = self.unsent() > 0;
        if let Err(error) = self.write_on(context) {
            (self.is_broken, self.write_error) = (true, Some(error));
        }
        if interest.is_some_and(Interest::is_readable) && self.has_input(context) {
            return Poll::Ready(true);
        }
        let is_writable = interest.is_some_and(Interest::is_writable) && self.room() > 0;
        let is_sent = had_unsent && self.unsent() == 0;
        match is_writable || is_sent || self.write_error.is_some() {
            true => Poll::Ready(false),
            false => Poll::Pending,
        }
    }

    /// Writes as much of what waits as is taken. Each part is passed on before the next, so that what is unsent becomes
    /// less as long as the peer takes something.
    fn write_on(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.is_broken && self.unsent() > 0 {
            if self.unflushed > 0 {
                match Pin::new(&mut self.pipe).poll_flush(context)? {
                    Poll::Ready(()) => self.unflushed = 0,
                    Poll::Pending => break,
                }
            } else {
                let record = self.outgoing.len().min(RECORD_BYTES);
                match Pin::new(&mut self.pipe).poll_write(context, &self.outgoing[..record])? {
                    Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Poll::Ready(count) => {
                        self.outgoing.advance(count);
                        self.unflushed = count;
                    }
                    Poll::Pending => break,
                }
            }
        }
        Ok(())
    }

    /// Whether there is something to read, be it the end.
    fn has_input(&mut self, context: &mut Context<'_>) -> bool {
        if !self.incoming.is_empty() || self.has_ended {
            return true;
        }
        let mut buffer = [0; limits::AMQP_READ_BYTES];
        let mut buffer = ReadBuf::new(&mut buffer);
        match Pin::new(&mut self.pipe).poll_read(context, &mut buffer) {
            Poll::Ready(read) => {
                self.incoming.extend_from_slice(buffer.filled());
                self.has_ended = read.is_err() || buffer.filled().is_empty();
                self.read_error = read.err();
                true
            }
            Poll::Pending => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn no_more_is_taken_than_there_is_room_for_and_what_was_taken_arrives() {
        let (near, mut far) = tokio::io::duplex(1_000);
        let mut piped = PipedStream::new(near, Silence::default());
        let bytes = vec![7; 2 * limits::AMQP_PIPED_BYTES];
        assert_eq!(piped.try_write(&bytes).unwrap(), limits::AMQP_PIPED_BYTES);
        assert_eq!(piped.try_write(&bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!piped.ready(Some(Interest::WRITABLE)).await, "a part is gone");
        assert_eq!(piped.unsent(), (limits::AMQP_PIPED_BYTES - 1_000) as u64);
        let mut arrived = vec![0; limits::AMQP_PIPED_BYTES];
        tokio::join!(piped.ready(None), far.read_exact(&mut arrived)).1.unwrap();
        assert_eq!((piped.unsent(), arrived), (0, bytes[..limits::AMQP_PIPED_BYTES].to_vec()));
    }

    #[tokio::test]
    async fn what_a_peer_that_left_was_not_sent_stays_unsent() {
        let (near, far) = tokio::io::duplex(10);
        let mut piped = PipedStream::new(near, Silence::default());
        assert_eq!(piped.try_write(&[7; 100]).unwrap(), 100);
        drop(far);
        assert!(!piped.ready(None).await);
        assert!(piped.take_write_error().is_some() && piped.take_write_error().is_none());
        assert_eq!(piped.unsent(), 100);
        assert_eq!(piped.try_write(&[7]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn what_the_pipe_has_taken_does_not_arrive_once_writing_was_stopped() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut piped = PipedStream::new(tokio::io::BufWriter::new(near), Silence::default());
        assert_eq!(piped.try_write(&[7; 100]).unwrap(), 100);
        let first = [0; 10];
        assert!(piped.ready(None).now_or_never().is_none(), "the peer takes nothing");
        piped.stop_writing();
        piped.shutdown().await.unwrap();
        drop(piped);
        let mut arrived = Vec::new();
        far.read_to_end(&mut arrived).await.unwrap();
        assert_eq!(arrived.len(), first.len(), "what was on its way before");
    }

    #[tokio::test]
    async fn what_comes_is_read_once_and_then_its_end() {
        let (near, mut far) = tokio::io::duplex(100);
        let mut piped = PipedStream::new(near, Silence::default());
        let mut buffer = [0; 4];
        assert_eq!(piped.try_read(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        far.write_all(b"abcdef").await.unwrap();
        drop(far);
        assert!(piped.ready(Some(Interest::READABLE)).await);
        assert_eq!((piped.try_read(&mut buffer).unwrap(), &buffer), (4, b"abcd"));
        assert_eq!((piped.try_read(&mut buffer).unwrap(), &buffer[..2]), (2, &b"ef"[..]));
        assert_eq!(piped.try_read(&mut buffer).unwrap(), 0);
    }
}
