//! The socket of a connection: what is read from it, written to it, and what it waits for meanwhile.

use std::io;
use std::time::Duration;

use bytes::Buf;
use futures_util::FutureExt;
use futures_util::StreamExt;
use tokio::io::Interest;
use tokio::task::coop;

use crate::amqp::AmqpError;
use crate::amqp::condition;
use crate::clock::whole_millis;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::in_order::InOrder;
use crate::service_bus::stream::ConnectionStream;

impl ConnectionTask {
    /// Reads and writes until one side ends the connection.
    pub(crate) async fn over(mut self, mut stream: ConnectionStream) {
        let ended = match self.connection_task(&mut stream).await {
            Ok(()) => stream.end().await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "end an AMQP connection");
        }
    }

    async fn connection_task(&mut self, stream: &mut ConnectionStream) -> io::Result<()> {
        loop {
            // A peer that always has something to read would keep its thread from everything else.
            coop::consume_budget().await;
            self.turn();
            let (had_room, was_deaf) = (self.amqp.has_room(), self.amqp.is_full_of_answers());
            self.write(stream);
            self.delete_answered();
            self.delete_sent();
            let has_room = !had_room && self.amqp.has_room();
            // What opens the peer's window may be heard already.
            let may_go_on = has_room || (was_deaf && !self.amqp.is_full_of_answers());
            if may_go_on || !self.answered.is_empty() {
                continue;
            }
            let has_output = !self.amqp.output().is_empty();
            let is_flushed = !has_output && !self.has_unsent(stream);
            if self.amqp.is_finished() && is_flushed && self.in_order.is_empty() {
                return Ok(());
            }
            match self.gave_up_at_ms.filter(|_| self.may_read()) {
                Some(gave_up_at_ms) => self.read_rest(stream, gave_up_at_ms),
                None => self.wait(stream, has_output).await?,
            }
        }
    }

    fn write(&mut self, stream: &mut ConnectionStream) {
        let written_before = self.bytes_written;
        if let Some(error) = stream.take_write_error() {
            self.stop_speaking(&error);
        }
        while !self.is_write_closed && !self.amqp.output().is_empty() {
            match stream.try_write(self.amqp.output()) {
                Ok(0) => self.stop_speaking(&io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.amqp.output().advance(count);
                    self.bytes_given += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.stop_speaking(&error),
            }
        }
        self.bytes_written = self.bytes_given - stream.unsent();
        if self.is_write_closed {
            self.amqp.output().clear();
            stream.stop_writing();
        }
        let waits = !self.amqp.output().is_empty() || self.has_unsent(stream);
        let has_waited = self.stalled_since_ms.filter(|_| self.bytes_written == written_before);
        self.stalled_since_ms = waits.then(|| has_waited.unwrap_or_else(|| elapsed_ms(&*self.shared.clock)));
    }

    /// Whether something was written that is not on its way yet, to a peer that reads.
    fn has_unsent(&self, stream: &ConnectionStream) -> bool {
        !self.is_write_closed && stream.unsent() > 0
    }

    /// Nothing can be written to the peer any more. What it has sent before is still read, and done; what was deleted by being sent
    /// to it is not, unless it was sent.
    fn stop_speaking(&mut self, error: &io::Error) {
        tracing::debug!(%error, "write to an AMQP client: it reads no more");
        self.is_write_closed = true;
        for link in std::mem::take(&mut self.deleting) {
            let Some(receiver) = self.receiver(link) else { continue };
            let holds = receiver.sent.take_all().collect();
            self.give_back(link, holds);
        }
        std::mem::take(&mut self.answering).into_iter().for_each(|link| self.give_up_replies(link));
    }

    /// Whether what comes is read: who sends faster than the engine commits, or takes less than it asks for, is not read
    /// meanwhile.
    fn may_read(&self) -> bool {
        self.held_event.is_none()
            && self.sending_bytes < limits::SERVICE_BUS_SENDING_BYTES
            && self.amqp.may_read()
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, stream: &mut ConnectionStream, has_output: bool) -> io::Result<()> {
        let reads = self.may_read();
        let interest = match (reads, has_output) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let stopping = self.shared.stopping.clone();
        let time_limit = self.time_limit();
        // A peer that always has something to read would keep it from being looked at below.
        if time_limit.is_zero() {
            self.look_at_the_clock();
        }
        tokio::select! {
            ready = stream.ready(interest) => {
                if ready? && reads {
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

    fn read(&mut self, stream: &mut ConnectionStream) {
        // On the stack: thousands of connections that say nothing need no buffer each.
        let mut buffer = [0; limits::AMQP_READ_BYTES];
        let now_ms = elapsed_ms(&*self.shared.clock);
        match stream.try_read(&mut buffer) {
            Ok(0) => self.amqp.receive_end(),
            Ok(count) => self.amqp.receive(&buffer[..count], now_ms),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.gave_up_at_ms.is_some() {
                    self.amqp.receive_end();
                }
            }
            Err(error) => {
                self.stop_speaking(&error);
                self.amqp.receive_end();
            }
        }
    }

    /// Reads on after it has given up, for a limited time: a peer that goes on sending has no end.
    fn read_rest(&mut self, stream: &mut ConnectionStream, gave_up_at_ms: u64) {
        self.read(stream);
        if elapsed_ms(&*self.shared.clock) >= gave_up_at_ms + whole_millis(limits::AMQP_LINGER) {
            self.amqp.receive_end();
        }
    }

    /// How long it waits for anything at most.
    fn time_limit(&self) -> Duration {
        let now_ms = elapsed_ms(&*self.shared.clock);
        let stalled =
            self.stalled_since_ms.map(|since_ms| since_ms + whole_millis(limits::AMQP_WRITE_TIMEOUT));
        let forced = self.forced_at().map(|(at_ms, _)| at_ms);
        let due = [self.amqp.deadline_ms(), forced, stalled].into_iter().flatten().min();
        due.map_or(limits::RECEIVE_WAIT, |due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms)))
    }

    fn look_at_the_clock(&mut self) {
        let now_ms = elapsed_ms(&*self.shared.clock);
        if !self.may_read() {
            self.amqp.note_unread(now_ms);
        }
        self.amqp.tick(now_ms);
        let stalled_ms = self.stalled_since_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
        if stalled_ms >= whole_millis(limits::AMQP_WRITE_TIMEOUT) {
            self.stop_speaking(&io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing"));
            self.gave_up_at_ms.get_or_insert(now_ms);
        }
        if let Some((_, why)) = self.forced_at().filter(|(at_ms, _)| *at_ms <= now_ms) {
            self.force(why);
        }
    }

    /// When the connection is ended unless its client does something before, and why.
    fn forced_at(&self) -> Option<(u64, &'static str)> {
        let linkless_ms = self.linkless_since_ms + whole_millis(limits::SERVICE_BUS_LINKLESS_MAX);
        let stranger_ms = self.stranger_since_ms + whole_millis(limits::SERVICE_BUS_STRANGER_MAX);
        let linkless = self.links.is_empty().then_some((linkless_ms, "it had no links for too long"));
        let stranger = self.is_stranger().then_some((stranger_ms, "it has shown no token for too long"));
        linkless.into_iter().chain(stranger).filter(|_| !self.is_closing).min()
    }

    /// Ends the connection, as an operator would.
    fn force(&mut self, why: &'static str) {
        self.leave(InOrder::Close(Some(AmqpError::new(condition::CONNECTION_FORCED, why))));
    }
}

async fn after(time_limit: Duration) {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(time_limit, never).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::Engine;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::socketless;
    use crate::testing::ManualClock;

    #[tokio::test]
    async fn a_connection_whose_link_was_refused_may_be_without_one_for_as_long_as_any_other() {
        let clock = ManualClock::default();
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let shared = socketless::endpoint(engine.client(), Arc::new(clock.clone())).await;
        let mut connection_task = socketless::opened(shared);
        clock.advance(limits::SERVICE_BUS_LINKLESS_MAX - Duration::from_secs(1));
        connection_task.hear(&[attach(receiver(0, "missing"))]).await;
        assert!(connection_task.links.is_empty(), "it was refused");
        clock.advance(Duration::from_secs(2));
        connection_task.look_at_the_clock();
        assert!(!connection_task.is_closing);
        clock.advance(limits::SERVICE_BUS_LINKLESS_MAX);
        connection_task.look_at_the_clock();
        assert!(connection_task.is_closing);
    }
}
