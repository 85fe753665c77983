//! One connection: bytes go in and out, and what clients ask is asked of the engine meanwhile.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::amqp::AmqpError;
use crate::amqp::Connection;
use crate::amqp::Event;
use crate::amqp::LinkId;
use crate::clock::Clock;
use crate::limits;
use crate::service_bus::links::Link;
use crate::service_bus::refusal::Refusal;
use crate::service_bus::rights::Grants;
use crate::service_bus::settle::Completions;
use crate::service_bus::shared::Shared;

/// What is done with the connection once an answer has come.
type Then = Box<dyn FnOnce(&mut Talk) + Send>;

/// One connection.
pub(crate) struct Talk {
    pub(crate) amqp: Connection,
    pub(crate) shared: Arc<Shared>,
    pub(crate) links: HashMap<LinkId, Link>,
    /// Completions that came together, to be asked of the engine together.
    pub(crate) completions: Completions,
    /// What the connection may do.
    pub(crate) grants: Grants,
    /// Receivers that may be able to take more.
    pub(crate) hungry: BTreeSet<LinkId>,
    /// Senders with messages that came together.
    pub(crate) grouped: BTreeSet<LinkId>,
    /// Bytes of messages that the engine was given and has not answered.
    pub(crate) sending_bytes: usize,
    /// What is asked of the engine.
    work: FuturesUnordered<BoxFuture<'static, Then>>,
    /// Answers that have come.
    answered: VecDeque<Then>,
    /// Since when there is no link.
    linkless_since_ms: u64,
    /// When the peer last took something of what waits for it.
    taken_at_ms: u64,
    is_closing: bool,
}

impl Talk {
    pub(crate) fn new(amqp: Connection, shared: Arc<Shared>) -> Talk {
        let now_ms = elapsed_ms(&*shared.clock);
        Talk {
            amqp,
            shared,
            links: HashMap::new(),
            completions: Completions::default(),
            grants: Grants::default(),
            hungry: BTreeSet::new(),
            grouped: BTreeSet::new(),
            sending_bytes: 0,
            work: FuturesUnordered::new(),
            answered: VecDeque::new(),
            linkless_since_ms: now_ms,
            taken_at_ms: now_ms,
            is_closing: false,
        }
    }

    /// Asks something, and does the rest when it is answered. What is asked first reaches the engine first.
    pub(crate) fn start<F, T>(&mut self, asked: F)
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(&mut Talk) + Send + 'static,
    {
        let mut asked: BoxFuture<'static, Then> = asked.map(|then| -> Then { Box::new(then) }).boxed();
        match (&mut asked).now_or_never() {
            Some(then) => self.answered.push_back(then),
            None => self.work.push(asked),
        }
    }

    /// Talks until one side ends the connection.
    pub(crate) async fn over(mut self, stream: TcpStream) {
        if let Err(error) = self.talk(&stream).await {
            tracing::debug!(%error, "end an AMQP connection");
        }
    }

    async fn talk(&mut self, stream: &TcpStream) -> io::Result<()> {
        loop {
            self.turn();
            self.write(stream)?;
            let has_output = !self.amqp.output().is_empty();
            if self.amqp.is_finished() && !has_output {
                return Ok(());
            }
            self.wait(stream, has_output).await?;
        }
    }

    /// Does everything that can be done without waiting.
    fn turn(&mut self) {
        loop {
            let mut is_idle = true;
            while let Some(event) = self.amqp.next_event() {
                self.heed(event);
                is_idle = false;
            }
            self.send_groups();
            self.send_completions();
            while let Some(then) = self.answered.pop_front() {
                then(self);
                is_idle = false;
            }
            self.feed_receivers();
            if is_idle && self.answered.is_empty() {
                return;
            }
        }
    }

    fn heed(&mut self, event: Event) {
        match event {
            Event::Sasl { .. } => self.amqp.answer_sasl(true),
            Event::Opened(_) | Event::Ended { .. } => {}
            Event::Attached { link, attach } => self.attach(link, *attach),
            Event::Message { link, delivery, format, payload, settled, .. } => {
                self.take_message(link, (delivery, settled), format, payload);
            }
            Event::TooLarge { link, delivery, settled } => self.reject_too_large(link, delivery, settled),
            Event::Settled { link, delivery, outcome, settled } => {
                self.settle(link, delivery, outcome, settled);
            }
            Event::Credit { link, drain, .. } => self.note_credit(link, drain),
            Event::Detached { link, .. } => {
                self.links.remove(&link);
                self.note_links();
            }
            Event::Closed { error } => {
                if let Some(error) = error {
                    tracing::debug!(%error, "an AMQP connection was closed");
                }
                self.links.clear();
                self.is_closing = true;
            }
        }
    }

    /// Ends a link from this side.
    pub(crate) fn detach(&mut self, link: LinkId, refusal: Refusal) {
        self.amqp.detach(link, Some(refusal.into()));
        self.links.remove(&link);
        self.note_links();
    }

    fn note_links(&mut self) {
        if self.links.is_empty() {
            self.linkless_since_ms = elapsed_ms(&*self.shared.clock);
        }
    }

    fn write(&mut self, stream: &TcpStream) -> io::Result<()> {
        let mut has_written = false;
        while !self.amqp.output().is_empty() {
            match stream.try_write(self.amqp.output()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.amqp.output().advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            has_written = true;
        }
        if has_written || self.amqp.output().is_empty() {
            self.taken_at_ms = elapsed_ms(&*self.shared.clock);
        }
        Ok(())
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, stream: &TcpStream, has_output: bool) -> io::Result<()> {
        // Who sends faster than the engine commits, or takes less than it asks for, is not read meanwhile.
        let reads = self.sending_bytes < limits::SERVICE_BUS_SENDING_BYTES && self.amqp.has_room();
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
        let patience = self.patience(has_output);
        tokio::select! {
            ready = ready => {
                if ready?.is_some_and(|ready| ready.is_readable()) && reads {
                    self.read(stream)?;
                }
            }
            Some(then) = self.work.next() => {
                self.answered.push_back(then);
                while let Some(Some(then)) = self.work.next().now_or_never() {
                    self.answered.push_back(then);
                }
            }
            () = after(patience) => self.look_at_the_clock()?,
            () = stopping.cancelled(), if !self.is_closing => self.force("the server is about to stop"),
        }
        Ok(())
    }

    fn read(&mut self, stream: &TcpStream) -> io::Result<()> {
        // On the stack: thousands of connections that say nothing need no buffer each.
        let mut buffer = [0; limits::AMQP_READ_BYTES];
        let now_ms = elapsed_ms(&*self.shared.clock);
        match stream.try_read(&mut buffer) {
            Ok(0) => {
                self.amqp.receive_end();
                if self.is_closing {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.is_closing = true;
                Ok(())
            }
            Ok(count) => {
                self.amqp.receive(&buffer[..count], now_ms);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// How long it waits for anything at most.
    fn patience(&self, has_output: bool) -> Duration {
        let now_ms = elapsed_ms(&*self.shared.clock);
        let linkless =
            self.links.is_empty().then(|| self.linkless_since_ms + millis(limits::SERVICE_BUS_LINKLESS_MAX));
        let stalled = has_output.then(|| self.taken_at_ms + millis(limits::AMQP_WRITE_PATIENCE));
        let due = [self.amqp.deadline_ms(), linkless, stalled].into_iter().flatten().min();
        due.map_or(limits::RECEIVE_WAIT, |due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms)))
    }

    fn look_at_the_clock(&mut self) -> io::Result<()> {
        let now_ms = elapsed_ms(&*self.shared.clock);
        self.amqp.tick(now_ms);
        let stalled_ms = now_ms.saturating_sub(self.taken_at_ms);
        if !self.amqp.output().is_empty() && stalled_ms >= millis(limits::AMQP_WRITE_PATIENCE) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing"));
        }
        let linkless_ms = now_ms.saturating_sub(self.linkless_since_ms);
        if self.links.is_empty()
            && !self.is_closing
            && linkless_ms >= millis(limits::SERVICE_BUS_LINKLESS_MAX)
        {
            self.force("it had no links for too long");
        }
        Ok(())
    }

    /// Ends the connection, as an operator would.
    fn force(&mut self, why: &'static str) {
        self.amqp.close(Some(AmqpError::new("amqp:connection:forced", why)));
        self.links.clear();
        self.is_closing = true;
    }
}

impl From<Refusal> for AmqpError {
    fn from(refusal: Refusal) -> AmqpError {
        AmqpError::new(refusal.condition, refusal.description)
    }
}

/// Milliseconds by the clock that never runs backwards.
pub(crate) fn elapsed_ms(clock: &dyn Clock) -> u64 {
    millis(clock.elapsed())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

async fn after(patience: Duration) {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(patience, never).await;
}
