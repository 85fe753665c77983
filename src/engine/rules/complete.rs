//! Completing many deliveries, and nothing else with them: what most handlers end with.

use std::sync::Arc;

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::records::Read;
use crate::engine::rules::settlements::PLAIN;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::engine::rules::step::answer;
use crate::engine::rules::step::refuse;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::id::QueueName;
use crate::limits;

/// Deliveries that were held until this command, and whose workflows are open, none of them twice. Each step is a loop of its own:
/// the code of each fits into a processor's cache, and that of all together does not.
#[derive(Default)]
#[must_use = "deliveries that have been taken from their holders have to end"]
struct EndingDeliveries(Vec<EndingDelivery>);

/// A delivery that its holder gives back, completed.
struct EndingDelivery {
    held: DeliveryRef,
    workflow: Box<OpenWorkflow>,
    message: Arc<MessageRecord>,
}

impl Step<'_> {
    /// Completes each delivery for itself, in the order given.
    pub(crate) fn complete_all(
        &mut self,
        name: &QueueName,
        deliveries: Vec<DeliveryRef>,
    ) -> Read<Vec<Result<(), SettleRefusal>>> {
        let queue = self.queue_named(name)?;
        let mut answers = Vec::with_capacity(deliveries.len());
        let mut endings = EndingDeliveries::default();
        for held in deliveries {
            let found = match &queue {
                Some(queue) => self.held_message_of(queue, held),
                None => refuse(SettleRefusal::QueueNotFound),
            };
            answers.push(match found {
                Ok((workflow, message)) => {
                    endings.0.push(EndingDelivery { held, workflow, message });
                    let is_done = self.locks.take_back(held.token, held.sequence).is_done();
                    // Whoever goes on holding the workflow may end another of its messages next.
                    if !is_done || endings.0.len() == limits::SIDE_BY_SIDE_MAX {
                        endings.complete(self)?;
                    }
                    Ok(())
                }
                Err(Stop::Refused(_)) => {
                    endings.complete(self)?;
                    let plain = Settlement::Complete(CompletionCommand::default());
                    answer(self.settle(name, held, plain))?.map(|_| ())
                }
                Err(Stop::Fault(fault)) => return Err(fault),
            });
        }
        endings.complete(self)?;
        Ok(answers)
    }
}

impl EndingDeliveries {
    /// Completes all, and closes their workflows.
    fn complete(&mut self, step: &mut Step<'_>) -> Read<()> {
        for EndingDelivery { held, workflow, message } in &mut self.0 {
            workflow.end(step, held.sequence, message, SettlementKind::Completed)?;
        }
        for EndingDelivery { held, workflow, .. } in &mut self.0 {
            workflow.settle_lock(step, held.token)?;
            let (now, as_asked) = ((workflow.queue.id, step.now), (SettledHow::Completed, PLAIN));
            step.settlements.note(now, *held, as_asked, &SettleResult::default());
        }
        self.0.drain(..).try_for_each(|ending| ending.workflow.close(step))
    }
}
