//! What the tests of the promises share: an engine in memory with a clock that is moved by hand.

use std::time::Duration;

use seriatim::Delivery;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::error::OperationError;
use seriatim::id::IdempotencyKey;
use seriatim::testing::ManualClock;

/// One queue of an engine in memory.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    pub(crate) queue: Queue,
}

/// An engine on a file that can be closed and opened again.
pub(crate) struct FileFixture {
    folder: tempfile::TempDir,
    pub(crate) clock: ManualClock,
}

impl FileFixture {
    pub(crate) fn new() -> FileFixture {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        FileFixture { folder: tempfile::tempdir().expect("a temporary folder"), clock }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("a.redb")
    }

    pub(crate) async fn open(&self) -> (Engine, Queue) {
        let engine =
            Engine::builder(self.path()).clock(self.clock.clone()).open().await.expect("the file opens");
        let options = QueueOptions::default().duplicate_window(seconds(60));
        let queue = engine.client().create_queue("q", options).await.expect("the options never change");
        (engine, queue)
    }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Fixture {
    pub(crate) async fn new(options: QueueOptions) -> Fixture {
        let (engine, clock) = seriatim::testing::engine().await.expect("an engine in memory opens");
        let queue = engine.client().create_queue("q", options).await.expect("the queue is new");
        Fixture { engine, clock, queue }
    }

    /// Sends a message of a workflow in order of arrival.
    pub(crate) async fn send(&self, workflow: &str, body: &str) -> SequenceNumber {
        self.accept(Message::new(body.to_owned()).workflow(workflow)).await
    }

    /// Sends a message at a position; the position is the body.
    pub(crate) async fn send_at(&self, workflow: &str, position: u64) -> SequenceNumber {
        self.accept(Message::new(position.to_string()).workflow(workflow).position(position)).await
    }

    /// Sends a message in after-order; its ID is the body.
    pub(crate) async fn send_after(&self, workflow: &str, id: &str, after: Option<&str>) -> SequenceNumber {
        let message = Message::new(id.to_owned()).workflow(workflow).message_id(id);
        let message = match after {
            Some(after) => message.after(after),
            None => message.first(),
        };
        self.accept(message).await
    }

    pub(crate) async fn accept(&self, message: Message) -> SequenceNumber {
        let receipt = self.queue.send(message).await.expect("the send is accepted");
        receipt.sequence_number().expect("the message is stored")
    }

    /// The next delivery, if one is ready now.
    pub(crate) async fn next(&self) -> Option<Delivery> {
        self.queue.receive(Duration::ZERO).await.expect("the queue exists")
    }

    /// The next delivery, which must be there.
    pub(crate) async fn must(&self) -> Delivery {
        self.next().await.expect("a message is ready")
    }

    /// Receives and completes everything that is ready, and returns the bodies in order.
    pub(crate) async fn drain(&self) -> Vec<String> {
        let mut bodies = Vec::new();
        while let Some(mut delivery) = self.next().await {
            bodies.push(body(&delivery));
            delivery.complete().await.expect("the lock is held");
        }
        bodies
    }

    pub(crate) async fn counts(&self) -> seriatim::view::Counts {
        let counts = self.queue.view().await.expect("the queue exists").counts;
        assert!(counts.conserved(), "{counts:?}");
        counts
    }

    pub(crate) async fn status(&self, workflow: &str) -> Option<seriatim::view::WorkflowStatus> {
        let workflow = self.queue.workflow(workflow).expect("a good ID");
        workflow.view().await.expect("the queue exists").map(|view| view.status)
    }
}

/// Why something was refused.
pub(crate) fn refusal<T, R>(answer: Result<T, OperationError<R>>) -> R
where
    T: std::fmt::Debug,
    R: std::error::Error + 'static,
{
    match answer.expect_err("it is refused") {
        OperationError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    }
}

/// An idempotency key of a request.
pub(crate) fn key(text: &str, request: &str) -> IdempotencyKey {
    IdempotencyKey::of_request(text, request.as_bytes()).expect("a good key")
}

/// Two messages of a workflow.
pub(crate) fn pair() -> [Message; 2] {
    ["a", "b"].map(|body| Message::new(body).workflow("w"))
}

/// Receives and completes everything that is ready, and returns how much it was.
pub(crate) async fn complete_ready(queue: &Queue) -> usize {
    let mut count = 0;
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.expect("the engine is open") {
        delivery.complete().await.expect("the lock is held");
        count += 1;
    }
    count
}

pub(crate) fn body(delivery: &Delivery) -> String {
    String::from_utf8(delivery.message().body.to_vec()).expect("the tests send text")
}
