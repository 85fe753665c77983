//! The bytes that format 3 wrote are read as they were meant, for ever.

use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::clock::Timestamp;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::codec;
use crate::engine::store::format3::messages;
use crate::engine::store::format3::numbers;
use crate::engine::store::format3::operators;
use crate::engine::store::format3::queues;
use crate::engine::store::format3::reminders;
use crate::engine::store::format3::workflows;
use crate::id::MessageId;
use crate::id::SequenceNumber;

/// The changes that a version of format 3 wrote down to pin its own bytes (`golden.txt`): one of every record.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "their debug texts are what is compared")]
enum Change {
    Numbers(numbers::Numbers),
    Queue(queues::QueueRecord),
    QueueGone(QueueId),
    Tally(QueueId, queues::Tally),
    Workflow(WorkflowKey, Option<workflows::WorkflowRecord>),
    State(WorkflowKey, Option<Bytes>),
    Message(MessageKey, Option<messages::MessageRecord>),
    Content(MessageKey, Option<messages::Content>),
    Line(WorkflowKey, u64, Option<SequenceNumber>),
    Aside(WorkflowKey, u64, Option<SequenceNumber>),
    Link(WorkflowKey, Option<MessageId>, Option<workflows::Link>),
    Trail(WorkflowKey, u64, Option<workflows::TrailEntry>),
    Root(WorkflowKey, SequenceNumber, bool),
    Waiting(WorkflowKey, MessageId, Option<SequenceNumber>),
    Mark(WorkflowKey, u64, Option<workflows::Mark>),
    Holding(WorkflowKey, Option<workflows::Holding>),
    Ready(QueueId, u64, Option<WorkflowRef>),
    Reminder(Reminder, bool),
    DeadLetter(DeadLetterKey, bool),
    Duplicate(QueueId, MessageId, Option<messages::Duplicate>),
    Answer(QueueId, String, Option<messages::Answered>),
    AnswerCount(QueueId, Option<u64>),
    Audit(u64, Option<operators::AuditEntry>),
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "its debug text is what is compared")]
struct Reminder {
    due: Timestamp,
    queue: QueueId,
    what: reminders::Remind,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "its debug text is what is compared")]
struct DeadLetterKey {
    workflow: WorkflowKey,
    rank: u64,
    sequence: SequenceNumber,
    reason: String,
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn every_record_of_format_3_is_read_as_it_was_meant() {
    let mut read = String::new();
    for line in include_str!("golden.txt").lines() {
        let (name, hex) = line.split_once(' ').expect("a name and bytes");
        let change: Change = codec::decode(&bytes_of(hex)).unwrap_or_else(|| panic!("{line} makes no sense"));
        let text = format!("{change:?}");
        assert!(text.starts_with(name), "{line} was read as {text}");
        read.push_str(&format!("{text}\n"));
    }
    if std::env::var_os("SERIATIM_REWRITE_FORMAT_3").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/engine/store/format3/meant.txt");
        std::fs::write(path, &read).unwrap();
        return;
    }
    for (now, meant) in read.lines().zip(include_str!("meant.txt").lines()) {
        assert_eq!(now, meant, "format 3 never changes: mend the frozen record");
    }
    assert_eq!(read.lines().count(), include_str!("meant.txt").lines().count());
}

/// The names of an enum's variants, in the order of their numbers.
fn variants<T: DeserializeOwned + Debug>() -> String {
    let one =
        |number: u8| codec::decode_first::<T>(&[&[number][..], &[1; 32]].concat()).map(|(value, _)| value);
    let names = (0..).map_while(one).map(|value| format!("{value:?}"));
    let names = names.map(|text| text.split(['(', ' ']).next().unwrap_or_default().to_owned());
    names.collect::<Vec<String>>().join(" ")
}

#[test]
fn the_variants_of_format_3_keep_their_numbers() {
    assert_eq!(variants::<queues::Order>(), "None Arrival Position After");
    assert_eq!(variants::<queues::Exhausted>(), "Hold Skip Quarantine");
    assert_eq!(variants::<queues::GapThen>(), "Hold Skip Wait");
    assert_eq!(variants::<queues::Late>(), "Ignore Refuse DeadLetter");
    assert_eq!(variants::<queues::Expired>(), "DeadLetter Drop");
    assert_eq!(variants::<workflows::HoldCause>(), "Operator Spent Gap Predecessor Quarantine Redriving");
    assert_eq!(
        variants::<workflows::Settled>(),
        "Completed Aside DeadLettered Expired Cancelled Purged Skipped Voided"
    );
    assert_eq!(variants::<messages::Status>(), "Ready Scheduled Failed Asked Locked DeadLettered");
    assert_eq!(variants::<messages::PropertyValue>(), "Text Integer Float Boolean Binary");
    assert_eq!(variants::<messages::Receipt>(), "Accepted Duplicate AlreadySettled DeadLettered");
    assert_eq!(variants::<reminders::Remind>(), "Due Expiry Gap Sweep Forget Duplicate Idle Answer");
    assert_eq!(
        variants::<operators::AuditVerb>(),
        "CreateQueue ChangeQueue DeleteQueue PurgeQueue PurgeDeadLetters PurgeWorkflow Redrive SetState Hold Resume \
         ResumeAndRedrive RetryNow SkipHead DeclareVoid SkipGap ReleaseLock"
    );
}
