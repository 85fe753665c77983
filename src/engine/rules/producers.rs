//! What producers ask: to accept messages, and to stop or move what is scheduled.

use std::convert::Infallible;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::log_weight::LogWeight;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verbs::Cancel;
use crate::engine::rules::verbs::HandOver;
use crate::engine::rules::verbs::Publish;
use crate::engine::rules::verbs::PublishOnce;
use crate::engine::rules::verbs::Reschedule;
use crate::engine::rules::verbs::Send;
use crate::engine::rules::verbs::SendEach;
use crate::engine::rules::verbs::SendOnce;
use crate::error::SendRefusal;
use crate::id::QueueName;
use crate::limits;
use crate::message::NewMessage;

/// How much it is that a verb brings with its messages.
macro_rules! carries_messages {
    () => {
        fn bytes(&self) -> usize {
            bytes_of(&self.messages)
        }

        fn weigh(&self, _: &dyn Records, weight: &mut LogWeight) -> Read<()> {
            weight.add_messages(&self.messages);
            Ok(())
        }

        fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
            Ok(RoomNeed::of_messages(self.bytes(), self.messages.len()))
        }
    };
}

/// The same of a verb that brings the copies of what is published, and is refused as a whole.
macro_rules! carries_copies {
    () => {
        fn bytes(&self) -> usize {
            self.fanout.copy_bytes()
        }

        fn weigh(&self, _: &dyn Records, weight: &mut LogWeight) -> Read<()> {
            self.fanout.copies.iter().for_each(|(_, copies)| weight.add_messages(copies));
            Ok(())
        }

        fn is_bulk(&self) -> bool {
            has_many(self.fanout.copy_count())
        }

        fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
            Ok(RoomNeed::of_messages(self.bytes(), self.fanout.copy_count()))
        }

        fn without_room(&self) -> Option<Answer<Self>> {
            Some(Err(SendRefusal::StorageFull))
        }
    };
}

impl EngineVerb for Send {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Send> {
        step.send(&self.queue, self.messages)
    }

    carries_messages!();

    fn is_bulk(&self) -> bool {
        has_many(self.messages.len())
    }

    fn without_room(&self) -> Option<Answer<Send>> {
        Some(Err(SendRefusal::StorageFull))
    }

    /// What a schedule sends when an operator asks.
    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::RunSchedule, &self.queue))
    }

    fn draft(&self, _: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        entry.workflow_id = self.messages.first().and_then(|message| message.workflow_id.clone());
        Ok(())
    }
}

impl EngineVerb for SendEach {
    fn run(self, step: &mut Step<'_>) -> Ruling<Vec<Result<Receipt, SendRefusal>>, Infallible> {
        Ok(step.send_each(&self.queue, self.messages)?)
    }

    carries_messages!();

    fn without_room(&self) -> Option<Answer<SendEach>> {
        Some(Ok(self.messages.iter().map(|_| Err(SendRefusal::StorageFull)).collect()))
    }
}

impl EngineVerb for SendOnce {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<SendOnce> {
        step.send_once(&self.queue, &self.key, self.messages)
    }

    carries_messages!();

    fn without_room(&self) -> Option<Answer<SendOnce>> {
        Some(Err(SendRefusal::StorageFull))
    }
}

impl EngineVerb for HandOver {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<HandOver> {
        step.hand_over(self)
    }

    fn bytes(&self) -> usize {
        self.message.len()
    }

    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::of_messages(self.bytes(), 1))
    }

    fn without_room(&self) -> Option<Answer<HandOver>> {
        Some(Err(SendRefusal::StorageFull))
    }
}

impl EngineVerb for Publish {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Publish> {
        step.publish(&self.topic, self.fanout)
    }

    carries_copies!();
}

impl EngineVerb for PublishOnce {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<PublishOnce> {
        step.publish_once(&self.topic, &self.key, self.fanout)
    }

    carries_copies!();
}

impl EngineVerb for Cancel {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Cancel> {
        step.cancel(&self.queue, self.sequence, self.void)
    }
}

impl EngineVerb for Reschedule {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Reschedule> {
        step.reschedule(&self.queue, self.sequence, self.at)
    }
}

/// The bytes of bodies and headers.
pub(crate) fn bytes_of(messages: &[NewMessage]) -> usize {
    messages.iter().map(NewMessage::len).sum()
}

/// A turn of as many sends as it may take, each of very many messages, would have no end.
fn has_many(messages: usize) -> bool {
    messages > limits::SEND_BATCH_MAX
}
