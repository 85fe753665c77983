//! The one thread that writes: it takes all that waits, commits it as one transaction, and then answers.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::Result;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::Timestamp;
use tokio::sync::oneshot;

use crate::baseline::lanes::Held;
use crate::baseline::lanes::Lanes;
use crate::baseline::tables::prepare_file;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::Options;
use crate::bench::plan::Take;
use crate::bench::raw::wait;

/// Requests in one transaction, as many as the engine takes.
const TURN_MAX: usize = 1_024;

/// How long the thread sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// What is asked of the thread.
pub(crate) enum Request {
    Send { messages: Vec<BenchMessage>, reply: oneshot::Sender<()> },
    Receive { take: Take, until: Timestamp, reply: oneshot::Sender<Vec<Held>> },
    Settle { batch: Vec<Held>, verdicts: Vec<MessageEnd>, reply: oneshot::Sender<bool> },
    Close { reply: oneshot::Sender<()> },
}

/// A receiver that waits.
struct Waiter {
    take: Take,
    until: Timestamp,
    reply: oneshot::Sender<Vec<Held>>,
}

/// Answers that leave when their transaction is on disk.
#[derive(Default)]
struct Answers {
    done: Vec<oneshot::Sender<()>>,
    settled: Vec<(oneshot::Sender<bool>, bool)>,
    received: Vec<(oneshot::Sender<Vec<Held>>, Vec<Held>)>,
}

/// Serves requests until it is closed or fails.
pub(crate) fn write(path: &Path, options: Options, intake: &Receiver<Request>) -> Result<()> {
    let connection = Connection::open(path)?;
    prepare_file(&connection)?;
    let closing = serve(&connection, options, intake)?;
    connection.close().map_err(|(_, error)| error)?;
    for reply in closing {
        let _ = reply.send(());
    }
    Ok(())
}

fn serve(
    connection: &Connection,
    options: Options,
    intake: &Receiver<Request>,
) -> Result<Vec<oneshot::Sender<()>>> {
    let clock = SystemClock::default();
    let mut lanes = Lanes::load(connection)?;
    let (mut waiters, mut unreceived, mut closing) = (VecDeque::new(), Vec::new(), Vec::new());
    while closing.is_empty() {
        let patience = patience(&lanes, &waiters, &unreceived, clock.now());
        let requests = gather(intake, patience);
        let (now, mut answers) = (clock.now(), Answers::default());
        lanes.tables.begin.execute([])?;
        lanes.take_back(&std::mem::take(&mut unreceived))?;
        lanes.wake(now)?;
        for request in requests {
            match request {
                Request::Send { messages, reply } => {
                    lanes.send(messages)?;
                    answers.done.push(reply);
                }
                Request::Receive { take, until, reply } => waiters.push_back(Waiter { take, until, reply }),
                Request::Settle { batch, verdicts, reply } => {
                    answers.settled.push((reply, lanes.settle(&batch, &verdicts, now)?));
                }
                Request::Close { reply } => closing.push(reply),
            }
        }
        hand_out(&mut lanes, &mut waiters, &mut answers, now)?;
        lanes.flush()?;
        lanes.tables.commit.execute([])?;
        if std::mem::take(&mut lanes.has_written) {
            wait(options.sync_delay);
        }
        unreceived = answers.release();
    }
    Ok(closing)
}

/// Serves those who wait, in the order in which they came.
fn hand_out(
    lanes: &mut Lanes<'_>,
    waiters: &mut VecDeque<Waiter>,
    answers: &mut Answers,
    now: Timestamp,
) -> Result<()> {
    waiters.retain(|waiter| !waiter.reply.is_closed());
    while let Some(waiter) = waiters.pop_front() {
        let batch = lanes.receive(waiter.take, now)?;
        if batch.is_empty() && waiter.until > now {
            waiters.push_front(waiter);
            break;
        }
        answers.received.push((waiter.reply, batch));
    }
    Ok(())
}

impl Answers {
    /// Lets the answers out; returns what nobody was there to receive.
    fn release(self) -> Vec<Held> {
        for reply in self.done {
            let _ = reply.send(());
        }
        for (reply, all_held) in self.settled {
            let _ = reply.send(all_held);
        }
        let unreceived = self.received.into_iter().filter_map(|(reply, batch)| reply.send(batch).err());
        unreceived.flatten().collect()
    }
}

/// How long to wait for the next request.
fn patience(lanes: &Lanes<'_>, waiters: &VecDeque<Waiter>, unreceived: &[Held], now: Timestamp) -> Duration {
    if !unreceived.is_empty() {
        return Duration::ZERO;
    }
    let given_up = waiters.front().map(|waiter| waiter.until);
    lanes.next_due().into_iter().chain(given_up).min().map_or(IDLE, |due| due.since(now).min(IDLE))
}

/// Waits for a request, then takes what else has come.
fn gather(intake: &Receiver<Request>, patience: Duration) -> Vec<Request> {
    match intake.recv_timeout(patience) {
        Ok(first) => std::iter::once(first).chain(intake.try_iter().take(TURN_MAX - 1)).collect(),
        Err(RecvTimeoutError::Timeout) => Vec::new(),
        // All handles are gone without a word: end as if one had closed it.
        Err(RecvTimeoutError::Disconnected) => vec![Request::Close { reply: oneshot::channel().0 }],
    }
}
