//! The process that is killed: the test binary itself, started again with a task.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use seriatim::Engine;
use seriatim::MessageId;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::queue::Backoff;
use seriatim::view::MessageStatus;
use seriatim::view::MessageView;
use tokio::sync::Semaphore;

use crate::kill::drain;
use crate::kill::name::Ordered;
use crate::kill::output_lines;
use crate::kill::output_lines::Role;
use crate::kill::output_lines::Task;
use crate::kill::output_lines::say;
use crate::kill::receiver;
use crate::kill::report::Plan;
use crate::kill::report::Report;
use crate::kill::report::Seen;
use crate::kill::report::Status;
use crate::kill::sender;
use crate::kill::zombie;
use crate::random::Random;

/// Longer than any process here lives: who loses a lock in these loads has found a defect.
pub(crate) const LOCK: Duration = Duration::from_secs(60);

/// Journal bytes before it is flushed: small, so that kills also fall into flushing.
const WINDOW_BYTES: u64 = 128 * 1024;

/// How long message IDs are remembered: longer than it takes to start a process again.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(600);

/// Messages that may wait at once, so that looking at all of them at each start stays quick.
const WAITING_MAX: usize = 100;

/// Messages one look lists.
const PAGE: usize = 1_000;

const SENDERS: u64 = 4;
const RECEIVERS: u64 = 6;
const RECEIVERS_OF_A_FILLER: u64 = 1;

/// What the parts of a load share.
pub(crate) struct Load {
    pub(crate) task: Task,
    pub(crate) engine: Engine,
    pub(crate) queues: [(Ordered, Queue); 2],
    /// A permit for each message that may still be sent.
    pub(crate) room: Semaphore,
    /// What was set aside and can be fetched by number.
    pub(crate) aside: Mutex<Vec<(Ordered, SequenceNumber)>>,
}

#[test]
fn a_process_without_a_task_does_nothing() {
    let Some(task) = Task::of_this_process() else { return };
    // The harness may have begun a line.
    println!();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    match task.role {
        Role::Zombie => runtime.block_on(zombie::live(task)),
        _ => runtime.block_on(live(task)),
    }
    std::process::exit(0);
}

async fn live(task: Task) {
    let load = Arc::new(open(task).await);
    look(&load).await;
    let Some(plan) = output_lines::hear::<Plan>() else { return };
    end_with_the_parent();
    prepare(&load, &plan).await;
    if load.task.role == Role::Drainer {
        drain::drain(&load).await;
        let load = Arc::into_inner(load).expect("nobody else works on it");
        return load.engine.close().await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..SENDERS {
        let own = plan.next.iter().filter(|name| u64::from(name.workflow) % SENDERS == index);
        tasks.spawn(sender::send(load.clone(), index, own.copied().collect()));
    }
    let receivers = if load.task.role == Role::Filler { RECEIVERS_OF_A_FILLER } else { RECEIVERS };
    for index in 0..receivers {
        tasks.spawn(receiver::receive(load.clone(), index));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a part of the load panicked");
    }
}

/// Ends this process when its parent is gone, however that ended.
fn end_with_the_parent() {
    let watch = || {
        while output_lines::hear::<Plan>().is_some() {}
        std::process::exit(3);
    };
    let thread = std::thread::Builder::new().name("parent-watch".to_owned()).spawn(watch);
    drop(thread.expect("a thread starts"));
}

async fn open(task: Task) -> Load {
    match open_file(&task).await {
        Ok((engine, [position, arrival])) => {
            let queues = [(Ordered::Position, position), (Ordered::Arrival, arrival)];
            Load { task, engine, queues, room: Semaphore::new(0), aside: Mutex::default() }
        }
        Err(error) => {
            say(&Report::Stopped(error.to_string()));
            std::process::exit(0)
        }
    }
}

async fn open_file(task: &Task) -> Result<(Engine, [Queue; 2]), seriatim::Error> {
    let engine = Engine::builder(&task.file).window_bytes(WINDOW_BYTES).open().await?;
    let [position, arrival] = Ordered::BOTH;
    let queues = [
        engine.client().create_queue(position.queue(), options(position)).await?,
        engine.client().create_queue(arrival.queue(), options(arrival)).await?,
    ];
    Ok((engine, queues))
}

fn options(ordered: Ordered) -> QueueOptions {
    let order = match ordered {
        Ordered::Position => seriatim::Order::POSITION,
        Ordered::Arrival => seriatim::Order::Arrival,
    };
    let backoff = Backoff { first: Duration::from_millis(2), factor: 2, max: Duration::from_millis(5) };
    QueueOptions::default()
        .order(order)
        .backoff(backoff)
        .lock(LOCK)
        .delivery_count_max(u32::MAX)
        .duplicate_window(DUPLICATE_WINDOW)
}

/// Says all that is stored, before anything is done.
async fn look(load: &Load) {
    let mut waiting = 0;
    for (ordered, queue) in &load.queues {
        let mut from = SequenceNumber::new(0);
        loop {
            let page = queue.peek(from, PAGE).await.expect("the queue is there");
            for message in &page {
                from = SequenceNumber::new(message.sequence_number.get() + 1);
                let status = status(message);
                if status == Status::Aside {
                    load.set_aside(*ordered, message.sequence_number);
                }
                waiting += usize::from(status != Status::DeadLettered);
                say(&Report::Found(seen(queue, message), status));
            }
            if page.len() < PAGE {
                break;
            }
        }
    }
    let room = if load.task.role == Role::Filler { Semaphore::MAX_PERMITS / 2 } else { WAITING_MAX };
    load.room.add_permits(room.saturating_sub(waiting));
    say(&Report::Looked);
}

fn status(message: &MessageView) -> Status {
    match message.status {
        MessageStatus::DeadLettered(_) => Status::DeadLettered,
        MessageStatus::Deferred { why: seriatim::view::Deferral::ByConsumer, .. } => Status::Aside,
        _ => Status::Waiting,
    }
}

fn seen(queue: &Queue, message: &MessageView) -> Seen {
    Seen {
        queue: queue.name().to_string(),
        workflow_id: message.workflow_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        message_id: message.message_id.as_ref().map(MessageId::to_string).unwrap_or_default(),
        sequence: message.sequence_number.get(),
        delivery_count: message.delivery_count,
        body: String::from_utf8_lossy(&message.body).into_owned(),
    }
}

/// Does what the ledger asks for before the load begins.
async fn prepare(load: &Load, plan: &Plan) {
    if plan.purge {
        say(&Report::Purging);
        for (_, queue) in &load.queues {
            queue.purge_dead_letters().await.expect("the queue is there");
        }
    }
    for name in &plan.again {
        sender::send_one(load, *name).await;
    }
}

impl Load {
    pub(crate) fn queue(&self, ordered: Ordered) -> &Queue {
        let [(_, position), (_, arrival)] = &self.queues;
        match ordered {
            Ordered::Position => position,
            Ordered::Arrival => arrival,
        }
    }

    /// Says that the engine cannot answer any more, and lets nobody wait for room.
    pub(crate) fn stop(&self, why: impl ToString) {
        self.room.close();
        say(&Report::Stopped(why.to_string()));
    }

    pub(crate) fn set_aside(&self, ordered: Ordered, number: SequenceNumber) {
        self.aside.lock().expect("nobody panics with it").push((ordered, number));
    }

    pub(crate) fn pick_aside(&self, random: &mut Random) -> Option<(Ordered, SequenceNumber)> {
        let mut aside = self.aside.lock().expect("nobody panics with it");
        let count = aside.len() as u64;
        (count > 0).then(|| aside.swap_remove(usize::try_from(random.below(count)).expect("a small number")))
    }

    /// The chance of one part of the load in this life.
    pub(crate) fn random(&self, part: u64) -> Random {
        Random::new(self.task.seed ^ self.task.start << 32 ^ part << 16)
    }
}
