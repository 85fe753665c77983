//! A purge that says that it is done has left nothing but what is handed out.

use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::PurgeStep;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;

/// I13: the only command of a turn was a purge, which has looked at everything in one step.
pub(crate) fn is_purged(rows: &Rows, command: &Command, purged: &PurgeStep) -> Finding {
    let Command::Purge(verbs::Purge { queue, scope, from: PurgeFrom::Start }) = command else {
        return Ok(());
    };
    let queue = rows.queues.values().find(|record| record.name == *queue);
    let Some(queue) = queue.filter(|_| purged.next.is_none()) else { return Ok(()) };
    let is_left = |(key, message): &(&MessageKey, &MessageRecord)| {
        key.queue == queue.id
            && !matches!(message.status, Status::Locked { .. })
            && is_meant(scope, key, message)
    };
    let left = rows.messages.iter().map(|(key, message)| (key, &**message)).find(is_left);
    expect(left.is_none(), || format!("{command:?} has left {left:?}"))
}

fn is_meant(scope: &PurgeScope, key: &MessageKey, message: &MessageRecord) -> bool {
    match scope {
        PurgeScope::Everything => true,
        PurgeScope::DeadLetters => matches!(message.status, Status::DeadLettered(_)),
        PurgeScope::Workflow(id) => message.stream == WorkflowRef::Named(id.clone()),
        PurgeScope::DeadLetter(sequence) => {
            key.sequence == *sequence && matches!(message.status, Status::DeadLettered(_))
        }
    }
}
