//! Timeouts of the server for a connection: the head of a request has to come, answers have to be taken.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::time::Sleep;

use crate::inbound::timeouts::Timeouts;
use crate::limits;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of a request, of which the first byte may have come.
    Head,
    /// Nothing: a request is being answered, and its body has a timeout of its own.
    Answer,
    /// The next request.
    Idle,
}

impl Phase {
    fn timeouts(self, timeouts: &Timeouts) -> Option<Duration> {
        match self {
            Phase::Head => Some(timeouts.head),
            Phase::Answer => None,
            Phase::Idle => Some(timeouts.idle),
        }
    }
}

/// The phase of a connection, shared by its stream and its requests.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPace {
    /// Counts phases, so that two of a kind differ; its last two bits are the phase itself.
    phase: AtomicU32,
    /// Who waits for something to read.
    reader: AtomicWaker,
    /// Whether a body was left unread, so that more of it may be on its way.
    is_left_unread: AtomicBool,
    /// Whether another protocol is spoken now, which waits as it likes.
    is_upgraded: AtomicBool,
}

impl ConnectionPace {
    /// A request has come whole, but for its body.
    pub(crate) fn note_request(&self) {
        self.enter(Phase::Answer);
    }

    /// An answer has gone out, or as far as it will.
    pub(crate) fn note_answered(&self) {
        self.enter(Phase::Idle);
    }

    /// No other request comes: the connection is another protocol's.
    pub(crate) fn note_upgraded(&self) {
        self.is_upgraded.store(true, Ordering::Release);
    }

    /// More of a body may come that nobody reads.
    pub(crate) fn note_unread(&self) {
        self.is_left_unread.store(true, Ordering::Release);
    }

    fn now(&self) -> (u32, Phase) {
        let phase = self.phase.load(Ordering::Acquire);
        let kind = match phase % 4 {
            0 => Phase::Head,
            1 => Phase::Answer,
            _ => Phase::Idle,
        };
        (phase, kind)
    }

    fn enter(&self, phase: Phase) {
        if self.is_upgraded.load(Ordering::Acquire) {
            return;
        }
        let kind = match phase {
            Phase::Head => 0,
            Phase::Answer => 1,
            Phase::Idle => 2,
        };
        let next = self.phase.load(Ordering::Acquire).wrapping_add(4) / 4 * 4 + kind;
        self.phase.store(next, Ordering::Release);
        // Who began to wait in another phase has to wait by the timeout of this one.
        self.reader.wake();
    }
}

/// A stream that fails when the other side keeps it waiting too long.
pub(crate) struct PacedStream<S> {
    stream: S,
    pace: Arc<ConnectionPace>,
    timeouts: Timeouts,
    /// The deadline for what is read, and the phase it belongs to.
    reading: Option<(u32, Pin<Box<Sleep>>)>,
    /// The deadline for the next bytes to be taken.
    writing: Option<Pin<Box<Sleep>>>,
    /// The deadline for all that waits to be written; each byte that is taken moves it.
    taking: Option<Pin<Box<Sleep>>>,
    /// The deadline for what comes although nobody reads it.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S> PacedStream<S> {
    pub(crate) fn new(stream: S, pace: Arc<ConnectionPace>, timeouts: Timeouts) -> PacedStream<S> {
        PacedStream { stream, pace, timeouts, reading: None, writing: None, taking: None, lingering: None }
    }

    fn note_read(&mut self, bytes: usize) {
        if bytes > 0 && self.pace.now().1 == Phase::Idle {
            self.pace.enter(Phase::Head);
        }
    }

    fn wait_for_reading(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pace.reader.register(context.waker());
        let (phase, kind) = self.pace.now();
        let Some(timeouts) = kind.timeouts(&self.timeouts) else {
            self.reading = None;
            return Poll::Pending;
        };
        match &self.reading {
            Some((armed, _)) if *armed == phase => {}
            _ => self.reading = Some((phase, alarm(timeouts))),
        }
        match &mut self.reading {
            Some((_, alarm)) => overdue(alarm, context),
            None => Poll::Pending,
        }
    }

    /// Gives the rest of what waits the time that these bytes are worth.
    fn note_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(taking), Poll::Ready(Ok(bytes))) = (&mut self.taking, written) {
            let worth = Duration::from_secs(*bytes as u64) / limits::HTTP_ANSWER_RATE_MIN;
            let until = taking.deadline() + worth;
            taking.as_mut().reset(until);
        }
    }

    fn wait_for_writing<T>(&mut self, context: &mut Context<'_>, written: Poll<T>) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = written {
            self.writing = None;
            return Poll::Ready(Ok(written));
        }
        let timeouts = self.timeouts.write;
        let writing = self.writing.get_or_insert_with(|| alarm(timeouts));
        if let Poll::Ready(Err(error)) = overdue(writing, context) {
            return Poll::Ready(Err(error));
        }
        // Another protocol need not say when nothing waits any more.
        if self.pace.is_upgraded.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let taking = self.taking.get_or_insert_with(|| alarm(timeouts));
        match overdue(taking, context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Pending,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the other side of a connection may take is real time"
)]
fn alarm(timeouts: Duration) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(timeouts))
}

fn overdue(alarm: &mut Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
    match alarm.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        Poll::Pending => Poll::Pending,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(read) => {
                self.note_read(buffer.filled().len() - before);
                Poll::Ready(read)
            }
            Poll::Pending => self.wait_for_reading(context),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(&written);
        self.wait_for_writing(context, written).map(Result::flatten)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note_written(&written);
        self.wait_for_writing(context, written).map(Result::flatten)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        // It is asked for when all is written, so that nothing waits now: a stream of events may be silent for long.
        if flushed.is_ready() {
            self.taking = None;
        }
        self.wait_for_writing(context, flushed).map(Result::flatten)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            let shut = Pin::new(&mut self.stream).poll_shutdown(context);
            match self.wait_for_writing(context, shut).map(Result::flatten) {
                Poll::Ready(Ok(())) if self.pace.is_left_unread.load(Ordering::Acquire) => {}
                shut => return shut,
            }
        }
        self.linger(context)
    }
}

impl<S: AsyncRead + Unpin> PacedStream<S> {
    /// Reads what still comes to its end, for a moment: closing before would make the system at the other side drop the
    /// answer that says why the body was not read.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let alarm = self.lingering.get_or_insert_with(|| alarm(limits::HTTP_LINGER));
        if overdue(alarm, context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0; 16 * 1024];
        // A few reads at a time, so that one connection does not keep a thread for itself.
        for _ in 0..16 {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;
    use tokio::io::DuplexStream;

    use super::*;

    /// Writes an answer of which the other side takes a KiB every so often.
    async fn write_answer(
        stream: &mut PacedStream<DuplexStream>,
        other: &mut DuplexStream,
        every: Duration,
    ) -> io::Result<()> {
        let answer = vec![0; 256 * 1024];
        let mut writing = pin!(async {
            stream.write_all(&answer).await?;
            stream.flush().await
        });
        loop {
            if let Some(ended) = writing.as_mut().now_or_never() {
                return ended;
            }
            tokio::time::advance(every).await;
            let taken = other.read(&mut [0; 1024]).await.unwrap();
            assert_eq!(taken, 1024);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_which_a_little_is_taken_now_and_then_is_given_up() {
        let (stream, mut other) = tokio::io::duplex(1024);
        let mut stream = PacedStream::new(stream, Arc::default(), Timeouts::default());
        let ended = write_answer(&mut stream, &mut other, Duration::from_secs(29)).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_taken_slowly_are_written_whatever_time_lies_between_them() {
        let (stream, mut other) = tokio::io::duplex(1024);
        let mut stream = PacedStream::new(stream, Arc::default(), Timeouts::default());
        for _ in 0..3 {
            write_answer(&mut stream, &mut other, Duration::from_millis(200)).await.unwrap();
            tokio::time::advance(Duration::from_secs(3_600)).await;
        }
    }
}
