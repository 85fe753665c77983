//! What a command changes of a queue.

use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::verbs;
use crate::id::QueueName;
use crate::queue::QueueOptions;

/// What changes of the definition of a queue, or of that of a subscription.
#[derive(Clone, Debug)]
pub(crate) enum DefinitionChange {
    /// It is made; of one that is there, it is said again what it is.
    Create(Box<QueueOptions>),
    Options(Box<QueueOptions>),
    Pause(bool),
    Delete,
}

impl DefinitionChange {
    /// What a command changes of which queue, if that is what it does.
    pub(crate) fn of(command: &Command) -> Option<(&QueueName, DefinitionChange)> {
        match command.asked() {
            Command::CreateQueue(verbs::CreateQueue { name, options }) => {
                Some((name, DefinitionChange::Create(options.clone())))
            }
            Command::ChangeQueue(verbs::ChangeQueue { name, options }) => {
                Some((name, DefinitionChange::Options(options.clone())))
            }
            Command::PauseQueue(verbs::PauseQueue { name, paused }) => {
                Some((name, DefinitionChange::Pause(*paused)))
            }
            Command::DeleteQueue(verbs::DeleteQueue { name }) => Some((name, DefinitionChange::Delete)),
            _ => None,
        }
    }
}
