//! Completing many deliveries, and nothing else with them: what most handlers end with.

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::open_workflows::OpenWorkflows;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::records::Read;
use crate::engine::rules::settlements::PLAIN;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::engine::rules::step::answer;
use crate::engine::rules::workflow::OpenWorkflow;
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
            if open.has_holder(held.token) {
                open.close(self)?;
            }
            answers.push(match self.end_delivery(name, held) {
                Ok(workflow) => Ok(open.push(self, workflow)?),
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

    /// Ends a delivery that is held; its workflow is still to be closed.
    fn end_delivery(&mut self, name: &QueueName, held: DeliveryRef) -> Ruling<OpenWorkflow, SettleRefusal> {
        let (mut workflow, message) = self.held_message(name, held)?;
        self.locks.take_back(held.token, held.sequence);
        workflow.end(self, held.sequence, &message, SettlementKind::Completed)?;
        workflow.settle_lock(self, held.token)?;
        let as_asked = (SettledHow::Completed, PLAIN);
        self.settlements.note((workflow.queue.id, self.now), held, as_asked, &SettleResult::default());
        Ok(workflow)
    }
}
