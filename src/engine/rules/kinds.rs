//! What kind of command one is: for whom, how large, whether it can be tried.

use crate::engine::rules::command::Command;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::topic_record::TopicChange;
use crate::message::NewMessage;
use crate::topic::Rule;

impl Command {
    /// What is asked, whether on record or not.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> &Command {
        match self {
            Command::OnRecord { command, .. } => command,
            command => command,
        }
    }

    /// Whether it is for operators, and worth being put on record.
    pub(crate) fn is_operators(&self) -> bool {
        matches!(
            self,
            Command::CreateQueue { .. }
                | Command::ChangeQueue { .. }
                | Command::DeleteQueue { .. }
                | Command::ChangeTopic { .. }
                | Command::PauseQueue { .. }
                | Command::SetState { .. }
                | Command::Operate { .. }
                | Command::Redrive { .. }
                | Command::EditAndRedrive { .. }
                | Command::Purge { .. }
        )
    }

    /// Whether a dry run can apply it and take it back: what operators do to messages and workflows, not to queues.
    pub(crate) fn can_be_tried(&self) -> bool {
        matches!(
            self,
            Command::SetState { .. }
                | Command::Operate { .. }
                | Command::Redrive { .. }
                | Command::EditAndRedrive { .. }
                | Command::Purge { .. }
        )
    }

    /// Whether it can be a step of a transaction: what producers and holders do to messages.
    pub(crate) fn can_be_step(&self) -> bool {
        matches!(
            self,
            Command::Send { .. }
                | Command::Publish { .. }
                | Command::Cancel { .. }
                | Command::Settle { .. }
                | Command::SetTakenState { .. }
        )
    }

    /// Whether it moves as many messages as one turn should.
    pub(crate) fn is_bulk(&self) -> bool {
        match self {
            Command::OnRecord { command, .. } => command.is_bulk(),
            Command::Transact { .. } => true,
            Command::Purge { scope, .. } => !matches!(scope, PurgeScope::DeadLetter(_)),
            _ => false,
        }
    }

    /// About how many bytes of bodies and headers it carries.
    pub(crate) fn bytes(&self) -> usize {
        let messages = |messages: &[NewMessage]| messages.iter().map(NewMessage::len).sum::<usize>();
        let sends =
            |completion: &CompletionCommand| completion.sends.iter().map(|(_, sent)| messages(sent)).sum();
        match self {
            Command::Send { messages: sent, .. }
            | Command::SendEach { messages: sent, .. }
            | Command::SendOnce { messages: sent, .. } => messages(sent),
            Command::Publish { fanout, .. } | Command::PublishOnce { fanout, .. } => {
                fanout.copies.iter().map(|(_, sent)| messages(sent)).sum()
            }
            Command::ChangeTopic { change: TopicChange::Subscribe { rules, .. }, .. }
            | Command::ChangeTopic { change: TopicChange::SetRules { rules, .. }, .. } => {
                rules.iter().map(Rule::len).sum()
            }
            Command::Settle { settlement: Settlement::Complete(completion), .. } => sends(completion),
            Command::SettleRun { settlement, .. } => sends(&settlement.completion),
            Command::Transact { steps } => steps.iter().map(Command::bytes).sum(),
            Command::HideAgain { body: Some(body), .. } => body.len(),
            Command::EditAndRedrive { edit, .. } => edit.body.len(),
            _ => 0,
        }
    }
}
