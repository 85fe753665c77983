//! One command of each kind.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::HandoverSource;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::StateChange;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::record::Remind;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::samples::at;
use crate::engine::rules::samples::headers;
use crate::engine::rules::samples::id;
use crate::engine::rules::samples::message;
use crate::engine::rules::samples::number;
use crate::engine::rules::samples::output;
use crate::engine::rules::samples::placed;
use crate::engine::rules::samples::queue;
use crate::engine::rules::samples::reminder;
use crate::engine::rules::samples::token;
use crate::engine::rules::samples::workflow;
use crate::engine::rules::topic_samples;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::id::IdempotencyKey;
use crate::id::Position;
use crate::id::QueueName;
use crate::message::Place;
use crate::queue::HoldKind;
use crate::queue::QueueOptions;

pub(crate) fn commands() -> Vec<Command> {
    let (queue, workflow) = (queue(), workflow());
    let options = || Box::new(QueueOptions::default());
    let mut commands = vec![
        Command::CreateQueue(verbs::CreateQueue { name: queue.clone(), options: options() }),
        Command::ChangeQueue(verbs::ChangeQueue { name: queue.clone(), options: options() }),
        Command::DeleteQueue(verbs::DeleteQueue { name: queue.clone() }),
        Command::Send(verbs::Send {
            queue: queue.clone(),
            messages: vec![placed(1), message(Place::Arrival)],
        }),
        Command::Send(verbs::Send {
            queue: queue.clone(),
            messages: vec![message(Place::After(Some(id())))],
        }),
        Command::Cancel(verbs::Cancel { queue: queue.clone(), sequence: number(1), void: true }),
        Command::Reschedule(verbs::Reschedule {
            queue: queue.clone(),
            sequence: number(1),
            at: Timestamp::from_millis(300),
        }),
        Command::Receive(verbs::Receive { queue: queue.clone(), max: 300, token: token(1) }),
        Command::ReceiveRun(verbs::ReceiveRun { queue: queue.clone(), max: 300, token: token(1) }),
        Command::ReceiveDeferred(verbs::ReceiveDeferred {
            queue: queue.clone(),
            sequences: vec![number(1)],
            token: token(1),
        }),
        Command::AcceptWorkflow(verbs::AcceptWorkflow {
            queue: queue.clone(),
            workflow: Some(workflow.clone()),
            token: token(1),
        }),
        Command::ReceiveFromWorkflow(verbs::ReceiveFromWorkflow {
            queue: queue.clone(),
            token: token(1),
            max: 2,
        }),
        Command::ReceiveDeferredFromWorkflow(verbs::ReceiveDeferredFromWorkflow {
            queue: queue.clone(),
            token: token(1),
            sequences: vec![number(1)],
        }),
        Command::CloseWorkflow(verbs::CloseWorkflow { queue: queue.clone(), token: token(1) }),
        Command::Renew(verbs::Renew { queue: queue.clone(), token: token(1) }),
        Command::SetState(verbs::SetState {
            queue: queue.clone(),
            workflow: workflow.clone(),
            state: Some(Bytes::new()),
        }),
        Command::SetWorkflowState(verbs::SetWorkflowState {
            queue: queue.clone(),
            token: token(1),
            state: None,
        }),
        Command::Redrive(verbs::Redrive {
            queue: queue.clone(),
            sequence: number(1),
            position: Some(Position::FIRST),
        }),
        Command::Remind(verbs::Remind { reminder: reminder(Remind::Expiry(number(1))) }),
        Command::ExpireLock(verbs::ExpireLock { token: token(1) }),
        Command::Recover(verbs::Recover {}),
    ];
    commands.extend(settlements().into_iter().map(|settlement| {
        Command::Settle(verbs::Settle {
            queue: queue.clone(),
            token: token(1),
            sequence: number(300),
            delivery_count: 1,
            settlement,
        })
    }));
    let completion = CompletionCommand::default();
    let settlement = RunSettlement {
        completed: 2,
        completion,
        next: Some(Settlement::Release),
        keep_rest: true,
        first: None,
    };
    commands.push(Command::SettleRun(verbs::SettleRun { queue: queue.clone(), token: token(1), settlement }));
    commands.extend(operations().into_iter().map(|operation| {
        Command::Operate(verbs::Operate { queue: queue.clone(), workflow: workflow.clone(), operation })
    }));
    let held = DeliveryRef { token: token(1), sequence: number(300), delivery_count: 2 };
    commands.push(Command::CompleteAll(verbs::CompleteAll {
        queue: queue.clone(),
        deliveries: vec![held, held],
    }));
    commands.push(Command::Transact(verbs::Transact {
        steps: commands.iter().cloned().filter_map(Command::into_step).collect(),
    }));
    let key = IdempotencyKey::new("k", 300).unwrap();
    commands.push(Command::SendOnce(verbs::SendOnce {
        queue: queue.clone(),
        key,
        messages: vec![placed(1)],
    }));
    let source = HandoverSource {
        partition: 3,
        epoch: 300,
        number: number(301),
        digest: 302,
        settled: vec![number(299), number(300)],
        wants_kept: true,
    };
    commands.push(Command::HandOver(verbs::HandOver { source, queue: queue.clone(), message: placed(1) }));
    commands.push(Command::SettleApart(verbs::SettleApart { queue: queue.clone(), token: token(1) }));
    commands.push(Command::PauseQueue(verbs::PauseQueue { name: queue.clone(), paused: true }));
    let actor = Arc::new(Actor::new("ada").and_then(|actor| actor.because("r")).unwrap());
    let command = Command::DeleteQueue(verbs::DeleteQueue { name: queue.clone() });
    commands.push(Command::OnRecord(Box::new(verbs::OnRecord { actor, begun: Some(300), command })));
    let edit = Edit { sequence: number(1), position: None, body: Bytes::from_static(b"b") };
    commands.push(Command::EditAndRedrive(verbs::EditAndRedrive { queue: queue.clone(), edit }));
    let scopes = [
        PurgeScope::Everything,
        PurgeScope::DeadLetters,
        PurgeScope::Workflow(workflow),
        PurgeScope::DeadLetter(number(1)),
    ];
    for scope in scopes {
        commands.push(Command::Purge(verbs::Purge {
            queue: queue.clone(),
            scope,
            from: PurgeFrom::Reason("r".to_owned(), number(1)),
        }));
    }
    commands.extend(topic_samples::commands(vec![placed(1)]));
    commands.push(Command::ReceiveDeadLetters(verbs::ReceiveDeadLetters {
        queue: queue.clone(),
        max: 300,
        token: token(1),
    }));
    let sequences = vec![number(1), number(300)];
    commands.push(Command::ReceiveDeferredDeadLetters(verbs::ReceiveDeferredDeadLetters {
        queue: queue.clone(),
        sequences,
        token: token(1),
    }));
    commands.extend(of_hidden_messages(queue.clone()));
    commands.push(Command::SendEach(verbs::SendEach { queue, messages: vec![placed(1)] }));
    commands
}

fn of_hidden_messages(queue: QueueName) -> [Command; 3] {
    let claim = Claim { sequence_number: number(300), delivery_count: 2, at: at(9) };
    let (lasts, body) = (Duration::from_millis(1_500), Some(Bytes::from_static(b"b")));
    [
        Command::ReceiveHidden(verbs::ReceiveHidden { queue: queue.clone(), max: 300, lasts }),
        Command::HideAgain(verbs::HideAgain { queue: queue.clone(), claim, lasts, body }),
        Command::EndHidden(verbs::EndHidden { queue, claim }),
    ]
}

fn settlements() -> Vec<Settlement> {
    let sends = vec![(queue(), vec![placed(1)])];
    let abandon = |retry| Settlement::Abandon {
        retry,
        reason: "r".to_owned(),
        properties: headers().properties,
        output: output(),
    };
    vec![
        Settlement::Complete(CompletionCommand { state: StateChange::Clear, sends }),
        abandon(Retry::Now),
        abandon(Retry::After(Duration::from_millis(1_500))),
        abandon(Retry::At(at(9))),
        abandon(Retry::Backoff(7)),
        Settlement::Defer { until: DeferralEnd::At(at(9)), properties: headers().properties },
        Settlement::DeadLetter {
            reason: "r".to_owned(),
            description: "d".to_owned(),
            properties: headers().properties,
        },
        Settlement::Release,
        Settlement::Suspect { retry: Retry::Now, reason: "r".to_owned(), output: output() },
        Settlement::Postpone { retry: Retry::Backoff(7), reason: "r".to_owned() },
    ]
}

fn operations() -> Vec<Operation> {
    let range = Some((Position::FIRST, Position::new(300).unwrap()));
    vec![
        Operation::Hold { reason: "r".to_owned() },
        Operation::Resume { redrive: true },
        Operation::RetryNow,
        Operation::SkipHead { reason: "r".to_owned() },
        Operation::VoidGap { range },
        Operation::ReleaseLock,
        Operation::ResumeFor { kind: HoldKind::Gap },
        Operation::SkipMessage { sequence: number(300), reason: "r".to_owned() },
    ]
}
