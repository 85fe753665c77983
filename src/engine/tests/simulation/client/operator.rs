//! Operators: they hold, resume, skip, release, redrive, purge and change what they do not like.

use std::sync::Arc;

use bytes::Bytes;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::record::Status;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::engine::tests::simulation::client::sender::workflow_id;
use crate::id::Position;
use crate::queue::HoldKind;

impl Clients {
    /// Some operators say who they are.
    pub(crate) fn put_on_record(&mut self, command: Command) -> Command {
        match command.is_operators() && self.random.chance(50) {
            true => {
                let name = self.random.pick(&["ada", "grace"]);
                let actor = Arc::new(Actor::new(name).expect("a good name"));
                Command::OnRecord(Box::new(verbs::OnRecord { actor, begun: None, command }))
            }
            false => command,
        }
    }

    pub(crate) fn operate(&mut self, rows: &Rows, queue: usize, now: Timestamp) -> Command {
        let (name, order) = self.queues[queue].clone();
        let workflow = workflow_id(self.random.below(self.workflows));
        let reason = "said so".to_owned();
        let operation = match self.random.below(100) {
            0..8 => Operation::Hold { reason },
            8..20 => Operation::Resume { redrive: self.random.chance(30) },
            20..26 => Operation::ResumeFor { kind: self.hold_kind() },
            26..34 => Operation::RetryNow,
            34..38 => Operation::SkipHead { reason },
            38..40 => {
                // As there are few workflows, it stands at the head of this one often enough.
                let sequence = self.number(rows, queue, |status| matches!(status, Status::Failed { .. }));
                Operation::SkipMessage { sequence, reason }
            }
            40..46 => Operation::VoidGap { range: self.random.chance(40).then(|| self.range()) },
            46..52 => Operation::ReleaseLock,
            _ => return self.change(rows, queue, now, (name, order)),
        };
        Command::Operate(verbs::Operate { queue: name, workflow, operation })
    }

    /// Mostly one that is still to come.
    fn instant(&mut self, now: Timestamp) -> Timestamp {
        if self.random.chance(10) { Timestamp::from_millis(1) } else { now + self.delay() }
    }

    fn hold_kind(&mut self) -> HoldKind {
        self.random.pick(&HoldKind::ALL)
    }

    fn range(&mut self) -> (Position, Position) {
        let from = 1 + self.random.below(12);
        let position = |number| Position::new(number).expect("a small number");
        (position(from), position(from + self.random.below(3)))
    }

    /// Cancels a scheduled message, or lets it come at another instant.
    pub(crate) fn call_off(&mut self, rows: &Rows, queue: usize, now: Timestamp) -> Command {
        let name = self.queues[queue].0.clone();
        let sequence = self.number(rows, queue, |status| matches!(status, Status::Scheduled { .. }));
        match self.random.below(4) {
            0 => Command::Reschedule(verbs::Reschedule { queue: name, sequence, at: self.instant(now) }),
            kind => Command::Cancel(verbs::Cancel { queue: name, sequence, void: kind == 1 }),
        }
    }

    fn change(
        &mut self,
        rows: &Rows,
        queue: usize,
        now: Timestamp,
        (name, order): (crate::id::QueueName, crate::queue::Order),
    ) -> Command {
        match self.random.below(48) {
            0..16 => self.call_off(rows, queue, now),
            16..34 => {
                let sequence = self.number(rows, queue, |status| matches!(status, Status::DeadLettered(_)));
                let position = self.random.chance(20).then(|| self.range().0);
                Command::Redrive(verbs::Redrive { queue: name, sequence, position })
            }
            34..38 => {
                let state = self.random.chance(50).then(|| Bytes::from_static(b"set"));
                let workflow = workflow_id(self.random.below(self.workflows));
                Command::SetState(verbs::SetState { queue: name, workflow, state })
            }
            38..41 => {
                let workflow = workflow_id(self.random.below(self.workflows));
                let scope = match self.random.below(6) {
                    0 => PurgeScope::Everything,
                    5 => PurgeScope::DeadLetter(
                        self.number(rows, queue, |status| matches!(status, Status::DeadLettered(_))),
                    ),
                    1..3 => PurgeScope::Workflow(workflow),
                    _ => PurgeScope::DeadLetters,
                };
                Command::Purge(verbs::Purge { queue: name, scope, from: PurgeFrom::Start })
            }
            41..45 => {
                let options = self.options(order);
                Command::ChangeQueue(verbs::ChangeQueue { name, options })
            }
            45 => Command::PauseQueue(verbs::PauseQueue { name, paused: self.random.chance(50) }),
            46 if self.random.chance(30) => Command::DeleteQueue(verbs::DeleteQueue { name }),
            _ => {
                let options = self.options(order);
                Command::CreateQueue(verbs::CreateQueue { name, options })
            }
        }
    }
}
