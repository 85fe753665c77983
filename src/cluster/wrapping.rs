//! What of a command is for other partitions, and the same command with that in messages of the outbox.

use crate::cluster::handover::Handover;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Fanout;
use crate::engine::elsewhere::RefusedStep;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::Settlement;
use crate::engine::elsewhere::StepCommand;
use crate::engine::elsewhere::verbs;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::message::NewMessage;
use crate::message::Place;
use crate::own_queues::OUTBOX_QUEUE;

const MOVED_ONCE: &str =
    "a copy cannot be sent under a key where a rule moves it to a workflow of another partition";

type QueueSends = (QueueName, Vec<NewMessage>);

/// The queues of other partitions to which a command sends, each with the number of the step that does.
pub(crate) fn foreign_queues(
    command: &Command,
    is_foreign: &impl Fn(&QueueName, &NewMessage) -> bool,
) -> Vec<(usize, QueueName)> {
    let of_sends = |sends: &[QueueSends]| -> Vec<QueueName> {
        let foreign = sends.iter().filter(|(queue, sent)| sent.iter().any(|sent| is_foreign(queue, sent)));
        foreign.map(|(queue, _)| queue.clone()).collect()
    };
    let of_step = |step: &StepCommand| match step {
        StepCommand::Send(verb) if verb.messages.iter().any(|sent| is_foreign(&verb.queue, sent)) => {
            vec![verb.queue.clone()]
        }
        StepCommand::Publish(verb) => of_sends(&verb.fanout.copies),
        StepCommand::Settle(verbs::Settle { settlement: Settlement::Complete(completion), .. }) => {
            of_sends(&completion.sends)
        }
        _ => Vec::new(),
    };
    let queues = match command {
        Command::Settle(verbs::Settle { settlement: Settlement::Complete(completion), .. }) => {
            of_sends(&completion.sends)
        }
        Command::SettleRun(verb) => of_sends(&verb.settlement.completion.sends),
        Command::Publish(verb) => of_sends(&verb.fanout.copies),
        Command::PublishOnce(verb) => of_sends(&verb.fanout.copies),
        Command::Transact(verb) => {
            let steps = verb.steps.iter().enumerate();
            return steps
                .flat_map(|(index, step)| of_step(step).into_iter().map(move |queue| (index, queue)))
                .collect();
        }
        _ => Vec::new(),
    };
    queues.into_iter().map(|queue| (0, queue)).collect()
}

/// What is answered to a command that sends to a queue that is not there.
pub(crate) fn not_found(command: &Command, index: usize, queue: QueueName) -> Reply {
    let is_published = match command {
        Command::Publish(_) | Command::PublishOnce(_) => true,
        Command::Transact(verb) => matches!(verb.steps.get(index), Some(StepCommand::Publish(_))),
        _ => false,
    };
    let refusal = match queue.subscription().filter(|_| is_published) {
        // Who gets it was chosen by rules that are not those of the topic any more.
        Some((topic, _)) => SendRefusal::TopicChanged(topic),
        None => SendRefusal::QueueNotFound(queue),
    };
    match command {
        Command::Publish(_) => Reply::Send(Err(refusal)),
        Command::PublishOnce(_) => Reply::PublishOnce(Err(refusal)),
        Command::Transact(_) => Reply::Transact(Err(RefusedStep { index, refusal: refusal.into() })),
        _ => Reply::Settle(Err(SettleRefusal::Send(refusal))),
    }
}

/// Puts what is for another partition into messages of the outbox.
pub(crate) fn wrap_command(
    command: &mut Command,
    is_foreign: &impl Fn(&QueueName, &NewMessage) -> bool,
    takes_places: &impl Fn(&QueueName) -> bool,
) -> Result<(), Unavailable> {
    let wrap_copies = |fanout: &mut Fanout| {
        for (queue, copies) in fanout.copies.iter_mut().filter(|(queue, _)| !takes_places(queue)) {
            // As the rules do it where the copy is stored at once.
            let foreign = copies.iter_mut().filter(|copy| is_foreign(queue, copy));
            foreign.for_each(|copy| copy.place = Place::Arrival);
        }
        wrap_foreign(&mut fanout.copies, is_foreign);
    };
    match command {
        Command::Settle(verbs::Settle { settlement: Settlement::Complete(completion), .. }) => {
            wrap_foreign(&mut completion.sends, is_foreign);
        }
        Command::SettleRun(verb) => wrap_foreign(&mut verb.settlement.completion.sends, is_foreign),
        Command::Publish(verb) => wrap_copies(&mut verb.fanout),
        Command::PublishOnce(_) => return Err(Unavailable::Unsupported(MOVED_ONCE)),
        Command::Transact(verb) => {
            for step in &mut verb.steps {
                match step {
                    StepCommand::Publish(verb) => wrap_copies(&mut verb.fanout),
                    StepCommand::Settle(verbs::Settle {
                        settlement: Settlement::Complete(completion),
                        ..
                    }) => wrap_foreign(&mut completion.sends, is_foreign),
                    StepCommand::Send(verb) => wrap_step(verb, is_foreign),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// A step stays one: if one of its messages is for another partition, all go through the outbox.
fn wrap_step(verb: &mut verbs::Send, is_foreign: &impl Fn(&QueueName, &NewMessage) -> bool) {
    if verb.messages.iter().any(|message| is_foreign(&verb.queue, message)) {
        let outbox = QueueName::new(OUTBOX_QUEUE).expect("it is a name");
        let queue = std::mem::replace(&mut verb.queue, outbox);
        let messages = std::mem::take(&mut verb.messages).into_iter();
        verb.messages = messages.map(|message| Handover { queue: queue.clone(), message }.wrap()).collect();
    }
}

/// Puts those that are for another partition into messages of the outbox, each where it was.
fn wrap_foreign(all: &mut Vec<QueueSends>, is_foreign: &impl Fn(&QueueName, &NewMessage) -> bool) {
    let outbox = QueueName::new(OUTBOX_QUEUE).expect("it is a name");
    let mut sends: Vec<QueueSends> = Vec::new();
    for (queue, messages) in std::mem::take(all) {
        for message in messages {
            let (to, message) = match is_foreign(&queue, &message) {
                true => (&outbox, Handover { queue: queue.clone(), message }.wrap()),
                false => (&queue, message),
            };
            match sends.last_mut() {
                Some((last, together)) if last == to => together.push(message),
                _ => sends.push((to.clone(), vec![message])),
            }
        }
    }
    *all = sends;
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::cluster::handover::line_of;
    use crate::engine::elsewhere::CompletionCommand;
    use crate::header::Headers;
    use crate::id::WorkflowId;
    use crate::message::Message;

    #[test]
    fn what_is_for_others_is_wrapped_where_it_was_and_unwrapped_as_it_was() {
        let message = |workflow: &str| Message::new("body").workflow(workflow).subject("s").check().unwrap();
        let (q, r) = (QueueName::new("q").unwrap(), QueueName::new("r").unwrap());
        let mut completion = CompletionCommand {
            sends: vec![(q.clone(), vec![message("own"), message("other"), message("own")]), (r, vec![])],
            ..CompletionCommand::default()
        };
        let is_foreign =
            |_: &QueueName, message: &NewMessage| message.workflow_id == WorkflowId::new("other").ok();
        wrap_foreign(&mut completion.sends, &is_foreign);
        let queues: Vec<&str> = completion.sends.iter().map(|(queue, _)| queue.as_str()).collect();
        assert_eq!(queues, ["q", OUTBOX_QUEUE, "q"], "receipts come in the order of the messages");
        let wrapped = &completion.sends[1].1[0];
        let unwrapped = Handover::unwrap(&wrapped.headers, &wrapped.body).unwrap();
        assert_eq!(unwrapped, Handover { queue: q.clone(), message: message("other") });
        assert_eq!(wrapped.workflow_id, Some(line_of(&q, &WorkflowId::new("other").unwrap())));
        assert!(Handover::unwrap(&Headers::default(), &Bytes::new()).is_none());
    }
}
