//! Drives engine and reference with the same random operations and compares every answer and every state.
//!
//! `SERIATIM_SEED=n` replays one seed; `SERIATIM_SEEDS=n` sets how many are tried.

use std::collections::BTreeMap;
use std::time::Duration;

use seriatim::Clock;
use seriatim::Delivery;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Order;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::delivery::Redriven;
use seriatim::id::LockToken;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::ExpiryPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::HoldKind;
use seriatim::testing::ManualClock;
use seriatim::view::Deferral;
use seriatim::view::MessageStatus;

use crate::model::random::Random;
use crate::model::reference::Cause;
use crate::model::reference::GAP;
use crate::model::reference::Key;
use crate::model::reference::LOCK;
use crate::model::reference::Message as Stored;
use crate::model::reference::Options;
use crate::model::reference::Policy;
use crate::model::reference::Reference;
use crate::model::reference::Sent;
use crate::model::reference::State;
use crate::model::reference::WINDOW;
use crate::model::seeds::play;

const STEPS: usize = 120;
const SEEDS_DEFAULT: u64 = 150;

#[tokio::test]
async fn the_engine_answers_as_the_naive_reference_does() {
    play("the naive reference", SEEDS_DEFAULT, |seed| async move {
        let mut drive = Drive::new(seed).await;
        for _ in 0..STEPS {
            drive.step().await;
            drive.compare().await;
        }
        drive.engine.close().await;
    })
    .await;
}

struct Drive {
    engine: Engine,
    clock: ManualClock,
    queue: Queue,
    random: Random,
    reference: Reference,
    /// Deliveries by number: those that are held, and those whose lock was lost.
    deliveries: Vec<(u64, Delivery)>,
    /// The token of the last hand-out of each number; earlier ones are void.
    tokens: BTreeMap<u64, LockToken>,
    last: String,
}

fn options(random: &mut Random) -> Options {
    Options {
        positional: random.chance(70),
        count_max: random.pick(&[1, 2, 3]),
        exhausted: random.pick(&[Policy::Hold, Policy::Skip, Policy::Quarantine]),
        skip_gap: random.chance(50),
        drop_expired: random.chance(50),
        hold_on_defer: random.chance(30),
        keep_deferred: random.chance(30),
        window: random.chance(50),
    }
}

fn queue_options(options: Options) -> QueueOptions {
    let then = if options.skip_gap { GapAction::Skip } else { GapAction::Hold };
    QueueOptions::default()
        .order(if options.positional { Order::POSITION } else { Order::Arrival })
        .lock(Duration::from_millis(LOCK))
        .delivery_count_max(options.count_max)
        .exhausted(match options.exhausted {
            Policy::Hold => ExhaustedPolicy::Hold,
            Policy::Skip => ExhaustedPolicy::Skip,
            Policy::Quarantine => ExhaustedPolicy::Quarantine,
        })
        .gap(GapPolicy { wait: Duration::from_millis(GAP), then })
        .expired(if options.drop_expired { ExpiryPolicy::Drop } else { ExpiryPolicy::DeadLetter })
        .hold_on_defer(options.hold_on_defer)
        .keep_deferred(options.keep_deferred)
        .duplicate_window(options.window.then_some(Duration::from_millis(WINDOW)))
}

impl Drive {
    async fn new(seed: u64) -> Drive {
        let (engine, clock) = seriatim::testing::engine().await.expect("an engine in memory opens");
        let mut random = Random::new(seed);
        let options = options(&mut random);
        let queue = engine.client().create_queue("q", queue_options(options)).await.expect("a new queue");
        let reference = Reference::new(clock.now().as_millis(), options);
        Drive {
            engine,
            clock,
            queue,
            random,
            reference,
            deliveries: Vec::new(),
            tokens: BTreeMap::new(),
            last: String::new(),
        }
    }

    async fn step(&mut self) {
        match self.random.below(100) {
            0..30 => self.send().await,
            30..52 => self.receive().await,
            52..74 => self.settle().await,
            74..86 => self.advance().await,
            86..89 => self.fetch().await,
            89..91 => self.cancel().await,
            91..93 => self.redrive().await,
            _ => self.operate().await,
        }
    }

    fn dead_letter(&mut self) -> char {
        self.random.pick(&['a', 'b', 'c'])
    }

    fn any_number(&mut self) -> u64 {
        let known: Vec<u64> = self.reference.messages.iter().map(|message| message.seq).collect();
        match known.is_empty() || self.random.chance(5) {
            true => self.random.below(30),
            false => self.random.pick(&known),
        }
    }

    /// An instant at, just before or just after something interesting.
    fn instant(&mut self) -> u64 {
        let now = self.reference.now;
        now + self.random.pick(&[1, 999, 1_000, 1_001, GAP - 1, GAP, GAP + 1, LOCK - 1, LOCK, LOCK + 1])
    }

    async fn send(&mut self) {
        let dead_letter = self.random.chance(90).then(|| self.dead_letter());
        let wants_position = self.reference.options.positional && dead_letter.is_some();
        let position = (wants_position != self.random.chance(2)).then(|| 1 + self.random.below(8));
        let id = self.random.chance(40).then(|| self.random.below(4));
        let schedule = self.random.chance(15).then(|| self.instant());
        let lives = self.random.chance(15).then(|| self.random.pick(&[1_000, GAP, LOCK]));
        self.last = format!("send {dead_letter:?} {position:?} id {id:?} at {schedule:?} lives {lives:?}");
        let mut message = Message::new("same");
        if let Some(dead_letter) = dead_letter {
            message = message.workflow(dead_letter);
        }
        if let Some(position) = position {
            message = message.position(position);
        }
        if let Some(id) = id {
            message = message.message_id(id.to_string());
        }
        if let Some(at) = schedule {
            message = message.schedule_at(Timestamp::from_millis(at));
        }
        if let Some(lives) = lives {
            message = message.time_to_live(Duration::from_millis(lives));
        }
        let sent = match self.queue.send(message).await {
            Ok(Receipt::Accepted(number)) => Sent::Accepted(number.get()),
            Ok(Receipt::Duplicate(number)) => Sent::Duplicate(number.get()),
            Ok(Receipt::DeadLettered(number)) => Sent::DeadLettered(number.get()),
            Ok(Receipt::AlreadySettled) => Sent::AlreadySettled,
            Err(_) => Sent::Refused,
        };
        let expected = self.reference.send(dead_letter, position, id, schedule, lives);
        assert_eq!(sent, expected, "{}", self.last);
    }

    async fn receive(&mut self) {
        self.last = "receive".to_owned();
        let received = self.queue.receive(Duration::ZERO).await.expect("the queue exists");
        let offered = self.reference.offered();
        let Some(delivery) = received else {
            assert!(offered.is_empty(), "work was offered but not given: {offered:?}");
            return;
        };
        let number = delivery.sequence_number().get();
        assert!(offered.contains(&number), "{number} was given, {offered:?} were offered");
        self.reference.hand_out(number);
        let count = self.reference.message(number).map(|message| message.count);
        assert_eq!(Some(delivery.message().delivery_count), count);
        self.keep(number, delivery);
    }

    fn keep(&mut self, number: u64, delivery: Delivery) {
        self.tokens.insert(number, delivery.lock_token());
        self.deliveries.push((number, delivery));
    }

    async fn fetch(&mut self) {
        let number = self.any_number();
        self.last = format!("fetch {number}");
        let fetched = self.queue.receive_deferred(&[SequenceNumber::new(number)]).await;
        assert_eq!(fetched.is_ok(), self.reference.can_fetch(number), "{}", self.last);
        if let Ok(mut deliveries) = fetched {
            self.reference.hand_out(number);
            self.keep(number, deliveries.pop().expect("one was asked for"));
        }
    }

    async fn settle(&mut self) {
        if self.deliveries.is_empty() {
            return;
        }
        let index = usize::try_from(self.random.below(self.deliveries.len() as u64)).expect("small");
        let (number, mut delivery) = self.deliveries.swap_remove(index);
        let last = self.tokens.get(&number) == Some(&delivery.lock_token());
        let locked = |message: &Stored| matches!(message.state, State::Locked { .. });
        let held = last && self.reference.message(number).is_some_and(locked);
        let due = self.random.chance(60).then(|| self.instant());
        let at = due.map(Timestamp::from_millis);
        let kind = self.random.below(7);
        self.last = format!("settle {number} kind {kind} due {due:?} held {held}");
        let settled = match (kind, at) {
            (0 | 1, _) => delivery.complete().await,
            (2, Some(at)) => delivery.abandon_with(seriatim::Abandon::at(at)).await,
            (2, None) => delivery.abandon().await,
            (3, Some(at)) => delivery.defer_until(at).await,
            (3, None) => delivery.defer().await,
            (4, _) => delivery.dead_letter("asked", "").await,
            _ => delivery.release().await,
        };
        assert_eq!(settled.is_ok(), held, "{}: {settled:?}", self.last);
        match kind {
            _ if !held => {}
            0 | 1 => self.reference.complete(number),
            2 => self.reference.fail(number, due),
            3 => self.reference.defer(number, due),
            4 => self.reference.dead_letter(number),
            _ => self.reference.release(number),
        }
    }

    async fn cancel(&mut self) {
        let (number, kind) = (self.any_number(), self.random.below(4));
        let (sequence, at) = (SequenceNumber::new(number), self.instant());
        self.last = format!("cancel {number} kind {kind} at {at}");
        let (done, expected) = match kind {
            0 => (self.queue.cancel_and_void(sequence).await, self.reference.cancel(number, true)),
            1 => {
                let done = self.queue.reschedule(sequence, Timestamp::from_millis(at)).await;
                (done, self.reference.reschedule(number, at))
            }
            _ => (self.queue.cancel(sequence).await, self.reference.cancel(number, false)),
        };
        assert_eq!(done.is_ok(), expected, "{}", self.last);
    }

    async fn redrive(&mut self) {
        let number = self.any_number();
        self.last = format!("redrive {number}");
        let redriven = match self.queue.redrive(SequenceNumber::new(number)).await {
            Ok(Redriven::InPlace) => Some(None),
            Ok(Redriven::AsNew(number)) => Some(Some(number.get())),
            Err(_) => None,
        };
        assert_eq!(redriven, self.reference.redrive(number), "{}", self.last);
    }

    async fn operate(&mut self) {
        let dead_letter = self.dead_letter();
        let key = Key::Named(dead_letter);
        let workflow = self.queue.workflow(dead_letter.to_string()).expect("a good ID");
        let kind = self.random.below(7);
        self.last = format!("operate {dead_letter} kind {kind}");
        let (done, expected) = match kind {
            0 => {
                self.reference.hold(key);
                (workflow.hold("held").await, true)
            }
            1 => (workflow.resume().await, self.reference.resume(key)),
            2 => (workflow.retry_now().await, self.reference.retry_now(key)),
            3 => (workflow.skip_head("skip").await, self.reference.skip_head(key)),
            4 => (workflow.skip_gap().await, self.reference.skip_gap(key)),
            5 => {
                let cause = self.random.pick(&[HoldKind::Operator, HoldKind::Exhausted, HoldKind::Gap]);
                (workflow.resume_for(cause).await, self.reference.resume_for(key, cause))
            }
            _ => (workflow.release_lock().await, self.reference.release_lock(key)),
        };
        assert_eq!(done.is_ok(), expected, "{}: {done:?}", self.last);
    }

    /// Moves the clock to what is due next, or just before it; never past it.
    async fn advance(&mut self) {
        let due = self.reference.next_due();
        let soon = self.reference.now + self.random.pick(&[1, 500, 5_000]);
        let target = match due {
            Some(due) if self.random.chance(60) => due,
            Some(due) => soon.min((due - 1).max(self.reference.now)),
            None => soon,
        };
        self.last = format!("advance to {target}");
        self.clock.set(Timestamp::from_millis(target));
        self.reference.advance(target);
        // One turn may leave to the next what is to be swept of the last of several workflows.
        self.queue.view().await.expect("the queue exists");
    }

    async fn compare(&self) {
        let page = self.queue.peek(SequenceNumber::new(0), 1_000).await.expect("the queue exists");
        let shown: Vec<(u64, u32, State)> = page
            .iter()
            .map(|view| (view.sequence_number.get(), view.delivery_count, self.state_of(&view.status)))
            .collect();
        let mut expected: Vec<(u64, u32, State)> = self
            .reference
            .messages
            .iter()
            .map(|message| (message.seq, message.count, self.reference.shown(message)))
            .map(|(seq, count, state)| (seq, count, plain(state)))
            .collect();
        expected.sort_unstable_by_key(|(seq, ..)| *seq);
        assert_eq!(shown, expected, "after {}\n{:?}", self.last, self.reference.options);
        let counts = self.queue.view().await.expect("the queue exists").counts;
        assert!(counts.conserved(), "after {}: {counts:?}", self.last);
        let ends = (counts.accepted, counts.completed, counts.stored());
        let stored = self.reference.messages.len() as u64;
        assert_eq!(ends, (self.reference.accepted, self.reference.completed, stored), "after {}", self.last);
        for dead_letter in ['a', 'b', 'c'] {
            let workflow = self.queue.workflow(dead_letter.to_string()).expect("a good ID");
            let view = workflow.view().await.expect("the queue exists");
            let holds = view.map(|view| view.holds).unwrap_or_default();
            let causes: Vec<HoldKind> = holds.iter().map(|hold| hold.cause.kind()).collect();
            let expected = self.reference.held(Key::Named(dead_letter));
            let expected: Vec<HoldKind> = expected.into_iter().map(Cause::kind).collect();
            assert_eq!(causes, expected, "{dead_letter} after {}", self.last);
        }
    }

    fn state_of(&self, status: &MessageStatus) -> State {
        let millis = |until: &Option<Timestamp>| until.map(Timestamp::as_millis);
        match status {
            MessageStatus::Ready => State::Ready,
            MessageStatus::Locked { until } => plain_lock(until.as_millis()),
            MessageStatus::Scheduled { until } => State::Scheduled(until.as_millis()),
            MessageStatus::Deferred { why: Deferral::Early, .. } => State::Early,
            MessageStatus::Deferred { why: Deferral::Retry, until } => State::Failed(millis(until)),
            MessageStatus::Deferred { why: Deferral::ByConsumer, until } => {
                State::ByConsumer { due: millis(until), aside: false }
            }
            _ => State::Dead(""),
        }
    }
}

/// A state without what an observer does not see.
fn plain(state: State) -> State {
    match state {
        State::Locked { until, .. } => plain_lock(until),
        State::ByConsumer { due, .. } => State::ByConsumer { due, aside: false },
        State::Dead(_) => State::Dead(""),
        other => other,
    }
}

/// A lock as an observer sees it.
fn plain_lock(until: u64) -> State {
    State::Locked { aside: false, until, back: None, asked: false }
}
