//! Messages: where each is in its life, what it says, and what is remembered of how it came.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt as TodaysReceipt;
use crate::engine::rules::record;
use crate::engine::rules::record::WorkflowRef;
use crate::header;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

#[derive(Debug, Deserialize)]
pub(crate) struct MessageRecord {
    stream: WorkflowRef,
    rank: Option<u64>,
    after: Option<MessageId>,
    message_id: Option<MessageId>,
    status: Status,
    accepted_at: Timestamp,
    expires_at: Option<Timestamp>,
    bytes: u64,
    delivery_count: u32,
    handed_out_at: Timestamp,
    attempts: Vec<Attempt>,
}

impl From<MessageRecord> for record::MessageRecord {
    fn from(old: MessageRecord) -> record::MessageRecord {
        let rare = record::RareOfMessage {
            after: old.after,
            expires_at: old.expires_at.map(Due::engine),
            time_to_live: None,
            attempts: old.attempts.into_iter().map(record::Attempt::from).collect(),
            suspicion: record::Suspicion::None,
            has_extra: false,
        };
        record::MessageRecord {
            stream: old.stream,
            rank: old.rank,
            message_id: old.message_id,
            status: old.status.into(),
            accepted_at: old.accepted_at,
            bytes: old.bytes,
            delivery_count: old.delivery_count,
            handed_out_at: old.handed_out_at,
            rare: rare.into(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Status {
    Ready,
    Scheduled { due: Timestamp },
    Failed { due: Option<Timestamp> },
    Asked { due: Option<Timestamp>, aside: bool },
    Locked { fetched: Option<Deferred> },
    DeadLettered(Box<DeadLetter>),
}

impl From<Status> for record::Status {
    /// All that was due was due on the one clock there was, and stays on it.
    fn from(old: Status) -> record::Status {
        match old {
            Status::Ready => record::Status::Ready,
            Status::Scheduled { due } => record::Status::Scheduled { due: due.into() },
            Status::Failed { due } => record::Status::Failed { due: due.map(Due::engine) },
            Status::Asked { due, aside } => record::Status::ByConsumer { due: due.map(Due::engine), aside },
            Status::Locked { fetched } => {
                record::Status::Locked { fetched: fetched.map(record::DeferralRecord::from) }
            }
            Status::DeadLettered(letter) => record::Status::DeadLettered(Box::new((*letter).into())),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Deferred {
    due: Option<Timestamp>,
    aside: bool,
}

impl From<Deferred> for record::DeferralRecord {
    fn from(old: Deferred) -> record::DeferralRecord {
        record::DeferralRecord { due: old.due.map(Due::engine), aside: old.aside }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct DeadLetter {
    reason: String,
    description: String,
    at: Timestamp,
}

impl From<DeadLetter> for record::DeadLetter {
    fn from(old: DeadLetter) -> record::DeadLetter {
        record::DeadLetter::new(&old.reason, old.description, old.at)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Attempt {
    delivery_count: u32,
    at: Timestamp,
    lasted: Duration,
    reason: String,
}

impl From<Attempt> for record::Attempt {
    fn from(old: Attempt) -> record::Attempt {
        record::Attempt {
            delivery_count: old.delivery_count,
            at: old.at,
            lasted: old.lasted,
            reason: old.reason,
            output: Output::default(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Content {
    workflow_id: Option<WorkflowId>,
    headers: Headers,
    body: Bytes,
}

impl From<Content> for record::MessageContent {
    fn from(old: Content) -> record::MessageContent {
        record::MessageContent {
            workflow_id: old.workflow_id,
            headers: header::Headers::from(old.headers).into(),
            body: old.body,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Headers {
    subject: Option<String>,
    content_type: Option<String>,
    correlation_id: Option<String>,
    reply_to: Option<String>,
    properties: BTreeMap<String, PropertyValue>,
}

impl From<Headers> for header::Headers {
    fn from(old: Headers) -> header::Headers {
        let properties = old.properties.into_iter().map(|(name, value)| (name, value.into()));
        header::Headers {
            subject: old.subject,
            content_type: old.content_type,
            correlation_id: old.correlation_id,
            reply_to: old.reply_to,
            properties: properties.collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum PropertyValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Binary(Bytes),
}

impl From<PropertyValue> for header::PropertyValue {
    fn from(old: PropertyValue) -> header::PropertyValue {
        match old {
            PropertyValue::Text(text) => header::PropertyValue::Text(text),
            PropertyValue::Integer(number) => header::PropertyValue::Integer(number),
            PropertyValue::Float(number) => header::PropertyValue::Float(number),
            PropertyValue::Boolean(truth) => header::PropertyValue::Boolean(truth),
            PropertyValue::Binary(bytes) => header::PropertyValue::Binary(bytes),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Duplicate {
    sequence: SequenceNumber,
    until: Timestamp,
}

impl From<Duplicate> for record::Duplicate {
    fn from(old: Duplicate) -> record::Duplicate {
        record::Duplicate { sequence: old.sequence, until: old.until }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    digest: u64,
    receipts: Vec<Receipt>,
    until: Timestamp,
}

impl From<Answered> for record::AnswerRecord {
    fn from(old: Answered) -> record::AnswerRecord {
        let receipts = old.receipts.into_iter().map(TodaysReceipt::from);
        record::AnswerRecord {
            digest: old.digest,
            receipts: receipts.collect(),
            until: old.until,
            shares: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Receipt {
    Accepted(SequenceNumber),
    Duplicate(SequenceNumber),
    AlreadySettled,
    DeadLettered(SequenceNumber),
}

impl From<Receipt> for TodaysReceipt {
    fn from(old: Receipt) -> TodaysReceipt {
        match old {
            Receipt::Accepted(sequence) => TodaysReceipt::Accepted(sequence),
            Receipt::Duplicate(sequence) => TodaysReceipt::Duplicate(sequence),
            Receipt::AlreadySettled => TodaysReceipt::AlreadySettled,
            Receipt::DeadLettered(sequence) => TodaysReceipt::DeadLettered(sequence),
        }
    }
}
