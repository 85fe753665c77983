//! What is asked of a queue so that it can be measured.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::bench::drain::drain_in_tasks;
use crate::bench::error::BenchError;
use crate::bench::handler::BenchHandler;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::BenchPlan;
use crate::bench::plan::Options;
use crate::bench::plan::Take;

/// A queue that keeps the messages of a workflow in order, hands them out one at a time, and acknowledges what is on
/// disk. A clone is another handle of the same queue.
pub(crate) trait Contender: Clone + Send + Sync + Sized + 'static {
    /// Its name in results.
    const NAME: &'static str;

    /// What one receive brought, to be settled as one.
    type Batch: Send + 'static;

    /// Makes a queue in an empty folder.
    fn open(folder: &Path, options: Options) -> impl Future<Output = Result<Self, BenchError>> + Send;

    /// Sends messages in one transaction. When it returns, they are on disk.
    fn send(&self, messages: Vec<BenchMessage>) -> impl Future<Output = Result<(), BenchError>> + Send;

    /// Receives what is ready, waiting up to `wait` for the first. That it was handed out is on disk.
    fn receive(
        &self,
        take: Take,
        wait: Duration,
    ) -> impl Future<Output = Result<Self::Batch, BenchError>> + Send;

    /// The bodies of a batch, in order.
    fn bodies(batch: &Self::Batch) -> Vec<Bytes>;

    /// Settles a batch, each message by its verdict. When it returns, that is on disk.
    fn settle(
        &self,
        batch: Self::Batch,
        verdicts: Vec<MessageEnd>,
    ) -> impl Future<Output = Result<(), BenchError>> + Send;

    /// Handles all messages of a run, each by a call of its own: as its user would who writes the handler and nothing
    /// else, or, where there is no such thing, by receiving and settling in several tasks.
    fn process(
        self,
        plan: BenchPlan,
        handler: Arc<BenchHandler>,
    ) -> impl Future<Output = Result<(), BenchError>> + Send {
        drain_in_tasks(self, plan, handler)
    }

    /// Removes all messages of a workflow for good; how many. Not every contender can.
    fn purge(&self, workflow: String) -> impl Future<Output = Result<u64, BenchError>> + Send {
        async move { Err(BenchError::system(format!("purge {workflow}"))("this queue has no purge")) }
    }

    /// Closes it in order.
    fn close(self) -> impl Future<Output = Result<(), BenchError>> + Send;
}
