//! One answer of each kind, and every refusal, for the golden bytes of what nodes say to each other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::engine::rules::command::HandoverAnswer;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeStep;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::samples::at;
use crate::engine::rules::samples::headers;
use crate::engine::rules::samples::id;
use crate::engine::rules::samples::message_record;
use crate::engine::rules::samples::number;
use crate::engine::rules::samples::queue;
use crate::engine::rules::samples::token;
use crate::engine::rules::samples::workflow;
use crate::engine::rules::transact::RefusedStep;
use crate::engine::rules::transact::StepRefusal;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::SettledHow;
use crate::error::TopicRefusal;
use crate::id::Position;
use crate::id::RuleName;
use crate::id::SubscriptionName;
use crate::queue::HoldKind;

pub(crate) fn replies() -> Vec<Reply> {
    let (token, locked_until, sequence) = (token(1), at(300), number(300));
    let content = || MessageContent {
        workflow_id: Some(workflow()),
        headers: headers().into(),
        body: Bytes::from_static(b"b"),
    };
    let record = || Arc::new(message_record(Status::Locked { fetched: None }));
    let locked = LockedMessage {
        token,
        locked_until,
        sequence,
        record: record(),
        content: content(),
        has_state: true,
    };
    let hidden = || UnlockedMessage { sequence, record: record(), content: content() };
    let state = Some(Bytes::from_static(b"state"));
    let grant = WorkflowGrant { token, locked_until, stream: WorkflowRef::Named(workflow()), state };
    let receipts = vec![
        Receipt::Accepted(number(300)),
        Receipt::Duplicate(number(2)),
        Receipt::AlreadySettled,
        Receipt::DeadLettered(number(3)),
    ];
    let lasts = Some(Duration::from_millis(1_500));
    let settled = SettleResult { locked_until: Some(at(9)), lasts, receipts: receipts.clone() };
    let next = Some(PurgeFrom::DeadLetter(2, number(3)));
    let step = |refusal| Reply::Transact(Err(RefusedStep { index: 2, refusal }));
    let kept = || vec![number(299), number(300)];
    let mut replies = vec![
        Reply::Queue(Ok(true)),
        Reply::Topic(Ok(false)),
        Reply::PublishOnce(Ok(receipts.iter().map(|receipt| (queue(), *receipt)).collect())),
        Reply::Send(Ok(receipts)),
        Reply::HandOver(Ok(HandoverAnswer::Taken { kept: kept() })),
        Reply::HandOver(Ok(HandoverAnswer::Outdated)),
        Reply::HandOver(Ok(HandoverAnswer::Full { kept: kept() })),
        Reply::Receive(Ok(vec![locked])),
        Reply::AcceptWorkflow(Ok(Some(grant))),
        Reply::ReceiveHidden(Ok(vec![hidden()])),
        Reply::HideAgain(Ok(Box::new(hidden()))),
        Reply::Settle(Ok(settled)),
        Reply::CompleteAll(vec![Ok(()), Err(SettleRefusal::LockLost)]),
        Reply::SendEach(vec![Ok(Receipt::AlreadySettled), Err(SendRefusal::StorageFull)]),
        Reply::Operate(Ok(())),
        Reply::Redrive(Ok(Redriven::InPlace)),
        Reply::Redrive(Ok(Redriven::AsNew(number(300)))),
        Reply::Purge(Ok(PurgeStep { count: 300, next, entry: Some(2) })),
        Reply::Transact(Ok(vec![Reply::Queue(Ok(true)), Reply::Done { more: false }])),
        step(StepRefusal::Send(SendRefusal::StorageFull)),
        step(StepRefusal::Settle(SettleRefusal::LockLost)),
        Reply::Done { more: true },
    ];
    replies.extend(queue_refusals().map(|refusal| Reply::Queue(Err(refusal))));
    replies.extend(topic_refusals().map(|refusal| Reply::Topic(Err(refusal))));
    replies.extend(send_refusals().map(|refusal| Reply::Send(Err(refusal))));
    replies.extend(receive_refusals().map(|refusal| Reply::Receive(Err(refusal))));
    replies.extend(settle_refusals().map(|refusal| Reply::Settle(Err(refusal))));
    replies.extend(operate_refusals().map(|refusal| Reply::Operate(Err(refusal))));
    replies
}

fn queue_refusals() -> impl Iterator<Item = QueueRefusal> {
    let refusals = [
        QueueRefusal::QueueExists(queue()),
        QueueRefusal::QueueNotFound(queue()),
        QueueRefusal::OrderInUse(queue()),
        QueueRefusal::TooManyQueues(300),
        QueueRefusal::StorageFull(queue()),
        QueueRefusal::NameIsTopic(queue()),
        QueueRefusal::NotSubscribed(queue()),
    ];
    refusals.into_iter()
}

fn topic_refusals() -> impl Iterator<Item = TopicRefusal> {
    let (subscription, rule) =
        (SubscriptionName::new("s").expect("a good name"), RuleName::new("r").expect("a good name"));
    let refusals = [
        TopicRefusal::TopicNotFound(queue()),
        TopicRefusal::NameIsQueue(queue()),
        TopicRefusal::SubscriptionNotFound(queue(), subscription.clone()),
        TopicRefusal::SubscriptionExists(queue(), subscription.clone()),
        TopicRefusal::RuleExists(queue(), subscription.clone(), rule.clone()),
        TopicRefusal::RuleNotFound(queue(), subscription, rule),
        TopicRefusal::TopicChanged(queue()),
        TopicRefusal::TooManyTopics(300),
        TopicRefusal::TooManySubscriptions(queue(), 300),
        TopicRefusal::TooManyRules(queue(), 300, 2),
        TopicRefusal::TooManyQueues(300),
        TopicRefusal::OptionsRefused(queue(), "no".to_owned()),
        TopicRefusal::StorageFull(queue()),
    ];
    refusals.into_iter()
}

fn send_refusals() -> impl Iterator<Item = SendRefusal> {
    let refusals = [
        SendRefusal::QueueNotFound(queue()),
        SendRefusal::PlaceTaken { index: 1, by: number(300) },
        SendRefusal::AlreadySettled { index: 1 },
        SendRefusal::PlaceMismatch { index: 1, detail: "no".to_owned() },
        SendRefusal::BodyTooLarge { index: 1, bytes: 300, bytes_max: 2 },
        SendRefusal::WorkflowFull { index: 1, early: 300 },
        SendRefusal::QueueFull { stored: 300 },
        SendRefusal::TopicNotFound(queue()),
        SendRefusal::TopicChanged(queue()),
        SendRefusal::NotScheduled(number(300)),
        SendRefusal::NumbersUsedUp,
        SendRefusal::KeyReused("k".to_owned()),
        SendRefusal::TooManyKeys { kept: 300 },
        SendRefusal::StorageFull,
    ];
    refusals.into_iter()
}

fn receive_refusals() -> impl Iterator<Item = ReceiveRefusal> {
    let refusals = [
        ReceiveRefusal::QueueNotFound(queue()),
        ReceiveRefusal::MessageNotFound(number(300)),
        ReceiveRefusal::WorkflowLocked,
        ReceiveRefusal::WorkflowHeld,
        ReceiveRefusal::LockLost,
        ReceiveRefusal::Unordered(queue()),
        ReceiveRefusal::TooManyWaiting(300),
        ReceiveRefusal::TooManyLocks(300),
    ];
    refusals.into_iter()
}

fn settle_refusals() -> impl Iterator<Item = SettleRefusal> {
    let refusals = [
        SettleRefusal::LockLost,
        SettleRefusal::AlreadySettled { how: SettledHow::Completed },
        SettleRefusal::AlreadySettled { how: SettledHow::Abandoned },
        SettleRefusal::AlreadySettled { how: SettledHow::Deferred },
        SettleRefusal::AlreadySettled { how: SettledHow::DeadLettered },
        SettleRefusal::AlreadySettled { how: SettledHow::Released },
        SettleRefusal::QueueNotFound,
        SettleRefusal::MessageNotFound(number(300)),
        SettleRefusal::NoWorkflow,
        SettleRefusal::PropertiesTooLarge { bytes: 300 },
        SettleRefusal::AlreadyDeadLettered(number(300)),
        SettleRefusal::Send(SendRefusal::StorageFull),
    ];
    refusals.into_iter()
}

fn operate_refusals() -> impl Iterator<Item = OperateRefusal> {
    let refusals = [
        OperateRefusal::QueueNotFound(queue()),
        OperateRefusal::WorkflowNotFound,
        OperateRefusal::Unordered(queue()),
        OperateRefusal::WorkflowLocked,
        OperateRefusal::NotHeld,
        OperateRefusal::NotHeldFor(HoldKind::Gap),
        OperateRefusal::NotLocked,
        OperateRefusal::NothingWaits,
        OperateRefusal::NoHead,
        OperateRefusal::NotMissing(Position::FIRST),
        OperateRefusal::NoPositions,
        OperateRefusal::NotDeadLettered(number(300)),
        OperateRefusal::PlacePassed(number(300)),
        OperateRefusal::PredecessorUnknown(number(300), id()),
        OperateRefusal::Original(number(300)),
        OperateRefusal::Quarantined(number(300)),
        OperateRefusal::Send(SendRefusal::StorageFull),
        OperateRefusal::StorageFull { needed_bytes: 300, free_bytes: 2 },
        OperateRefusal::NotAtHead(number(300)),
        OperateRefusal::BackupFailed("no".to_owned()),
    ];
    refusals.into_iter()
}
