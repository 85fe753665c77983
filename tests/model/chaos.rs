//! Everything that can be asked, at random and in every order: whatever comes, the engine answers and accounts for all.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::AcceptedWorkflow;
use seriatim::Client;
use seriatim::Completion;
use seriatim::Delivery;
use seriatim::Message;
use seriatim::Order;
use seriatim::Outcome;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::Run;
use seriatim::SequenceNumber;
use seriatim::error::OperationError;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::ExpiryPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::LatePolicy;
use seriatim::testing::ManualClock;

use crate::model::random::Random;
use crate::model::seeds::play;

const STEPS: usize = 200;
const SEEDS: u64 = 120;

/// Rows are counted by a backup, which takes longer than the rest: only for every so many seeds.
const ROWS_COUNTED_EVERY: u64 = 8;

#[tokio::test]
async fn whatever_is_asked_the_engine_answers_and_accounts_for_every_message() {
    play("every verb at random", SEEDS, |seed| async move {
        let mut chaos = Chaos::new(seed).await;
        for _ in 0..STEPS {
            chaos.step().await;
            chaos.check().await;
        }
        chaos.finish().await;
    })
    .await;
}

pub(crate) struct Chaos {
    pub(crate) engine: seriatim::Engine,
    pub(crate) client: Client,
    clock: ManualClock,
    queue: Queue,
    order: Order,
    rows_at_first: Option<u64>,
    random: Random,
    deliveries: Vec<Delivery>,
    runs: Vec<Run>,
    pub(crate) taken: Vec<AcceptedWorkflow>,
    last: String,
}

/// A refusal is an answer; an engine that has stopped is none.
fn answered<T, R: std::error::Error + 'static>(
    last: &str,
    result: Result<T, OperationError<R>>,
) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(OperationError::Unavailable(unavailable)) => panic!("{last}: {unavailable}"),
        Err(_) => None,
    }
}

/// How many rows are stored.
async fn rows(client: &Client) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    client.backup(folder.path().join("copy.redb")).await.expect("the engine goes on")
}

impl Chaos {
    async fn new(seed: u64) -> Chaos {
        let (engine, clock) = seriatim::testing::engine().await.expect("an engine in memory opens");
        Chaos::on(engine, clock, seed).await
    }

    /// A story on an engine that is there.
    pub(crate) async fn on(engine: seriatim::Engine, clock: ManualClock, seed: u64) -> Chaos {
        let mut random = Random::new(seed);
        let options = QueueOptions::default()
            .order(random.pick(&[Order::After, Order::After, Order::POSITION, Order::Arrival, Order::None]))
            .delivery_count_max(random.pick(&[1, 2, 3]))
            .exhausted(random.pick(&[
                ExhaustedPolicy::Hold,
                ExhaustedPolicy::Skip,
                ExhaustedPolicy::Quarantine,
            ]))
            .gap(GapPolicy {
                wait: Duration::from_secs(10),
                then: random.pick(&[GapAction::Hold, GapAction::Skip, GapAction::Wait]),
            })
            .late(random.pick(&[LatePolicy::Ignore, LatePolicy::Refuse, LatePolicy::DeadLetter]))
            .expired(random.pick(&[ExpiryPolicy::Drop, ExpiryPolicy::DeadLetter]))
            .hold_on_defer(random.chance(30))
            .duplicate_window(random.chance(30).then_some(Duration::from_secs(20)))
            .forget_after(Duration::from_secs(random.pick(&[1, 50, 10_000])))
            .remember_cursor(Duration::from_secs(random.pick(&[1, 50, 10_000])))
            .early_max(random.pick(&[2, 1_000]));
        let order = options.order;
        let client = engine.client().clone();
        let queue = client.create_queue("q", options).await.expect("a new queue");
        let rows_at_first = match seed % ROWS_COUNTED_EVERY {
            0 => Some(rows(&client).await),
            _ => None,
        };
        let (deliveries, runs, taken) = (Vec::new(), Vec::new(), Vec::new());
        Chaos {
            engine,
            client,
            clock,
            queue,
            order,
            rows_at_first,
            random,
            deliveries,
            runs,
            taken,
            last: String::new(),
        }
    }

    fn number(&mut self) -> SequenceNumber {
        SequenceNumber::new(self.random.pick(&[0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, u64::MAX]))
    }

    fn workflow(&mut self) -> &'static str {
        self.random.pick(&["a", "b"])
    }

    fn message(&mut self) -> Message {
        let place = 1 + self.random.below(12);
        let mut message = Message::new("body");
        let named = self.random.chance(90);
        if named {
            message = message.workflow(self.workflow());
        }
        let order = if self.random.chance(97) { self.order } else { Order::After };
        message = match order {
            Order::After if named && place == 1 => message.first().message_id("m1"),
            Order::After if named => {
                let predecessor = if self.random.chance(85) { place - 1 } else { self.random.below(14) };
                message.after(format!("m{predecessor}")).message_id(format!("m{place}"))
            }
            Order::Position { .. } if named => message.position(place),
            _ if self.random.chance(2) => message.position((1 << 48) - 1),
            _ => message.message_id(format!("m{place}")),
        };
        if self.random.chance(15) {
            message = message.time_to_live(Duration::from_secs(self.random.pick(&[1, 10, 30])));
        }
        if self.random.chance(15) {
            let delay = Duration::from_secs(self.random.pick(&[0, 1, 10]));
            message = message.schedule_at(seriatim::Clock::now(&self.clock) + delay);
        }
        message
    }

    pub(crate) async fn step(&mut self) {
        let kind = self.random.below(100);
        self.last = format!("kind {kind}");
        match kind {
            0..25 => {
                let count = self.random.pick(&[0, 1, 1, 1, 3]);
                let batch: Vec<Message> = (0..count).map(|_| self.message()).collect();
                answered(&self.last, self.queue.send_batch(batch).await);
            }
            25..50 => self.receive(kind).await,
            50..72 => self.settle().await,
            72..82 => {
                let by = self.random.pick(&[1, 999, 1_000, 9_999, 10_000, 30_000, 60_000]);
                self.clock.advance(Duration::from_millis(by));
            }
            82..98 => self.operate().await,
            _ => self.taken.clear(),
        }
    }

    async fn receive(&mut self, kind: u64) {
        let max = usize::try_from(self.random.pick(&[1, 2, 5])).expect("small");
        match kind {
            25..35 => {
                let found = answered(&self.last, self.queue.receive_many(max, Duration::ZERO).await);
                self.deliveries.extend(found.unwrap_or_default());
            }
            35..39 => {
                let run = answered(&self.last, self.queue.receive_run(max, Duration::ZERO).await);
                self.runs.extend(run.flatten());
            }
            39..43 => {
                let taken =
                    answered(&self.last, self.queue.accept_workflow(self.random.pick(&["a", "b"])).await);
                self.taken.extend(taken);
            }
            43..47 => {
                let Some(taken) = self.taken.last() else { return };
                let found = answered(&self.last, taken.receive(max, Duration::ZERO).await);
                self.deliveries.extend(found.unwrap_or_default());
            }
            _ => {
                let numbers = [self.number(), self.number()];
                let count = usize::try_from(self.random.below(3)).expect("small");
                let found = answered(&self.last, self.queue.receive_deferred(&numbers[..count]).await);
                self.deliveries.extend(found.unwrap_or_default());
            }
        }
    }

    fn ending(&mut self) -> Outcome {
        let later = seriatim::Clock::now(&self.clock) + Duration::from_secs(self.random.below(12));
        match self.random.below(6) {
            0 => Outcome::Abandon(Abandon::now().reason("now")),
            1 => Outcome::Abandon(Abandon::with_backoff().property("p", 1_i64)),
            2 => Outcome::Abandon(Abandon::at(later)),
            3 if self.random.chance(50) => Outcome::DeferUntil(later),
            3 => Outcome::Defer,
            4 => Outcome::DeadLetter { reason: "asked".to_owned(), description: String::new() },
            _ => Outcome::Release,
        }
    }

    async fn settle(&mut self) {
        if let (true, Some(mut run)) = (self.random.chance(30), self.runs.pop()) {
            let first = usize::try_from(self.random.below(3)).expect("small");
            let ending = self.ending();
            answered(&self.last, run.complete_first_then(first, ending).await);
            return;
        }
        if self.deliveries.is_empty() {
            return;
        }
        if self.random.chance(10) {
            answered(&self.last, self.queue.complete_all(&mut self.deliveries).await);
            self.deliveries.clear();
            return;
        }
        let index = usize::try_from(self.random.below(self.deliveries.len() as u64)).expect("small");
        let mut delivery = self.deliveries.swap_remove(index);
        if self.random.chance(50) {
            let completion = match self.random.below(3) {
                0 => Completion::new().state("state").send("q", self.message()),
                1 => Completion::new().clear_state(),
                _ => Completion::new(),
            };
            answered(&self.last, delivery.complete_with(completion).await);
        } else if self.random.chance(95) {
            let ending = self.ending();
            answered(&self.last, delivery.end(ending).await);
        }
    }

    async fn operate(&mut self) {
        let workflow = self.workflow();
        let workflow = self.queue.workflow(workflow).expect("a good ID");
        let number = self.number();
        let kind = self.random.below(16);
        self.last = format!("operate {kind}");
        let done = match kind {
            0 => workflow.hold("why not").await,
            1 | 2 => workflow.resume().await,
            3 => workflow.resume_and_redrive().await.map(drop),
            4 => workflow.retry_now().await,
            5 => workflow.skip_head("skip").await,
            6 => workflow.skip_gap().await,
            7 => workflow.declare_void(2, self.random.pick(&[2, 3, (1 << 48) - 1])).await,
            8 => workflow.release_lock().await,
            9 => workflow.set_state(Some("x".into())).await,
            10 => workflow.set_state(None).await,
            11 if self.random.chance(20) => workflow.purge().await.map(drop),
            12 | 13 => self.queue.redrive(number).await.map(drop),
            14 => self.queue.redrive_as(number, 3).await.map(drop),
            _ => {
                answered(&self.last, self.queue.cancel(number).await);
                return;
            }
        };
        answered(&self.last, done);
    }

    async fn check(&self) {
        let view = answered(&self.last, self.queue.view().await).expect("the queue exists");
        assert!(view.counts.conserved(), "after {}: {:?}", self.last, view.counts);
        let page = self.queue.peek(SequenceNumber::new(0), 1_000).await.expect("the queue exists");
        assert_eq!(page.len() as u64, view.counts.stored(), "after {}: {:?}", self.last, view.counts);
        for workflow in answered(&self.last, self.queue.workflows(None, 100).await).expect("the queue exists")
        {
            assert!(workflow.early <= workflow.messages, "after {}: {workflow:?}", self.last);
        }
    }

    /// Everything can be taken away in the end, and nothing is left of it.
    async fn finish(mut self) {
        self.deliveries.clear();
        self.runs.clear();
        self.taken.clear();
        answered("purge", self.queue.purge().await);
        let counts = answered("view", self.queue.view().await).expect("the queue exists").counts;
        assert_eq!(counts.stored(), 0, "{counts:?}");
        for workflow in ["a", "b"] {
            let workflow = self.queue.workflow(workflow).expect("a good ID");
            answered("state", workflow.set_state(None).await);
            answered("resume", workflow.resume().await);
        }
        self.clock.advance(Duration::from_secs(100_000));
        answered("look", self.queue.view().await);
        self.clock.advance(Duration::from_secs(100_000));
        let left = answered("list", self.queue.workflows(None, 10).await).expect("the queue exists");
        assert!(left.is_empty(), "{left:?}");
        let due = self.client.next_due().await.expect("the engine goes on");
        assert_eq!(due, None, "nothing is left to remind of");
        if let Some(at_first) = self.rows_at_first {
            assert_eq!(rows(&self.client).await, at_first, "every row is gone that anything was kept in");
        }
    }
}
