//! An engine with one queue, and deliveries to give to a handler.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::definition::ProgramDefinition;
use crate::engine::Delivery;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::handlers::exec::ExecOptions;
use crate::handlers::site::Site;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;
use crate::processor::Signal;
use crate::queue::QueueOptions;

/// Longer than any test: what takes so long hangs.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// An engine with one queue in arrival order, and a folder for programs.
pub(super) struct Stage {
    _engine: Engine,
    pub(super) queue: Queue,
    pub(super) site: Site,
    pub(super) folder: TempDir,
}

/// A delivery, and the context a handler sees of it.
pub(super) struct Handed {
    delivery: Delivery,
    pub(super) context: Context,
    pub(super) lock: Arc<Signal>,
}

impl Stage {
    pub(super) async fn new() -> Stage {
        let engine = Engine::in_memory().open().await.unwrap();
        Stage::on(engine, Arc::new(SystemClock::default())).await
    }

    /// On an engine that reads this clock.
    pub(super) async fn on(engine: Engine, clock: Arc<dyn Clock>) -> Stage {
        let queue = engine.client().create_queue("orders", QueueOptions::default()).await.unwrap();
        let folder = TempDir::new().unwrap();
        let site = Site {
            queue: QueueName::new("orders").unwrap(),
            store_id: format!("store-{}-{}", std::process::id(), folder.path().display()),
            sender_id: "sender".to_owned(),
            by_position: false,
            place: Arc::new(|_, message| Ok(message)),
            clock,
        };
        Stage { _engine: engine, queue, site, folder }
    }

    /// Sends a message and hands it out.
    pub(super) async fn hand(&self, message: Message) -> Handed {
        self.queue.send(message).await.unwrap();
        let delivery = self.queue.receive(LONG).await.unwrap().expect("the message was sent");
        let lock = Arc::new(Signal::default());
        let token = delivery.lock_token();
        let message = delivery.shared_message();
        let context = Context::new(message, Arc::new(self.queue.clone()), token, lock.clone());
        Handed { delivery, context, lock }
    }

    /// Sends a message, and lets a handler handle it.
    pub(super) async fn handle(
        &self,
        handler: &impl Handler<Raw>,
        message: Message,
    ) -> Result<Outcome, Failure> {
        let handed = self.hand(message).await;
        let result = self.handle_one(handler, &handed).await;
        handed.complete().await;
        result
    }

    /// Lets a handler handle what was handed out.
    pub(super) async fn handle_one(
        &self,
        handler: &impl Handler<Raw>,
        handed: &Handed,
    ) -> Result<Outcome, Failure> {
        let body = Raw(handed.context.message().body.clone());
        let handling = handler.handle(handed.context.clone(), body);
        tokio::time::timeout(LONG, handling).await.expect("a handler comes to its end")
    }
}

impl Handed {
    pub(super) async fn complete(self) {
        self.end(Outcome::Complete).await;
    }

    pub(super) async fn end(mut self, outcome: Outcome) {
        self.delivery.end(outcome).await.unwrap();
    }
}

/// A shell script as a handler.
pub(super) fn script(folder: &Path, text: &str) -> ExecOptions {
    let program = program(folder, &["sh", "-c", text]);
    ExecOptions { program, timeout: LONG, output_bytes_max: limits::OUTPUT_BYTES_MAX }
}

/// A program as a definition says it.
pub(super) fn program(folder: &Path, argv: &[&str]) -> ProgramDefinition {
    ProgramDefinition {
        path: PathBuf::from(argv[0]),
        argv: argv.iter().map(ToString::to_string).collect(),
        folder: folder.to_owned(),
        env: BTreeMap::new(),
        pass_env: Vec::new(),
    }
}

/// The reason of a failure.
pub(super) fn reason(result: Result<Outcome, Failure>) -> String {
    result.expect_err("the handler fails").reason().to_owned()
}

/// Whether there is a python3 to test with.
pub(super) fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !found {
        // Not by a macro: the test harness keeps what those print to itself when all is well.
        let _ = writeln!(std::io::stderr().lock(), "skipped: handlers in Python: there is no python3");
    }
    found
}
