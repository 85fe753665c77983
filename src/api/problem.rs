//! What went wrong, as JSON: RFC 9457, with a code for programs beside the sentence for people.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;
use crate::error::OperateRefusal;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::TopicRefusal;
use crate::error::Unavailable;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The kind of problem as a URI, made of its code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in words; the same for all of a kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong this time.
    pub detail: String,
    /// The kind of problem for programs: `lock_lost`, `queue_not_found`, `place_taken` and so on.
    #[schemars(extend("enum" = codes()))]
    pub code: String,
    /// The field that is wrong, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// After how many seconds it is worth trying again, if that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// The code of an engine that has stopped: of what was asked when it did, nobody knows whether it was done.
const STOPPED: &str = "stopped";

/// Every kind of problem: its code, its HTTP status and its title.
pub const PROBLEM_KINDS: &[(&str, u16, &str)] = &[
    ("malformed", 400, "The request cannot be read"),
    ("unauthorized", 401, "A key is needed"),
    ("forbidden", 403, "The key does not allow this"),
    ("route_not_found", 404, "There is nothing at this address"),
    ("queue_not_found", 404, "There is no such queue"),
    ("topic_not_found", 404, "There is no such topic"),
    ("subscription_not_found", 404, "The topic has no such subscription"),
    ("rule_not_found", 404, "The subscription has no such rule"),
    ("workflow_not_found", 404, "There is no such workflow"),
    ("message_not_found", 404, "There is no such message"),
    ("node_not_found", 404, "The cluster has no such node"),
    ("partition_not_found", 404, "The cluster has no such partition"),
    ("schedule_not_found", 404, "There is no such schedule"),
    ("state_not_found", 404, "The workflow keeps no state"),
    ("not_dead_lettered", 404, "There is no such dead letter"),
    ("method_not_allowed", 405, "The method is not allowed here"),
    ("too_slow", 408, "The body did not come in time"),
    ("lock_lost", 409, "The lock is not held any more"),
    ("delivery_settled", 409, "The delivery is settled already, in another way"),
    ("place_taken", 409, "Another message has the place"),
    ("already_settled", 409, "The place is settled already"),
    ("not_scheduled", 409, "The message is not scheduled"),
    ("numbers_used_up", 409, "The sequence numbers are used up"),
    ("workflow_locked", 409, "Somebody holds the workflow"),
    ("workflow_held", 409, "The workflow is held"),
    ("unordered", 409, "The queue has no order"),
    ("no_workflow", 409, "The delivery holds no workflow"),
    ("already_dead_lettered", 409, "The message is a dead letter already"),
    ("queue_exists", 409, "There is a queue of this name with other options"),
    ("queue_is_defined", 409, "The queue belongs to a definition"),
    ("order_in_use", 409, "The order of a queue in use cannot change"),
    ("too_many_queues", 409, "There are as many queues as a file may have"),
    ("name_is_topic", 409, "A topic has this name"),
    ("name_is_queue", 409, "A queue has this name"),
    ("not_subscribed", 409, "The queue of a subscription is made by subscribing"),
    ("subscription_exists", 409, "There is a subscription of this name with other options or rules"),
    ("options_refused", 409, "The queue of the subscription cannot be given these options"),
    ("rule_exists", 409, "The subscription has a rule of this name"),
    ("topic_changed", 409, "The topic was changed at the same moment"),
    ("too_many_topics", 409, "There are as many topics as a file may have"),
    ("too_many_subscriptions", 409, "The topic has as many subscriptions as it may have"),
    ("too_many_rules", 409, "The rules are more than a topic keeps"),
    ("not_held", 409, "The workflow is not held"),
    ("not_locked", 409, "The workflow is not locked"),
    ("nothing_waits", 409, "Nothing waits for a retry"),
    ("no_head", 409, "There is no message at the head"),
    ("not_at_head", 409, "Another message is at the head"),
    ("original", 409, "The dead letter is the original of a message that was edited"),
    ("not_missing", 409, "The position is not missing"),
    ("no_positions", 409, "The queue has no positions"),
    ("place_passed", 409, "The workflow has gone past the place"),
    ("predecessor_unknown", 409, "Nothing is known of the predecessor"),
    ("quarantined", 409, "The workflow is quarantined"),
    ("node_drains", 409, "The node takes no partitions"),
    ("node_stopped", 409, "The node cannot go on with the partition"),
    ("no_cluster", 409, "The daemon is no node of a cluster"),
    ("no_handlers", 409, "The queue has no handlers"),
    ("backup_failed", 409, "The backup was not made"),
    ("definition_invalid", 409, "A definition is not valid"),
    ("credentials_invalid", 409, "Keys or certificate cannot be used"),
    ("body_too_large", 413, "The body is too large"),
    ("too_large", 413, "The request is larger than one entry of a cluster's log"),
    ("unsupported_media_type", 415, "The content type is not accepted here"),
    ("wrong_host", 421, "The request is meant for another host"),
    ("misuse", 422, "A value is not allowed"),
    ("place_mismatch", 422, "The place does not fit the queue's order"),
    ("key_reused", 422, "The idempotency key was used for another request"),
    ("properties_too_large", 422, "The properties are too large"),
    ("workflow_full", 429, "Too many early messages wait in the workflow"),
    ("queue_full", 429, "The queue is full"),
    ("too_many_keys", 429, "Too many answers are kept for idempotency keys"),
    ("too_many_waiting", 429, "Too many receivers wait"),
    ("too_many_locks", 429, "Too many messages are handed out"),
    ("fault", 500, "Something that should not happen has happened"),
    ("not_available", 501, "This server cannot do that yet"),
    ("unsupported", 501, "A cluster cannot do that"),
    ("closed", 503, "The engine is closed"),
    (STOPPED, 503, "The engine has stopped"),
    ("not_owner", 503, "No node has the partition at the moment"),
    ("partition_stopped", 503, "The partition is stopped on every node"),
    ("busy", 503, "The server has no room for this now"),
    ("not_ready", 503, "The server is not ready"),
    ("unanswered", 504, "Whether it was done is not known"),
    ("storage_full", 507, "The disk is nearly full"),
];

/// The codes of all kinds.
fn codes() -> Vec<&'static str> {
    PROBLEM_KINDS.iter().map(|(code, ..)| *code).collect()
}

impl Problem {
    /// A problem of a kind listed in [`PROBLEM_KINDS`]; one that is not listed is a defect and shown as a fault.
    pub fn new(code: &str, detail: impl Into<String>) -> Problem {
        let kind = PROBLEM_KINDS.iter().find(|(known, ..)| *known == code);
        let (code, status, title) =
            kind.copied().unwrap_or(("fault", 500, "Something that should not happen has happened"));
        Problem {
            kind: format!("urn:seriatim:problem:{code}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            field: None,
            retry_after_seconds: match status {
                // An engine that has stopped comes back when somebody opens its file, and what was asked may be in it.
                _ if code == STOPPED => None,
                429 | 503 => Some(1),
                // Room comes from somebody who makes it.
                507 => Some(10),
                _ => None,
            },
        }
    }

    /// Whether it is not known whether it was done.
    pub fn is_unanswered(&self) -> bool {
        self.code == "unanswered" || self.code == STOPPED
    }

    /// Whether what was answered so may be sent again: it was refused for now, or it is not known whether it was done.
    pub fn may_come_again(&self) -> bool {
        self.retry_after_seconds.is_some() || self.is_unanswered()
    }

    /// Names the field that is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Problem {
        self.field = Some(field.into());
        self
    }
}

impl From<Misuse> for Problem {
    fn from(misuse: Misuse) -> Problem {
        // Fields of messages are spoken of with spaces, and written with underscores.
        let field = misuse.field().to_lowercase().replace([' ', '-'], "_");
        Problem::new(misuse.code(), misuse.to_string()).field(field)
    }
}

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Problem {
        let code = match unavailable {
            Unavailable::Closed => "closed",
            Unavailable::Stopped(_) => STOPPED,
            Unavailable::NotOwner => "not_owner",
            Unavailable::PartitionStopped { .. } => "partition_stopped",
            Unavailable::Busy => "busy",
            Unavailable::Unanswered(_) => "unanswered",
            Unavailable::Unsupported(_) => "unsupported",
            Unavailable::TooLarge { .. } => "too_large",
        };
        Problem::new(code, unavailable.to_string())
    }
}

impl<R: std::error::Error + HasCode + 'static> From<OperationError<R>> for Problem {
    fn from(error: OperationError<R>) -> Problem {
        match error {
            OperationError::Refused(refusal) => Problem::refused(&refusal),
            OperationError::Misuse(misuse) => Problem::from(misuse),
            OperationError::Unavailable(unavailable) => Problem::from(unavailable),
        }
    }
}

impl Problem {
    /// A refusal.
    pub fn refused(refusal: &(impl std::error::Error + HasCode)) -> Problem {
        Problem::new(refusal.code(), refusal.to_string())
    }
}

/// A refusal that has a code.
pub trait HasCode {
    /// The code: the refusal's name in snake_case.
    fn code(&self) -> &'static str;
}

impl HasCode for SendRefusal {
    fn code(&self) -> &'static str {
        match self {
            SendRefusal::QueueNotFound(_) => "queue_not_found",
            SendRefusal::TopicNotFound(_) => "topic_not_found",
            SendRefusal::TopicChanged(_) => "topic_changed",
            SendRefusal::PlaceTaken { .. } => "place_taken",
            SendRefusal::AlreadySettled { .. } => "already_settled",
            SendRefusal::PlaceMismatch { .. } => "place_mismatch",
            SendRefusal::BodyTooLarge { .. } => "body_too_large",
            SendRefusal::WorkflowFull { .. } => "workflow_full",
            SendRefusal::QueueFull { .. } => "queue_full",
            SendRefusal::NotScheduled(_) => "not_scheduled",
            SendRefusal::NumbersUsedUp => "numbers_used_up",
            SendRefusal::KeyReused(_) => "key_reused",
            SendRefusal::TooManyKeys { .. } => "too_many_keys",
            SendRefusal::StorageFull => "storage_full",
        }
    }
}

impl HasCode for ReceiveRefusal {
    fn code(&self) -> &'static str {
        match self {
            ReceiveRefusal::QueueNotFound(_) => "queue_not_found",
            ReceiveRefusal::MessageNotFound(_) => "message_not_found",
            ReceiveRefusal::WorkflowLocked => "workflow_locked",
            ReceiveRefusal::WorkflowHeld => "workflow_held",
            ReceiveRefusal::LockLost => "lock_lost",
            ReceiveRefusal::Unordered(_) => "unordered",
            ReceiveRefusal::TooManyWaiting(_) => "too_many_waiting",
            ReceiveRefusal::TooManyLocks(_) => "too_many_locks",
        }
    }
}

impl HasCode for SettleRefusal {
    fn code(&self) -> &'static str {
        match self {
            SettleRefusal::LockLost => "lock_lost",
            SettleRefusal::AlreadySettled { .. } => "delivery_settled",
            SettleRefusal::QueueNotFound => "queue_not_found",
            SettleRefusal::MessageNotFound(_) => "message_not_found",
            SettleRefusal::NoWorkflow => "no_workflow",
            SettleRefusal::AlreadyDeadLettered(_) => "already_dead_lettered",
            SettleRefusal::PropertiesTooLarge { .. } => "properties_too_large",
            SettleRefusal::Send(refusal) => refusal.code(),
        }
    }
}

impl HasCode for TopicRefusal {
    fn code(&self) -> &'static str {
        match self {
            TopicRefusal::TopicNotFound(_) => "topic_not_found",
            TopicRefusal::NameIsQueue(_) => "name_is_queue",
            TopicRefusal::SubscriptionNotFound(..) => "subscription_not_found",
            TopicRefusal::SubscriptionExists(..) => "subscription_exists",
            TopicRefusal::RuleExists(..) => "rule_exists",
            TopicRefusal::RuleNotFound(..) => "rule_not_found",
            TopicRefusal::TopicChanged(_) => "topic_changed",
            TopicRefusal::TooManyTopics(_) => "too_many_topics",
            TopicRefusal::TooManySubscriptions(..) => "too_many_subscriptions",
            TopicRefusal::TooManyRules(..) => "too_many_rules",
            TopicRefusal::OptionsRefused(..) => "options_refused",
            TopicRefusal::TooManyQueues(_) => "too_many_queues",
            TopicRefusal::StorageFull(_) => "storage_full",
        }
    }
}

impl HasCode for QueueRefusal {
    fn code(&self) -> &'static str {
        match self {
            QueueRefusal::QueueExists(_) => "queue_exists",
            QueueRefusal::NameIsTopic(_) => "name_is_topic",
            QueueRefusal::NotSubscribed(_) => "not_subscribed",
            QueueRefusal::QueueNotFound(_) => "queue_not_found",
            QueueRefusal::OrderInUse(_) => "order_in_use",
            QueueRefusal::TooManyQueues(_) => "too_many_queues",
            QueueRefusal::StorageFull(_) => "storage_full",
        }
    }
}

impl HasCode for OperateRefusal {
    fn code(&self) -> &'static str {
        match self {
            OperateRefusal::QueueNotFound(_) => "queue_not_found",
            OperateRefusal::WorkflowNotFound => "workflow_not_found",
            OperateRefusal::Unordered(_) => "unordered",
            OperateRefusal::WorkflowLocked => "workflow_locked",
            OperateRefusal::NotHeld | OperateRefusal::NotHeldFor(_) => "not_held",
            OperateRefusal::NotLocked => "not_locked",
            OperateRefusal::NothingWaits => "nothing_waits",
            OperateRefusal::NoHead => "no_head",
            OperateRefusal::NotAtHead(_) => "not_at_head",
            OperateRefusal::NotMissing(_) => "not_missing",
            OperateRefusal::NoPositions => "no_positions",
            OperateRefusal::NotDeadLettered(_) => "not_dead_lettered",
            OperateRefusal::PlacePassed(_) => "place_passed",
            OperateRefusal::PredecessorUnknown(..) => "predecessor_unknown",
            OperateRefusal::Original(_) => "original",
            OperateRefusal::Quarantined(_) => "quarantined",
            OperateRefusal::BackupFailed(_) => "backup_failed",
            OperateRefusal::Send(refusal) => refusal.code(),
            OperateRefusal::StorageFull { .. } => "storage_full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::made_part;
    use crate::error::Fault;

    #[test]
    fn what_is_not_known_to_be_done_may_come_again_and_what_is_refused_for_good_not() {
        for (code, comes_again) in [
            ("queue_full", true),
            ("busy", true),
            ("unanswered", true),
            (STOPPED, true),
            ("place_taken", false),
        ] {
            assert_eq!(Problem::new(code, "why").may_come_again(), comes_again, "{code}");
        }
    }

    #[test]
    fn of_an_engine_that_has_stopped_nobody_knows_what_it_has_done() {
        let stopped = Problem::from(Unavailable::Stopped(Fault::Defect("why".to_owned())));
        assert!(stopped.is_unanswered());
        assert_eq!(stopped.retry_after_seconds, None, "its file may have what would be sent again");
        assert!(!Problem::from(Unavailable::Closed).is_unanswered(), "what came too late was not done");
    }

    #[test]
    fn a_refusal_keeps_its_name_and_its_sentence() {
        let problem = Problem::from(OperationError::Refused(SettleRefusal::LockLost));
        assert_eq!((problem.code.as_str(), problem.status), ("lock_lost", 409));
        assert_eq!(problem.detail, "cannot settle: the lock was lost");
        assert_eq!(problem.kind, "urn:seriatim:problem:lock_lost");
    }

    #[test]
    fn a_partition_that_nobody_has_is_not_said_to_be_another() {
        let problem = Problem::from(OperationError::<SettleRefusal>::Unavailable(Unavailable::NotOwner));
        assert_eq!((problem.code.as_str(), problem.status), ("not_owner", 503));
        assert_eq!(problem.title, "No node has the partition at the moment");
        assert!(problem.detail.contains("nothing was done, ask again"), "{}", problem.detail);
    }

    #[test]
    fn what_a_cluster_cannot_do_has_the_same_code_whoever_asks() {
        let why = Unavailable::Unsupported("each partition has an audit of its own");
        let looked = Problem::from(why.clone());
        let done = Problem::from(OperationError::<SettleRefusal>::from(why));
        assert_eq!((looked.code.as_str(), looked.status), ("unsupported", 501));
        assert_eq!((done.code.as_str(), done.status), ("unsupported", 501));
        let large = OperationError::<SettleRefusal>::from(Unavailable::TooLarge { bytes: 2, bytes_max: 1 });
        assert_eq!(Problem::from(large).code, "too_large");
    }

    #[test]
    fn a_misuse_names_its_field_as_it_is_written() {
        let problem = Problem::from(Misuse::new("workflow ID", "is empty"));
        assert_eq!((problem.field.as_deref(), problem.status), (Some("workflow_id"), 422));
        assert_eq!(problem.detail, "workflow ID is empty");
    }

    #[test]
    fn every_kind_is_listed_once() {
        for (at, (code, status, _)) in PROBLEM_KINDS.iter().enumerate() {
            assert!(PROBLEM_KINDS[at + 1..].iter().all(|(other, ..)| other != code), "{code}");
            assert_eq!(Problem::new(code, "").status, *status);
        }
    }

    #[test]
    fn the_page_of_the_api_shows_every_kind_of_problem() {
        let rows =
            PROBLEM_KINDS.iter().map(|(code, status, title)| format!("| {status} | `{code}` | {title} |\n"));
        let table = format!("| status | code | |\n|---|---|---|\n{}", rows.collect::<String>());
        made_part::check("docs/http.md", ("the kinds of problems", "every_kind_of_problem"), &table);
    }

    #[test]
    fn the_schema_of_a_problem_lists_its_codes() {
        let schema = serde_json::to_value(schemars::schema_for!(Problem)).unwrap();
        let listed = &schema["properties"]["code"]["enum"];
        assert_eq!(*listed, serde_json::to_value(codes()).unwrap());
    }

    #[test]
    fn the_page_of_the_api_names_every_status_that_says_when_to_ask_again() {
        let page = include_str!("../../docs/http.md");
        let told = page.lines().find(|line| line.contains("come with `Retry-After`"));
        let told = told.expect("the page tells it in one line");
        for (code, status, _) in PROBLEM_KINDS {
            let is_told = told.contains(&status.to_string()) && !told.contains(&format!("not `{code}`"));
            assert_eq!(Problem::new(code, "").retry_after_seconds.is_some(), is_told, "{code}: {told}");
        }
    }

    #[test]
    fn every_refusal_is_a_kind_of_problem() {
        let codes = include_str!("problem.rs").lines().filter_map(|line| {
            let (_, code) = line.split_once(" => \"")?;
            code.strip_suffix("\",")
        });
        let codes: Vec<&str> = codes.collect();
        assert!(codes.contains(&"original"), "the source is really read");
        for code in codes {
            assert!(PROBLEM_KINDS.iter().any(|(known, ..)| *known == code), "{code}");
        }
    }
}
