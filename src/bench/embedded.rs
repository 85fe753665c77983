//! The engine as a contender: embedded, through the public API, as a user would for throughput.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seriatim::Abandon;
use seriatim::Context;
use seriatim::Delivery;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Order as QueueOrder;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::Run;
use seriatim::error::SettleError;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::bench::contender::Contender;
use crate::bench::drain::until_all_settled;
use crate::bench::error::BenchError;
use crate::bench::handler::BenchHandler;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::BenchOrder;
use crate::bench::plan::BenchPlan;
use crate::bench::plan::Options;
use crate::bench::plan::Take;

/// The engine's file in its folder.
const FILE_NAME: &str = "seriatim.redb";

/// How long a queue with a history remembers: what bounds it in a run is the number of messages.
const HISTORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Longer than any run: nothing is to run out because the machine is slow.
const LONG: Duration = Duration::from_secs(60 * 60);

/// An engine with one queue.
#[derive(Clone)]
pub(crate) struct EmbeddedEngine {
    engine: Arc<Engine>,
    queue: Queue,
}

/// What a receive brought.
pub(crate) enum ReceivedBatch {
    Deliveries(Vec<Delivery>),
    Run(Option<Run>),
}

impl Contender for EmbeddedEngine {
    const NAME: &'static str = "seriatim";

    type Batch = ReceivedBatch;

    async fn open(folder: &Path, options: Options) -> Result<EmbeddedEngine, BenchError> {
        let order = match options.order {
            BenchOrder::Arrival => QueueOrder::Arrival,
            BenchOrder::Position => QueueOrder::POSITION,
        };
        let gap = GapPolicy { wait: LONG, then: GapAction::Hold };
        let (sync_delay, history) = (options.sync_delay, options.has_history.then_some(HISTORY));
        let options = QueueOptions::default().order(order).lock(LONG).gap(gap).history(history);
        let engine = Engine::builder(folder.join(FILE_NAME))
            .sync_delay(sync_delay)
            .open()
            .await
            .map_err(BenchError::system("open the engine"))?;
        let queue = engine.client().create_queue("bench", options).await;
        let queue = queue.map_err(BenchError::system("create the queue"))?;
        Ok(EmbeddedEngine { engine: Arc::new(engine), queue })
    }

    async fn send(&self, messages: Vec<BenchMessage>) -> Result<(), BenchError> {
        let sent = self.queue.send_batch(messages.into_iter().map(message)).await;
        sent.map(drop).map_err(BenchError::system("send"))
    }

    async fn receive(&self, take: Take, wait: Duration) -> Result<ReceivedBatch, BenchError> {
        let received = match take {
            Take::Next(count) => self.queue.receive_many(count, wait).await.map(ReceivedBatch::Deliveries),
            Take::Run(len) => self.queue.receive_run(len, wait).await.map(ReceivedBatch::Run),
        };
        received.map_err(BenchError::system("receive"))
    }

    fn bodies(batch: &ReceivedBatch) -> Vec<Bytes> {
        match batch {
            ReceivedBatch::Deliveries(deliveries) => {
                deliveries.iter().map(|delivery| delivery.message().body.clone()).collect()
            }
            ReceivedBatch::Run(Some(run)) => {
                run.messages().iter().map(|message| message.body.clone()).collect()
            }
            ReceivedBatch::Run(None) => Vec::new(),
        }
    }

    async fn settle(&self, batch: ReceivedBatch, verdicts: Vec<MessageEnd>) -> Result<(), BenchError> {
        let settled = match batch {
            ReceivedBatch::Deliveries(deliveries) => {
                settle_deliveries(&self.queue, deliveries, verdicts).await
            }
            ReceivedBatch::Run(Some(run)) => settle_run(run, &verdicts).await,
            ReceivedBatch::Run(None) => Ok(()),
        };
        settled.map_err(BenchError::system("settle"))
    }

    async fn process(self, plan: BenchPlan, handler: Arc<BenchHandler>) -> Result<(), BenchError> {
        let (sender, mut broken) = mpsc::unbounded_channel();
        let handling = handler.clone();
        let handle = move |_: Context, Raw(body): Raw| {
            let (handler, sender) = (handling.clone(), sender.clone());
            async move {
                let verdict = handler.handle(&[body]).await.map(|verdicts| verdicts[0]);
                verdict.map(|verdict| outcome(&handler, verdict)).inspect_err(|error| {
                    let _ = sender.send(error.to_string());
                })
            }
        };
        let (ends, ended) = oneshot::channel();
        let until_ended = async {
            let waited = tokio::select! {
                waited = until_all_settled(&handler) => waited,
                Some(broken) = broken.recv() => Err(BenchError::Broken(broken)),
            };
            let _ = ends.send(waited);
        };
        let ran = Processor::new(self.queue.clone()).run_until(handle, until_ended).await;
        ran.map_err(BenchError::system("run the processor"))?;
        ended.await.map_err(BenchError::system("run the processor to its end"))??;
        // The handler is over before its message is settled; the processor stops when all are.
        let completed = self.queue.view().await.map_err(BenchError::system("look at the queue"))?;
        match completed.counts.completed {
            completed if completed == plan.messages() => Ok(()),
            completed => {
                Err(BenchError::Broken(format!("{completed} of {} were completed", plan.messages())))
            }
        }
    }

    async fn purge(&self, workflow: String) -> Result<u64, BenchError> {
        let workflow = self.queue.workflow(workflow).map_err(BenchError::system("name a workflow"))?;
        workflow.purge().await.map_err(BenchError::system("purge"))
    }

    async fn close(self) -> Result<(), BenchError> {
        let EmbeddedEngine { engine, queue } = self;
        drop(queue);
        let engine = Arc::try_unwrap(engine).map_err(|_| "somebody still uses it");
        engine.map_err(BenchError::system("close the engine"))?.close().await;
        Ok(())
    }
}

/// How a message ends whose handler has judged it.
fn outcome(handler: &BenchHandler, verdict: MessageEnd) -> Outcome {
    match verdict {
        MessageEnd::Complete => {
            handler.settled(1);
            Outcome::Complete
        }
        MessageEnd::Retry(delay) => Outcome::Abandon(Abandon::after(delay)),
    }
}

fn message(outgoing: BenchMessage) -> Message {
    let message = Message::new(outgoing.body).workflow(outgoing.workflow);
    match outgoing.position {
        Some(position) => message.position(position),
        None => message,
    }
}

/// Settles deliveries of different workflows: all completions in one request, each failure in its own.
async fn settle_deliveries(
    queue: &Queue,
    deliveries: Vec<Delivery>,
    verdicts: Vec<MessageEnd>,
) -> Result<(), SettleError> {
    let (mut done, mut failing) = (Vec::with_capacity(deliveries.len()), JoinSet::new());
    for (mut delivery, verdict) in deliveries.into_iter().zip(verdicts) {
        match verdict {
            MessageEnd::Complete => done.push(delivery),
            MessageEnd::Retry(delay) => {
                failing.spawn(async move { delivery.abandon_with(failed(delay)).await });
            }
        }
    }
    for completed in queue.complete_all(&mut done).await? {
        completed.map_err(SettleError::Refused)?;
    }
    failing.join_all().await.into_iter().collect()
}

/// Settles a run up to its first failure; what is behind that goes back.
async fn settle_run(mut run: Run, verdicts: &[MessageEnd]) -> Result<(), SettleError> {
    for (done, verdict) in verdicts.iter().enumerate() {
        if let MessageEnd::Retry(delay) = verdict {
            return run.complete_first_then(done, Outcome::Abandon(failed(*delay))).await;
        }
    }
    run.complete_all().await
}

fn failed(delay: Duration) -> Abandon {
    Abandon::after(delay).reason("it was asked to fail")
}
