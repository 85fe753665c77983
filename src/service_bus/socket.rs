//! The socket of a connection: what is read from it, written to it, and what it waits for meanwhile.

use std::io;
use std::time::Duration;

use bytes::Buf;
use futures_util::FutureExt;
use futures_util::StreamExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::amqp::AmqpError;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::connection_task::elapsed_ms;
use crate::service_bus::connection_task::millis;
use crate::service_bus::links::Link;
use crate::service_bus::order::InOrder;

impl ConnectionTask {
    /// Talks until one side ends the connection.
    pub(crate) async fn over(mut self, mut stream: TcpStream) {
        let ended = match self.connection_task(&stream).await {
            Ok(()) => end(&mut stream).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "end an AMQP connection");
        }
    }

    async fn connection_task(&mut self, stream: &TcpStream) -> io::Result<()> {
        loop {
            self.turn();
            let was_full = self.amqp.is_output_full();
            self.write(stream);
            self.delete_answered();
            self.delete_sent();
            let may_go_on = was_full && !self.amqp.is_output_full();
            if may_go_on || !self.answered.is_empty() {
                continue;
            }
            let has_output = !self.amqp.output().is_empty();
            if self.amqp.is_finished() && !has_output && self.in_order.is_empty() {
                return Ok(());
            }
            match self.gives_up && self.may_read() {
                true => self.read(stream),
                false => self.wait(stream, has_output).await?,
            }
        }
    }

    fn write(&mut self, stream: &TcpStream) {
        let mut has_written = false;
        while !self.is_write_closed && !self.amqp.output().is_empty() {
            match stream.try_write(self.amqp.output()) {
                Ok(0) => self.stop_speaking(&io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.amqp.output().advance(count);
                    self.bytes_written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.stop_speaking(&error),
            }
            has_written = true;
        }
        if self.is_write_closed {
            self.amqp.output().clear();
        }
        if has_written || self.amqp.output().is_empty() {
            self.taken_at_ms = elapsed_ms(&*self.shared.clock);
        }
    }

    /// The peer hears nothing any more. What it has said before is still read, and done; what was deleted by being sent
    /// to it is not, unless it was sent.
    fn stop_speaking(&mut self, error: &io::Error) {
        tracing::debug!(%error, "an AMQP client does not hear any more");
        self.is_write_closed = true;
        for link in std::mem::take(&mut self.deleting) {
            let Some(receiver) = self.receiver(link) else { continue };
            let holds = receiver.sent.drain(..).map(|sent| sent.hold).collect();
            self.give_back(link, holds);
        }
        for link in std::mem::take(&mut self.answering) {
            if let Some(Link::Replies(replies)) = self.links.get_mut(&link) {
                replies.take_undeleted().iter().rev().for_each(|hold| self.shared.give_back(hold));
            }
        }
    }

    /// Whether what comes is read: who sends faster than the engine commits, or takes less than it asks for, is not read
    /// meanwhile.
    fn may_read(&self) -> bool {
        self.sending_bytes < limits::SERVICE_BUS_SENDING_BYTES && self.amqp.may_read()
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, stream: &TcpStream, has_output: bool) -> io::Result<()> {
        let reads = self.may_read();
        let interest = match (reads, has_output) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let ready = async {
            match interest {
                Some(interest) => stream.ready(interest).await.map(Some),
                None => std::future::pending().await,
            }
        };
        let stopping = self.shared.stopping.clone();
        let time_limit = self.time_limit(has_output);
        tokio::select! {
            ready = ready => {
                if ready?.is_some_and(|ready| ready.is_readable()) && reads {
                    self.read(stream);
                }
            }
            Some(then) = self.work.next() => {
                self.answered.push_back(then);
                while let Some(Some(then)) = self.work.next().now_or_never() {
                    self.answered.push_back(then);
                }
            }
            () = after(time_limit) => self.look_at_the_clock(),
            () = stopping.cancelled(), if !self.is_closing => self.force("the server is about to stop"),
        }
        Ok(())
    }

    fn read(&mut self, stream: &TcpStream) {
        // On the stack: thousands of connections that say nothing need no buffer each.
        let mut buffer = [0; limits::AMQP_READ_BYTES];
        let now_ms = elapsed_ms(&*self.shared.clock);
        match stream.try_read(&mut buffer) {
            Ok(0) => self.amqp.receive_end(),
            Ok(count) => {
                acknowledge_at_once(stream);
                self.amqp.receive(&buffer[..count], now_ms);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.gives_up {
                    self.amqp.receive_end();
                }
            }
            Err(error) => {
                self.stop_speaking(&error);
                self.amqp.receive_end();
            }
        }
    }

    /// How long it waits for anything at most.
    fn time_limit(&self, has_output: bool) -> Duration {
        let now_ms = elapsed_ms(&*self.shared.clock);
        let linkless =
            self.links.is_empty().then(|| self.linkless_since_ms + millis(limits::SERVICE_BUS_LINKLESS_MAX));
        let stalled = has_output.then(|| self.taken_at_ms + millis(limits::AMQP_WRITE_TIMEOUT));
        let due = [self.amqp.deadline_ms(), linkless.filter(|_| !self.is_closing), stalled]
            .into_iter()
            .flatten()
            .min();
        due.map_or(limits::RECEIVE_WAIT, |due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms)))
    }

    fn look_at_the_clock(&mut self) {
        let now_ms = elapsed_ms(&*self.shared.clock);
        self.amqp.tick(now_ms);
        let stalled_ms = now_ms.saturating_sub(self.taken_at_ms);
        if !self.amqp.output().is_empty() && stalled_ms >= millis(limits::AMQP_WRITE_TIMEOUT) {
            self.stop_speaking(&io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing"));
            self.gives_up = true;
        }
        let linkless_ms = now_ms.saturating_sub(self.linkless_since_ms);
        if self.links.is_empty()
            && !self.is_closing
            && linkless_ms >= millis(limits::SERVICE_BUS_LINKLESS_MAX)
        {
            self.force("it had no links for too long");
        }
    }

    /// Ends the connection, as an operator would.
    fn force(&mut self, why: &'static str) {
        self.leave(InOrder::Close(Some(AmqpError::new("amqp:connection:forced", why))));
    }
}

async fn after(time_limit: Duration) {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(time_limit, never).await;
}

/// Ends a stream in order: to drop it while the peer still writes would make its system drop what it has not read yet.
async fn end(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = [0; 1_024];
    let reading = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
    let _ = tokio::time::timeout(limits::AMQP_LINGER, reading).await;
    Ok(())
}

/// A client that waits for the acknowledgement of its last packet before it sends the next (Nagle's algorithm) would
/// otherwise wait 40 ms for it, again and again. The system forgets the wish, so it is said after each read.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn acknowledge_at_once(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn acknowledge_at_once(_stream: &TcpStream) {}
