//! One look of each kind, and one of all that is found, for the golden bytes of what nodes say to each other.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::looks::LookFor;
use crate::engine::looks::LookResult;
use crate::engine::rules::holds::Hold;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::record::Counts;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::samples::at;
use crate::engine::rules::samples::attempt;
use crate::engine::rules::samples::headers;
use crate::engine::rules::samples::history_entry;
use crate::engine::rules::samples::id;
use crate::engine::rules::samples::number;
use crate::engine::rules::samples::queue;
use crate::engine::rules::samples::workflow;
use crate::engine::rules::topic_samples;
use crate::engine::view::ChainPlace;
use crate::engine::view::DeadLetterView;
use crate::engine::view::Deferral;
use crate::engine::view::Gap;
use crate::engine::view::MessageStatus;
use crate::engine::view::MessageView;
use crate::engine::view::QueueView;
use crate::engine::view::WorkflowStatus;
use crate::engine::view::WorkflowView;
use crate::queue::QueueOptions;

pub(crate) fn looks_for() -> Vec<LookFor> {
    let (queue, id, limit, from) = (queue(), workflow(), 300, number(2));
    vec![
        LookFor::Queues { after: Some(queue.clone()), limit },
        LookFor::Queue { name: queue.clone() },
        LookFor::Workflows { queue: queue.clone(), after: Some(id.clone()), limit },
        LookFor::Workflow { queue: queue.clone(), id: id.clone() },
        LookFor::Alone { queue: queue.clone(), from, limit },
        LookFor::Messages { queue: queue.clone(), from, limit },
        LookFor::Offered { queue: queue.clone(), limit },
        LookFor::Line { queue: queue.clone(), id: id.clone(), from: 2, limit },
        LookFor::DeadLetters { queue: queue.clone(), after: Some(("r".to_owned(), from)), limit },
        LookFor::State { queue: queue.clone(), id: id.clone() },
        LookFor::History { queue: queue.clone(), id: Some(id.clone()), before: Some(2), limit },
        LookFor::Ended { queue: queue.clone(), sequence: from },
        LookFor::NextDue {},
        LookFor::Topic { name: queue.clone() },
        LookFor::Topics { after: Some(queue.clone()), limit },
        LookFor::Standing { queue, after: Some(id), limit },
    ]
}

pub(crate) fn found() -> Vec<LookResult> {
    let topic = || Arc::new(topic_samples::record());
    vec![
        LookResult::Queues(vec![queue_view()]),
        LookResult::Queue(Some(queue_view())),
        LookResult::Workflows(Some(workflow_statuses().map(workflow_view).collect())),
        LookResult::Workflow(Some(Some(workflow_view(WorkflowStatus::Idle)))),
        LookResult::Alone(Some(vec![(number(2), workflow_view(WorkflowStatus::Idle))])),
        LookResult::Messages(Some(message_statuses().map(message_view).collect())),
        LookResult::Offered(Some(vec![message_view(MessageStatus::Ready)])),
        LookResult::Line(Some(vec![message_view(MessageStatus::Ready)])),
        LookResult::DeadLetters(Some(vec![dead_letter_view()])),
        LookResult::State(Some(Some(Bytes::from_static(b"state")))),
        LookResult::History(Some(vec![history_entry()])),
        LookResult::Ended(Some(vec![history_entry()])),
        LookResult::NextDue(Some(at(300))),
        LookResult::Topic(Some(topic())),
        LookResult::Topics(vec![topic()]),
        LookResult::Standing(Some(Some(vec![workflow_view(WorkflowStatus::Ready)]))),
    ]
}

fn queue_view() -> QueueView {
    QueueView {
        name: queue(),
        options: QueueOptions::by_position(),
        counts: Counts {
            ready: 1,
            locked: 2,
            early: 3,
            retry: 4,
            exhausted: 5,
            by_consumer: 6,
            scheduled: 7,
            dead_lettered: 8,
            completed: 9,
            expired: 10,
            cancelled: 11,
            purged: 12,
            accepted: 13,
        },
        history: 14,
        cursors: 15,
        cursors_cut: 16,
        links_cut: 17,
        created_at: at(18),
        paused: true,
        rate_limited_until: Some(at(300)),
        missing_partitions: vec![3],
    }
}

fn holds() -> Vec<Hold> {
    let causes = [
        HoldCause::Operator,
        HoldCause::Exhausted(number(1)),
        HoldCause::Gap,
        HoldCause::Predecessor(number(2)),
        HoldCause::Quarantine(number(3)),
        HoldCause::Redriving,
    ];
    causes.into_iter().map(|cause| Hold { cause, since: at(1), reason: "r".to_owned() }).collect()
}

fn workflow_view(status: WorkflowStatus) -> WorkflowView {
    let gap = Gap {
        first_missing: Some(1),
        first_waiting: Some(2),
        missing_predecessor: Some(id()),
        since: at(3),
        due: Some(at(4)),
    };
    WorkflowView {
        workflow_id: Some(workflow()),
        status,
        next_position: Some(1),
        messages: 2,
        early: 3,
        set_aside: 4,
        dead_letters: 5,
        has_state: true,
        state_set_at: Some(at(6)),
        holds: holds(),
        gap: Some(gap),
        settled_ahead: vec![(8, 9)],
        rate_limited_until: Some(at(7)),
    }
}

fn workflow_statuses() -> impl Iterator<Item = WorkflowStatus> {
    let blocked = |why| WorkflowStatus::Blocked {
        sequence_number: number(300),
        until: Some(at(9)),
        why,
        reason: "r".to_owned(),
    };
    let statuses = [
        WorkflowStatus::Ready,
        WorkflowStatus::Locked { until: at(9) },
        blocked(Deferral::Retry),
        WorkflowStatus::Scheduled { until: at(9) },
        WorkflowStatus::WaitingForPredecessor,
        WorkflowStatus::Held(holds().remove(0)),
        WorkflowStatus::Idle,
    ];
    statuses.into_iter()
}

fn message_view(status: MessageStatus) -> MessageView {
    MessageView {
        sequence_number: number(300),
        position: Some(1),
        after: Some(id()),
        chain_place: Some(ChainPlace { follows: Some(id()), follows_live: None }),
        status,
        workflow_id: Some(workflow()),
        message_id: Some(id()),
        accepted_at: at(2),
        expires_at: Some(at(3)),
        delivery_count: 4,
        locked_until: Some(at(5)),
        attempts: vec![attempt()],
        headers: headers(),
        body: Bytes::from_static(b"b"),
    }
}

fn message_statuses() -> impl Iterator<Item = MessageStatus> {
    let deferred = |why| MessageStatus::Deferred { why, until: Some(at(9)) };
    let statuses = [
        MessageStatus::Ready,
        MessageStatus::Locked { until: at(9) },
        deferred(Deferral::Early),
        deferred(Deferral::Retry),
        deferred(Deferral::ByConsumer),
        MessageStatus::Scheduled { until: at(9) },
        MessageStatus::DeadLettered(dead_letter()),
    ];
    statuses.into_iter()
}

fn dead_letter() -> DeadLetter {
    DeadLetter { deliveries: 2, deferred: true, ..DeadLetter::new("r", "d".to_owned(), at(9)) }
}

fn dead_letter_view() -> DeadLetterView {
    DeadLetterView {
        sequence_number: number(300),
        workflow_id: Some(workflow()),
        message_id: Some(id()),
        delivery_count: 2,
        locked_until: Some(at(9)),
        dead_letter: dead_letter(),
    }
}
