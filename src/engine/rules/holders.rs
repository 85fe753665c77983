//! What holders ask: to settle, to renew, to give back.

use std::convert::Infallible;

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::log_weight::LogWeight;
use crate::engine::rules::producers::bytes_of;
use crate::engine::rules::record::Attempt;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verbs::CloseWorkflow;
use crate::engine::rules::verbs::CompleteAll;
use crate::engine::rules::verbs::EndHidden;
use crate::engine::rules::verbs::HideAgain;
use crate::engine::rules::verbs::Renew;
use crate::engine::rules::verbs::SetWorkflowState;
use crate::engine::rules::verbs::Settle;
use crate::engine::rules::verbs::SettleApart;
use crate::engine::rules::verbs::SettleRun;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::header::stored_len;

/// How what a holder asks is refused when there is no room for it.
const FULL: SettleRefusal = SettleRefusal::Send(SendRefusal::StorageFull);

impl EngineVerb for Settle {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Settle> {
        let Settle { queue, token, sequence, delivery_count, settlement } = self;
        step.settle(&queue, DeliveryRef { token, sequence, delivery_count }, settlement)
    }

    fn bytes(&self) -> usize {
        self.completion().map_or(0, CompletionCommand::bytes)
    }

    fn weigh(&self, records: &dyn Records, weight: &mut LogWeight) -> Read<()> {
        match &self.settlement {
            Settlement::Complete(completion) => completion.weigh(weight),
            _ => weight.add_row_bytes(self.settlement.len() + self.written_again(records)?),
        }
        Ok(())
    }

    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        let need = |completion| RoomNeed::of_completion(self.bytes(), completion);
        Ok(self.completion().map_or(RoomNeed::Nothing, need))
    }

    fn without_room(&self) -> Option<Answer<Settle>> {
        Some(Err(FULL))
    }
}

impl Settle {
    fn completion(&self) -> Option<&CompletionCommand> {
        match &self.settlement {
            Settlement::Complete(completion) => Some(completion),
            _ => None,
        }
    }

    /// The bytes of its message that are written once more: what is known of earlier attempts, and all of it if properties are set.
    fn written_again(&self, records: &dyn Records) -> Read<usize> {
        let Some(queue) = records.queue_named(&self.queue)? else { return Ok(0) };
        let key = MessageKey { queue: queue.id, sequence: self.sequence };
        let message = records.message(key)?;
        let attempts = message.iter().flat_map(|message| &message.rare.attempts).map(Attempt::len).sum();
        match self.settlement.properties() {
            Some(_) => Ok(attempts + records.content(key)?.map_or(0, |content| content.len())),
            None => Ok(attempts),
        }
    }
}

impl Settlement {
    /// The bytes of what it says, which stay with its message.
    fn len(&self) -> usize {
        let text = match self {
            Settlement::Complete(_) | Settlement::Defer { .. } | Settlement::Release => 0,
            Settlement::Abandon { reason, output, .. } | Settlement::Suspect { reason, output, .. } => {
                reason.len() + output.text.len()
            }
            Settlement::DeadLetter { reason, description, .. } => reason.len() + description.len(),
            Settlement::Postpone { reason, .. } => reason.len(),
        };
        text + self.properties().map_or(0, |properties| stored_len(properties.iter()))
    }
}

impl CompletionCommand {
    /// The bytes of what it sends.
    fn bytes(&self) -> usize {
        self.sends.iter().map(|(_, messages)| bytes_of(messages)).sum()
    }

    fn weigh(&self, weight: &mut LogWeight) {
        self.sends.iter().for_each(|(_, messages)| weight.add_messages(messages));
    }
}

impl EngineVerb for SettleRun {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<SettleRun> {
        step.settle_run(&self.queue, self.token, self.settlement)
    }

    fn bytes(&self) -> usize {
        self.settlement.completion.bytes()
    }

    fn weigh(&self, _: &dyn Records, weight: &mut LogWeight) -> Read<()> {
        self.settlement.completion.weigh(weight);
        Ok(())
    }

    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::of_completion(self.bytes(), &self.settlement.completion))
    }

    fn without_room(&self) -> Option<Answer<SettleRun>> {
        Some(Err(FULL))
    }
}

impl EngineVerb for CompleteAll {
    fn run(self, step: &mut Step<'_>) -> Ruling<Vec<Result<(), SettleRefusal>>, Infallible> {
        Ok(step.complete_all(&self.queue, self.deliveries)?)
    }
}

impl EngineVerb for Renew {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Renew> {
        step.renew(&self.queue, self.token)
    }
}

impl EngineVerb for SettleApart {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<SettleApart> {
        step.settle_apart(&self.queue, self.token)
    }
}

impl EngineVerb for SetWorkflowState {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<SetWorkflowState> {
        step.set_workflow_state(&self.queue, self.token, self.state)
    }

    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::of_state(self.state.as_deref()))
    }

    fn without_room(&self) -> Option<Answer<SetWorkflowState>> {
        Some(Err(FULL))
    }
}

impl EngineVerb for CloseWorkflow {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<CloseWorkflow> {
        step.close_workflow(&self.queue, self.token)
    }
}

impl EngineVerb for HideAgain {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<HideAgain> {
        Ok(Box::new(step.hide_again(&self.queue, self.claim, self.lasts, self.body)?))
    }

    fn bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len())
    }

    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::of_state(self.body.as_deref()))
    }

    fn without_room(&self) -> Option<Answer<HideAgain>> {
        Some(Err(FULL))
    }
}

impl EngineVerb for EndHidden {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<EndHidden> {
        step.end_hidden(&self.queue, self.claim)
    }
}
