//! Refusals in Service Bus's words: the conditions by which its clients tell them apart.

use std::fmt;

use crate::engine::TransactionError;
use crate::error::Misuse;
use crate::error::OperateRefusal;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::TopicRefusal;
use crate::error::Unavailable;
use crate::service_bus::changeable::DefinedByFile;
use crate::service_bus::slashed::entity_name;

/// Why something was refused, as the client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AmqpRefusal {
    pub(crate) condition: &'static str,
    pub(crate) description: String,
}

/// The conditions that clients know: some of the standard's, and those of Service Bus.
pub(crate) mod condition {
    pub(crate) use crate::amqp::condition::DECODE_ERROR;
    pub(crate) use crate::amqp::condition::DETACH_FORCED;
    pub(crate) use crate::amqp::condition::INTERNAL_ERROR as INTERNAL;
    pub(crate) use crate::amqp::condition::INVALID_FIELD;
    pub(crate) use crate::amqp::condition::NOT_ALLOWED;
    pub(crate) use crate::amqp::condition::NOT_FOUND;
    pub(crate) use crate::amqp::condition::NOT_IMPLEMENTED;
    pub(crate) use crate::amqp::condition::RESOURCE_LIMIT_EXCEEDED as RESOURCE_LIMIT;
    pub(crate) use crate::amqp::condition::UNAUTHORIZED_ACCESS as UNAUTHORIZED;

    pub(crate) const ARGUMENT_ERROR: &str = "com.microsoft:argument-error";
    pub(crate) const ENTITY_DISABLED: &str = "com.microsoft:entity-disabled";
    pub(crate) const ENTITY_EXISTS: &str = "com.microsoft:entity-already-exists";
    pub(crate) const LOCK_LOST: &str = "com.microsoft:message-lock-lost";
    pub(crate) const MESSAGE_NOT_FOUND: &str = "com.microsoft:message-not-found";
    pub(crate) const PRECONDITION_FAILED: &str = "com.microsoft:precondition-failed";
    pub(crate) const SERVER_BUSY: &str = "com.microsoft:server-busy";
    pub(crate) const SESSION_CANNOT_BE_LOCKED: &str = "com.microsoft:session-cannot-be-locked";
    pub(crate) const SESSION_LOCK_LOST: &str = "com.microsoft:session-lock-lost";
    pub(crate) const SIZE_EXCEEDED: &str = "amqp:link:message-size-exceeded";
    pub(crate) const TIMEOUT: &str = "com.microsoft:timeout";
    pub(crate) const ROLLED_BACK: &str = "amqp:transaction:rollback";
    pub(crate) const TRANSACTION_TIMEOUT: &str = "amqp:transaction:timeout";
    pub(crate) const UNKNOWN_TRANSACTION: &str = "amqp:transaction:unknown-id";
}

impl AmqpRefusal {
    pub(crate) fn new(condition: &'static str, description: impl Into<String>) -> AmqpRefusal {
        AmqpRefusal { condition, description: description.into() }
    }

    /// There is no queue or topic of this name. An SDK tells this refusal from others by its first words.
    pub(crate) fn not_found(name: &str) -> AmqpRefusal {
        let entity = entity_name(name);
        let description =
            format!("The messaging entity {entity:?} could not be found; create the queue first");
        AmqpRefusal::new(condition::NOT_FOUND, description)
    }

    /// There is no such entity, in the words of whoever has looked for it, behind the same first ones.
    fn nothing_found(why: &dyn fmt::Display) -> AmqpRefusal {
        let description = format!("The messaging entity asked for could not be found: {why}");
        AmqpRefusal::new(condition::NOT_FOUND, description)
    }

    pub(crate) fn lock_lost() -> AmqpRefusal {
        AmqpRefusal::new(condition::LOCK_LOST, "the lock was lost, or the message was settled already")
    }

    pub(crate) fn session_lock_lost() -> AmqpRefusal {
        AmqpRefusal::new(condition::SESSION_LOCK_LOST, "the lock of the session was lost")
    }

    pub(crate) fn argument(description: impl Into<String>) -> AmqpRefusal {
        AmqpRefusal::new(condition::ARGUMENT_ERROR, description)
    }

    /// The status by which an answer of the management says the same.
    pub(crate) fn status(&self) -> i32 {
        match self.condition {
            condition::LOCK_LOST | condition::SESSION_LOCK_LOST => 410,
            condition::MESSAGE_NOT_FOUND | condition::NOT_FOUND => 404,
            condition::UNAUTHORIZED => 401,
            condition::NOT_IMPLEMENTED => 501,
            condition::SERVER_BUSY | condition::RESOURCE_LIMIT => 503,
            condition::INTERNAL => 500,
            condition::TIMEOUT => 408,
            condition::SESSION_CANNOT_BE_LOCKED | condition::ENTITY_EXISTS => 409,
            _ => 400,
        }
    }
}

impl fmt::Display for AmqpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.condition, self.description)
    }
}

impl From<Misuse> for AmqpRefusal {
    fn from(misuse: Misuse) -> AmqpRefusal {
        AmqpRefusal::argument(misuse.to_string())
    }
}

impl From<DefinedByFile> for AmqpRefusal {
    fn from(defined: DefinedByFile) -> AmqpRefusal {
        AmqpRefusal::new(condition::NOT_ALLOWED, defined.to_string())
    }
}

impl From<Unavailable> for AmqpRefusal {
    fn from(unavailable: Unavailable) -> AmqpRefusal {
        let condition = match &unavailable {
            // Nothing was done, and clients ask again by themselves.
            Unavailable::NotOwner | Unavailable::Busy | Unavailable::PartitionStopped { .. } => {
                condition::SERVER_BUSY
            }
            Unavailable::TooLarge { .. } => condition::SIZE_EXCEEDED,
            Unavailable::Unsupported(_) => condition::NOT_IMPLEMENTED,
            Unavailable::Unanswered(_) | Unavailable::Closed | Unavailable::Stopped(_) => condition::INTERNAL,
        };
        AmqpRefusal::new(condition, unavailable.to_string())
    }
}

impl<R: std::error::Error + 'static> From<OperationError<R>> for AmqpRefusal
where
    AmqpRefusal: From<R>,
{
    fn from(error: OperationError<R>) -> AmqpRefusal {
        match error {
            OperationError::Refused(refusal) => refusal.into(),
            OperationError::Misuse(misuse) => misuse.into(),
            OperationError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<SendRefusal> for AmqpRefusal {
    fn from(refusal: SendRefusal) -> AmqpRefusal {
        let condition = match &refusal {
            SendRefusal::QueueNotFound(queue) => return AmqpRefusal::not_found(queue.as_str()),
            SendRefusal::TopicNotFound(_) => return AmqpRefusal::nothing_found(&refusal),
            SendRefusal::BodyTooLarge { .. } => condition::SIZE_EXCEEDED,
            SendRefusal::WorkflowFull { .. }
            | SendRefusal::QueueFull { .. }
            | SendRefusal::NumbersUsedUp
            | SendRefusal::StorageFull
            | SendRefusal::TopicChanged(_)
            | SendRefusal::TooManyKeys { .. } => condition::RESOURCE_LIMIT,
            SendRefusal::NotScheduled(_) => condition::MESSAGE_NOT_FOUND,
            SendRefusal::PlaceTaken { .. }
            | SendRefusal::AlreadySettled { .. }
            | SendRefusal::PlaceMismatch { .. }
            | SendRefusal::KeyReused(_) => condition::PRECONDITION_FAILED,
        };
        AmqpRefusal::new(condition, refusal.to_string())
    }
}

impl From<ReceiveRefusal> for AmqpRefusal {
    fn from(refusal: ReceiveRefusal) -> AmqpRefusal {
        let condition = match &refusal {
            ReceiveRefusal::QueueNotFound(queue) => return AmqpRefusal::not_found(queue.as_str()),
            // What somebody has is not there for anybody else.
            ReceiveRefusal::MessageNotFound(_)
            | ReceiveRefusal::WorkflowLocked
            | ReceiveRefusal::WorkflowHeld => condition::MESSAGE_NOT_FOUND,
            ReceiveRefusal::LockLost => condition::SESSION_LOCK_LOST,
            ReceiveRefusal::Unordered(_) => condition::NOT_ALLOWED,
            ReceiveRefusal::TooManyWaiting(_) | ReceiveRefusal::TooManyLocks(_) => condition::SERVER_BUSY,
        };
        AmqpRefusal::new(condition, refusal.to_string())
    }
}

impl From<SettleRefusal> for AmqpRefusal {
    fn from(refusal: SettleRefusal) -> AmqpRefusal {
        let condition = match &refusal {
            // A client of Service Bus knows no difference.
            SettleRefusal::LockLost
            | SettleRefusal::AlreadySettled { .. }
            | SettleRefusal::MessageNotFound(_) => condition::LOCK_LOST,
            SettleRefusal::QueueNotFound => return AmqpRefusal::nothing_found(&refusal),
            SettleRefusal::NoWorkflow | SettleRefusal::AlreadyDeadLettered(_) => condition::NOT_ALLOWED,
            SettleRefusal::PropertiesTooLarge { .. } => condition::ARGUMENT_ERROR,
            SettleRefusal::Send(SendRefusal::StorageFull) => condition::RESOURCE_LIMIT,
            SettleRefusal::Send(_) => condition::PRECONDITION_FAILED,
        };
        AmqpRefusal::new(condition, refusal.to_string())
    }
}

impl From<TransactionError> for AmqpRefusal {
    fn from(error: TransactionError) -> AmqpRefusal {
        match error {
            TransactionError::Send(error) => error.into(),
            TransactionError::Settle(error) => error.into(),
            TransactionError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<QueueRefusal> for AmqpRefusal {
    fn from(refusal: QueueRefusal) -> AmqpRefusal {
        match refusal {
            QueueRefusal::QueueNotFound(name) => AmqpRefusal::not_found(name.as_str()),
            QueueRefusal::StorageFull(_) => AmqpRefusal::new(condition::RESOURCE_LIMIT, refusal.to_string()),
            refusal => AmqpRefusal::new(condition::NOT_ALLOWED, refusal.to_string()),
        }
    }
}

impl From<TopicRefusal> for AmqpRefusal {
    fn from(refusal: TopicRefusal) -> AmqpRefusal {
        let condition = match &refusal {
            TopicRefusal::TopicNotFound(_)
            | TopicRefusal::SubscriptionNotFound(..)
            | TopicRefusal::RuleNotFound(..) => return AmqpRefusal::nothing_found(&refusal),
            TopicRefusal::RuleExists(topic, subscription, rule) => {
                let rule = format!("{topic}|{subscription}|{rule}");
                let description = format!("The messaging entity '{rule}' already exists: remove it first");
                return AmqpRefusal::new(condition::ENTITY_EXISTS, description);
            }
            TopicRefusal::StorageFull(_) | TopicRefusal::TooManyRules(..) | TopicRefusal::TopicChanged(_) => {
                condition::RESOURCE_LIMIT
            }
            _ => condition::NOT_ALLOWED,
        };
        AmqpRefusal::new(condition, refusal.to_string())
    }
}

impl From<OperateRefusal> for AmqpRefusal {
    fn from(refusal: OperateRefusal) -> AmqpRefusal {
        match refusal {
            OperateRefusal::QueueNotFound(name) => AmqpRefusal::not_found(name.as_str()),
            refusal => AmqpRefusal::new(condition::NOT_ALLOWED, refusal.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::QueueName;

    #[test]
    fn whoever_misses_an_entity_says_so_in_the_words_by_which_clients_know_it() {
        let name = || QueueName::new("q").unwrap();
        let refusals: [AmqpRefusal; 5] = [
            SendRefusal::QueueNotFound(name()).into(),
            SendRefusal::TopicNotFound(name()).into(),
            ReceiveRefusal::QueueNotFound(name()).into(),
            SettleRefusal::QueueNotFound.into(),
            TopicRefusal::TopicNotFound(name()).into(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.condition, condition::NOT_FOUND);
            let is_known = refusal.description.starts_with("The messaging entity ")
                && refusal.description.contains(" could not be found");
            assert!(is_known, "{refusal}");
        }
    }

    #[test]
    fn a_queue_that_is_missing_is_called_as_its_clients_call_it() {
        let name = || QueueName::new("a_2F_b").unwrap();
        let refusals: [AmqpRefusal; 4] = [
            SendRefusal::QueueNotFound(name()).into(),
            ReceiveRefusal::QueueNotFound(name()).into(),
            QueueRefusal::QueueNotFound(name()).into(),
            OperateRefusal::QueueNotFound(name()).into(),
        ];
        for refusal in refusals {
            assert!(refusal.description.starts_with("The messaging entity \"a/b\" could not"), "{refusal}");
        }
    }

    #[test]
    fn what_may_be_asked_again_is_said_to_be_busy_and_what_never_can_be_done_is_not() {
        let stopped = Unavailable::PartitionStopped { partition: 1, why: "its disk is full".to_owned() };
        let expected = [
            (Unavailable::NotOwner, condition::SERVER_BUSY),
            (Unavailable::Busy, condition::SERVER_BUSY),
            (stopped, condition::SERVER_BUSY),
            (Unavailable::TooLarge { bytes: 2, bytes_max: 1 }, condition::SIZE_EXCEEDED),
            (Unavailable::Unsupported("this is not done"), condition::NOT_IMPLEMENTED),
            (Unavailable::Unanswered("the node has gone".to_owned()), condition::INTERNAL),
            (Unavailable::Closed, condition::INTERNAL),
        ];
        for (unavailable, condition) in expected {
            assert_eq!(AmqpRefusal::from(unavailable).condition, condition);
        }
    }
}
