//! One round: the messages of a plan are sent and handled, at once or one after the other.

use std::sync::Arc;
use std::time::Duration;

use seriatim::SystemClock;
use tokio::task::JoinSet;

use crate::bench::contender::Contender;
use crate::bench::drain::all_ended;
use crate::bench::drain::drain_in_tasks;
use crate::bench::error::BenchError;
use crate::bench::feed::feed;
use crate::bench::handler::BenchHandler;
use crate::bench::plan::BenchPlan;
use crate::bench::progress::BenchProgress;
use crate::bench::workload::Workload;

/// Tasks under way; dropped, they end.
type Tasks = JoinSet<Result<(), BenchError>>;

/// A round of a plan on a contender.
pub(crate) struct Round<'a, C> {
    contender: &'a C,
    plan: &'a BenchPlan,
    clock: SystemClock,
    handler: Arc<BenchHandler>,
}

impl<'a, C: Contender> Round<'a, C> {
    pub(crate) fn new(contender: &'a C, plan: &'a BenchPlan, progress: &BenchProgress) -> Round<'a, C> {
        progress.begin(format!("{} {}", C::NAME, plan.workload.name()), plan.messages());
        let clock = SystemClock::default();
        Round { contender, plan, clock, handler: Arc::new(BenchHandler::new(plan, clock, progress)) }
    }

    /// Sends everything, while nobody receives.
    pub(crate) async fn send(&self) -> Result<(), BenchError> {
        let mut tasks = Tasks::new();
        feed(self.contender, self.plan, self.clock, &mut tasks);
        all_ended(tasks).await
    }

    /// What handles its messages.
    pub(crate) fn handler(&self) -> Arc<BenchHandler> {
        self.handler.clone()
    }

    /// Handles everything that was sent; returns the delays that were measured.
    pub(crate) async fn handle(self) -> Result<Vec<Duration>, BenchError> {
        self.end(Tasks::new()).await
    }

    /// Sends and handles at once; returns the delays that were measured.
    pub(crate) async fn send_and_handle(self) -> Result<Vec<Duration>, BenchError> {
        let mut tasks = Tasks::new();
        feed(self.contender, self.plan, self.clock, &mut tasks);
        self.end(tasks).await
    }

    async fn end(self, mut tasks: Tasks) -> Result<Vec<Duration>, BenchError> {
        let (contender, handler) = (self.contender.clone(), self.handler.clone());
        match self.plan.workload {
            Workload::Processor => tasks.spawn(contender.process(*self.plan, handler)),
            _ => tasks.spawn(drain_in_tasks(contender, *self.plan, handler)),
        };
        all_ended(tasks).await?;
        self.handler.end()
    }
}
