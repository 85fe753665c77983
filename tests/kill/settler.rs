//! How what was taken is settled: in every way there is, each said before and after.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::Clock;
use seriatim::Completion;
use seriatim::Delivery;
use seriatim::Outcome;
use seriatim::Run;
use seriatim::SystemClock;
use seriatim::Unavailable;
use seriatim::error::OperationError;
use seriatim::error::SettleError;

use crate::kill::child::Load;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::output_lines;
use crate::kill::output_lines::Role;
use crate::kill::output_lines::say;
use crate::kill::report::Ending;
use crate::kill::report::Report;
use crate::random::Random;

/// Longest delay of a retry, and of what is set aside for a time.
const DELAY_MS_MAX: u64 = 5;

/// Settles a delivery in some way; most are completed.
pub(crate) async fn settle(
    load: &Load,
    delivery: &mut Delivery,
    random: &mut Random,
) -> Result<(), Unavailable> {
    let name = name_of(delivery);
    let (ending, end) = match load.task.role {
        Role::Drainer => (Ending::Completed, None),
        _ => draw(name, random),
    };
    let hold = output_lines::hold(delivery.lock_token());
    let promise = Promise::make(load, hold, vec![(name, ending)]);
    let settled = match (ending, end) {
        (Ending::CompletedWithFollowUp, _) => {
            let follow_up = name.follow_up();
            let completion =
                Completion::new().send(follow_up.ordered.queue(), follow_up.message(load.task.seed));
            delivery.complete_with(completion).await.map(drop)
        }
        (_, Some(end)) => delivery.end(end).await,
        (_, None) => delivery.complete().await,
    };
    promise.keep(load, settled, Some(delivery))
}

/// Completes deliveries of several workflows in one request.
pub(crate) async fn complete_together(
    load: &Load,
    ordered: Ordered,
    mut deliveries: Vec<Delivery>,
) -> Result<(), Unavailable> {
    let promise = |delivery: &Delivery| {
        let endings = vec![(name_of(delivery), Ending::Completed)];
        Promise::make(load, output_lines::hold(delivery.lock_token()), endings)
    };
    let promises: Vec<_> = deliveries.iter().map(promise).collect();
    let answers = match load.queue(ordered).complete_all(&mut deliveries).await {
        Ok(answers) => answers,
        Err(OperationError::Unavailable(unavailable)) => return Err(unavailable),
        Err(error) => panic!("completing what was received together: {error}"),
    };
    for (promise, answer) in promises.into_iter().zip(answers) {
        promise.keep(load, answer.map_err(SettleError::Refused), None)?;
    }
    Ok(())
}

/// Completes the first messages of a run.
pub(crate) async fn complete_first(load: &Load, run: &mut Run, count: usize) -> Result<(), Unavailable> {
    let endings = names_of(run).into_iter().take(count).map(|name| (name, Ending::Completed)).collect();
    let promise = Promise::make(load, output_lines::hold(run.lock_token()), endings);
    promise.keep(load, run.complete_first(count).await, None)
}

/// Completes a part of a run, ends the next message in another way, and gives back the rest.
pub(crate) async fn end_run(load: &Load, run: &mut Run, random: &mut Random) -> Result<(), Unavailable> {
    let names = names_of(run);
    let count = usize::try_from(random.below(names.len() as u64)).expect("a small number");
    let (ending, end) = draw_other(names[count], random);
    let end_of = |index: usize| match index {
        _ if index < count => Ending::Completed,
        _ if index == count => ending,
        _ => Ending::Released,
    };
    let endings = names.iter().enumerate().map(|(index, name)| (*name, end_of(index))).collect();
    let promise = Promise::make(load, output_lines::hold(run.lock_token()), endings);
    if ending == Ending::Aside {
        load.set_aside(names[count].ordered, run.messages()[count].sequence_number);
    }
    promise.keep(load, run.complete_first_then(count, end).await, None)
}

/// How a delivery is to end; most are completed.
fn draw(name: Name, random: &mut Random) -> (Ending, Option<Outcome>) {
    if random.chance(70) {
        let sends = name.may_send() && random.chance(50);
        return (if sends { Ending::CompletedWithFollowUp } else { Ending::Completed }, None);
    }
    let (ending, end) = draw_other(name, random);
    (ending, Some(end))
}

/// An ending other than well.
fn draw_other(name: Name, random: &mut Random) -> (Ending, Outcome) {
    let delay = Duration::from_millis(random.below(DELAY_MS_MAX));
    match random.below(12) {
        0 => (
            Ending::DeadLettered,
            Outcome::DeadLetter { reason: "drawn".to_owned(), description: String::new() },
        ),
        1 => (Ending::Released, Outcome::Release),
        2..=3 => (Ending::Failed, Outcome::Abandon(Abandon::after(delay).reason("drawn"))),
        4..=5 => (Ending::Failed, Outcome::Abandon(Abandon::with_backoff())),
        6 if !name.may_send() => (Ending::Aside, Outcome::Defer),
        7..=8 if !name.may_send() => {
            (Ending::Aside, Outcome::DeferUntil(SystemClock::default().now() + delay))
        }
        _ => (Ending::Failed, Outcome::Abandon(Abandon::now())),
    }
}

/// A settle whose intent was said.
struct Promise {
    hold: String,
    endings: Vec<(Name, Ending)>,
    is_said: bool,
}

impl Promise {
    fn make(load: &Load, hold: String, endings: Vec<(Name, Ending)>) -> Promise {
        let at_ms = SystemClock::default().now().as_millis();
        say(&Report::Settling { hold: hold.clone(), endings: endings.clone(), at_ms });
        let is_said = load.task.role == Role::HastySettler;
        if is_said {
            say(&Report::Settled { hold: hold.clone() });
        }
        Promise { hold, endings, is_said }
    }

    /// Says the answer, and makes room for what has ended.
    fn keep(
        self,
        load: &Load,
        settled: Result<(), SettleError>,
        delivery: Option<&Delivery>,
    ) -> Result<(), Unavailable> {
        match settled {
            Ok(()) if self.is_said => {}
            Ok(()) => say(&Report::Settled { hold: self.hold }),
            Err(OperationError::Unavailable(unavailable)) => return Err(unavailable),
            Err(error) => {
                let at_ms = SystemClock::default().now().as_millis();
                say(&Report::Refused { hold: self.hold, why: error.to_string(), at_ms });
                return Ok(());
            }
        }
        let is_over = |ending: &Ending| matches!(ending, Ending::Completed | Ending::DeadLettered);
        load.room.add_permits(self.endings.iter().filter(|(_, ending)| is_over(ending)).count());
        for (name, ending) in &self.endings {
            if let (Ending::Aside, Some(delivery)) = (ending, delivery) {
                load.set_aside(name.ordered, delivery.sequence_number());
            }
        }
        Ok(())
    }
}

pub(crate) fn name_of(delivery: &Delivery) -> Name {
    let id = delivery.message().message_id.as_ref().expect("every message has an ID");
    id.as_str().parse().expect("the ledger's names are the only IDs")
}

fn names_of(run: &Run) -> Vec<Name> {
    let id = |message: &seriatim::ReceivedMessage| message.message_id.as_ref().map(|id| id.as_str().parse());
    run.messages()
        .iter()
        .filter_map(id)
        .map(|name| name.expect("the ledger's names are the only IDs"))
        .collect()
}
