//! Commands of any kind, asked as clients ask each kind.

use std::time::Duration;

use crate::engine::inbox::Inbox;
use crate::engine::letter::AwaitedAnswer;
use crate::engine::letter::LetterHandle;
use crate::engine::letter::WorkWait;
use crate::engine::letter::letter;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verb::WorkVerb;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::rules::waits_for::WaitsFor;
use crate::error::ReceiveRefusal;

/// The answer to a command of any kind, awaited.
pub(crate) struct AwaitedReply(AwaitedAnswer<Command, Box<dyn FnMut(Command) + Send>>);

impl AwaitedReply {
    /// The reply, if it has come; `None` in it when the engine has stopped.
    pub(crate) fn try_take(&mut self) -> Option<Option<Reply>> {
        let arrived = self.0.try_take()?;
        Some(arrived.and_then(Result::ok).map(surely))
    }
}

/// Puts a command into its envelope. What nobody takes is given back through the inbox.
pub(crate) fn ask(command: Command, wait: Option<Duration>, inbox: Inbox) -> (LetterHandle, AwaitedReply) {
    let work_wait = work_wait(&command, wait.unwrap_or_default());
    let post = move |command| inbox.give_back(command);
    let (asked, awaited) = letter(command, work_wait, Box::new(post) as Box<dyn FnMut(Command) + Send>);
    (asked, AwaitedReply(awaited))
}

fn work_wait(command: &Command, wait: Duration) -> Option<WorkWait<Command>> {
    let waits_for = match command {
        Command::Receive(verb) => verb.waits_for(),
        Command::ReceiveRun(verb) => verb.waits_for(),
        Command::ReceiveDeadLetters(verb) => verb.waits_for(),
        Command::ReceiveFromWorkflow(verb) => verb.waits_for(),
        Command::AcceptWorkflow(verbs::AcceptWorkflow { workflow: None, queue, .. }) => {
            return Some(WorkWait {
                waits_for: WaitsFor::Queue(queue.clone()),
                wait,
                is_nothing: |answer| matches!(answer, Ok(Reply::AcceptWorkflow(Ok(None)))),
                nothing: || Ok(Reply::AcceptWorkflow(Ok(None))),
                too_many: |waiting| Ok(Reply::AcceptWorkflow(Err(ReceiveRefusal::TooManyWaiting(waiting)))),
                token: None,
            });
        }
        _ => return None,
    };
    Some(WorkWait {
        waits_for,
        wait,
        is_nothing: |answer| matches!(answer, Ok(Reply::Receive(Ok(handed))) if handed.is_empty()),
        nothing: || Ok(Reply::Receive(Ok(Vec::new()))),
        too_many: |waiting| Ok(Reply::Receive(Err(ReceiveRefusal::TooManyWaiting(waiting)))),
        token: None,
    })
}
