//! What a verb is: a command, what it is answered, how it is refused and what it does, as one type.

use std::convert::Infallible;
use std::fmt::Debug;
use std::fmt::Display;

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::log_weight::LogWeight;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::waits_for::WaitsFor;
use crate::error::ReceiveRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// Something that can be asked, with what comes of it.
pub(crate) trait AnswerTypes {
    /// What it is answered when it was done.
    type Done: VerbOutcome;
    /// Why it was not.
    type Refusal: Debug + Display + Send + 'static;

    /// The same as a command of any kind, if it can be one: for whoever tries it out or has it done elsewhere.
    fn into_command(self) -> Option<Command>
    where
        Self: Sized,
    {
        None
    }

    /// The answer to it in a reply to that command; `None` when it is the reply to another.
    fn answer_in(_reply: Reply) -> Option<Answer<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// The answer to a verb: a refusal is one.
pub(crate) type Answer<V> = Result<<V as AnswerTypes>::Done, <V as AnswerTypes>::Refusal>;

/// What the rule of a verb arrives at.
pub(crate) type VerbRuling<V> = Ruling<<V as AnswerTypes>::Done, <V as AnswerTypes>::Refusal>;

/// Something that can be asked of the engine. Tokens and chance come in with it, so that the same verbs at the same
/// instants always give the same state.
pub(crate) trait EngineVerb: AnswerTypes + Clone + Debug + Send + 'static {
    /// Whether it is for operators, and worth being put on record.
    const IS_OPERATORS: bool = false;
    /// Whether a dry run can do it and take it back: what operators do to messages and workflows, not to queues.
    const CAN_BE_TRIED: bool = false;
    /// Whether its answer hands something out, so that it has to be kept until that has arrived.
    const HANDS_OUT: bool = false;

    /// Does it, or refuses and leaves everything as it is.
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Self>;

    /// About how many bytes of bodies and headers it carries.
    fn bytes(&self) -> usize {
        0
    }

    /// Adds what it writes into the entry of a log.
    fn weigh(&self, _records: &dyn Records, weight: &mut LogWeight) -> Read<()> {
        weight.add_bytes(self.bytes());
        Ok(())
    }

    /// Whether it moves as many messages as one turn should.
    fn is_bulk(&self) -> bool {
        false
    }

    /// What it takes of the room that there is for rows.
    fn room(&self, _records: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::Nothing)
    }

    /// The answer when there is no room for it; `None` for one that is done all the same.
    fn without_room(&self) -> Option<Answer<Self>> {
        None
    }

    /// The queue from which it receives, which is a use of it even if nothing is found.
    fn receives_from(&self) -> Option<&QueueName> {
        None
    }

    /// How the audit calls it, and the queue it is about; `None` for what no operator does.
    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        None
    }

    /// Writes into its entry of the audit what else is known before it is done.
    fn draft(&self, _step: &Step<'_>, _entry: &mut AuditEntry) -> Read<()> {
        Ok(())
    }

    /// Takes back, uncounted, what an answer hands out that nobody is there to take.
    fn give_back(&self, _done: Self::Done, _post: &mut dyn FnMut(Command)) {}

    /// The same of an answer that is in a reply.
    fn give_back_reply(&self, reply: Reply, post: &mut dyn FnMut(Command)) {
        if Self::HANDS_OUT
            && let Some(Ok(done)) = Self::answer_in(reply)
        {
            self.give_back(done, post);
        }
    }
}

/// A verb that asks for work, and may wait for it.
pub(crate) trait WorkVerb: EngineVerb + AnswerTypes<Done: HandOut, Refusal = ReceiveRefusal> {
    /// What it waits for.
    fn waits_for(&self) -> WaitsFor;
}

/// What a verb brings.
pub(crate) trait VerbOutcome: Debug + Send + 'static {
    /// Whether nothing at all was done: then no row has changed.
    fn is_refusal(&self) -> bool {
        false
    }

    /// Why not, as it stands in the audit.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// How many things were done, as the audit counts.
    fn count(&self) -> u64 {
        0
    }

    /// The first message that was accepted.
    fn first_number(&self) -> Option<SequenceNumber> {
        None
    }

    /// Hears of its entry in the audit.
    fn note_entry(&mut self, _entry: u64) {}
}

impl<D: VerbOutcome, R: Debug + Display + Send + 'static> VerbOutcome for Result<D, R> {
    fn is_refusal(&self) -> bool {
        self.as_ref().map_or(true, VerbOutcome::is_refusal)
    }

    fn refusal(&self) -> Option<String> {
        self.as_ref().map_or_else(|refusal| Some(refusal.to_string()), VerbOutcome::refusal)
    }

    fn count(&self) -> u64 {
        self.as_ref().map_or(0, VerbOutcome::count)
    }

    fn first_number(&self) -> Option<SequenceNumber> {
        self.as_ref().ok().and_then(VerbOutcome::first_number)
    }

    fn note_entry(&mut self, entry: u64) {
        if let Ok(done) = self {
            done.note_entry(entry);
        }
    }
}

/// What a verb brings that hands out: nothing, if it found nothing.
pub(crate) trait HandOut: VerbOutcome + Default {
    /// Whether nothing was found.
    fn is_nothing(&self) -> bool;
}

impl HandOut for Vec<LockedMessage> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl HandOut for Option<WorkflowGrant> {
    fn is_nothing(&self) -> bool {
        self.is_none()
    }
}

/// What comes of a verb that is never refused.
pub(crate) fn surely<T>(answer: Result<T, Infallible>) -> T {
    let Ok(done) = answer;
    done
}
