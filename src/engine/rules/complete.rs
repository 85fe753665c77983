//! Completing many deliveries, and nothing else with them: what most handlers end with.

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::open_workflows::OpenWorkflows;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::records::Read;
use crate::engine::rules::settlements::PLAIN;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::engine::rules::step::answer;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::id::QueueName;

impl Step<'_> {
    /// Completes each delivery for itself, in the order given.
    pub(crate) fn complete_all(
        &mut self,
        name: &QueueName,
        deliveries: Vec<DeliveryRef>,
    ) -> Read<Vec<Result<(), SettleRefusal>>> {
        let mut answers = Vec::with_capacity(deliveries.len());
        let mut open = OpenWorkflows::default();
        for held in deliveries {
            answers.push(match self.end_delivery(name, held) {
                Ok((workflow, is_still_held)) => {
                    open.push(self, workflow)?;
                    // Whoever holds it may end another of its messages next.
                    if is_still_held {
                        open.close(self)?;
                    }
                    Ok(())
                }
                Err(Stop::Refused(_)) => {
                    open.close(self)?;
                    let plain = Settlement::Complete(CompletionCommand::default());
                    answer(self.settle(name, held, plain))?.map(|_| ())
                }
                Err(Stop::Fault(fault)) => return Err(fault),
            });
        }
        open.close(self)?;
        Ok(answers)
    }

    /// Ends a delivery that is held. Its workflow is still to be closed; whether it is still held.
    fn end_delivery(
        &mut self,
        name: &QueueName,
        held: DeliveryRef,
    ) -> Ruling<(Box<OpenWorkflow>, bool), SettleRefusal> {
        let (mut workflow, message) = self.held_message(name, held)?;
        self.locks.take_back(held.token, held.sequence);
        workflow.end(self, held.sequence, &message, SettlementKind::Completed)?;
        let locked_until = workflow.settle_lock(self, held.token)?;
        let as_asked = (SettledHow::Completed, PLAIN);
        self.settlements.note((workflow.queue.id, self.now), held, as_asked, &SettleResult::default());
        Ok((workflow, locked_until.is_some()))
    }
}
