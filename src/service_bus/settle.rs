//! How clients settle what they received: over the link it came by, or by token.

use std::time::Duration;

use crate::amqp::DeliveryNumber;
use crate::amqp::DeliveryOutcome;
use crate::amqp::LinkId;
use crate::api::WireDuration;
use crate::engine;
use crate::engine::Abandon;
use crate::engine::Completion;
use crate::engine::DeliveryId;
use crate::engine::Settler;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::limits;
use crate::service_bus::client_settlement::ClientSettlement;
use crate::service_bus::client_settlement::echo;
use crate::service_bus::completions::SettlementReply;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::holds::ClientSettlementKind;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// The property of an abandoned message that says after what time it is tried again.
const RETRY_AFTER: &str = "seriatim-retry-after";

/// The property of a deferred message that says after what time it comes back by itself.
const DEFER_FOR: &str = "seriatim-defer-for";

impl ConnectionTask {
    pub(crate) fn settle(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        outcome: Option<DeliveryOutcome>,
        settled: bool,
    ) {
        let Some(receiver) = self.receiver(link) else { return };
        let hold = receiver.unsettled.remove(&delivery);
        let Some(hold) = hold else {
            if !settled {
                let lost = self.lost(link, AmqpRefusal::lock_lost());
                self.amqp.settle(link, delivery, DeliveryOutcome::Rejected(Some(lost.into())));
            }
            return;
        };
        let outcome = outcome.unwrap_or(DeliveryOutcome::Released);
        let reply = SettlementReply { link, delivery, outcome: (!settled).then(|| echo(&outcome)) };
        match ClientSettlement::of(&outcome) {
            Some(ClientSettlement::Complete) => {
                self.send_releases();
                hold.note_activity();
                let waiting = self.completions.by_queue.entry(hold.queue.clone()).or_default();
                waiting.push((reply, hold));
                if waiting.len() >= limits::COMPLETE_ALL_MAX {
                    self.send_completions();
                }
            }
            None if hold.is_of_session() => {
                self.send_completions();
                // It was unsettled until now, so there are no more of them than may be unsettled.
                self.releases.push((reply, hold));
            }
            settlement => {
                // What was settled before it is asked before it.
                self.send_settlements();
                let shared = self.shared.clone();
                self.start(async move {
                    let answer = match settlement {
                        Some(settlement) => shared.settle(&hold, settlement).await,
                        None => shared.release(&hold).await,
                    };
                    move |connection_task: &mut ConnectionTask| connection_task.settled(reply, answer)
                });
            }
        }
        // A session has room for more when something of it is settled.
        self.note_settled(link);
    }

    /// Asks for everything that was settled so far.
    pub(crate) fn send_settlements(&mut self) {
        // What comes of one kind sends those of the other, so that at most one of them has some.
        self.send_completions();
        self.send_releases();
    }

    /// Gives back what came together, of each session what was handed out last first: what waits behind a message that is given back
    /// before it is taken from its holder, counted.
    fn send_releases(&mut self) {
        let mut releases = std::mem::take(&mut self.releases);
        releases.sort_unstable_by_key(|(reply, _)| (reply.link, reply.delivery));
        for (reply, hold) in releases.into_iter().rev() {
            let shared = self.shared.clone();
            self.start(async move {
                let answer = shared.release(&hold).await;
                move |connection_task: &mut ConnectionTask| connection_task.settled(reply, answer)
            });
        }
    }

    /// Completes what came together, in one request for each queue.
    fn send_completions(&mut self) {
        for (name, waiting) in std::mem::take(&mut self.completions).by_queue {
            let shared = self.shared.clone();
            self.start(async move {
                let ids: Vec<DeliveryId> = waiting.iter().map(|(_, hold)| hold.id).collect();
                let answers = match shared.settler(&name) {
                    Ok(settler) => settler.complete_all(&ids).await.map_err(AmqpRefusal::from),
                    Err(refusal) => Err(refusal),
                };
                let answers: Vec<Result<(), AmqpRefusal>> = match answers {
                    Ok(answers) => {
                        answers.into_iter().map(|answer| answer.map_err(AmqpRefusal::from)).collect()
                    }
                    Err(refusal) => waiting.iter().map(|_| Err(refusal.clone())).collect(),
                };
                move |connection_task: &mut ConnectionTask| {
                    for ((reply, hold), answer) in waiting.into_iter().zip(answers) {
                        let answer =
                            connection_task.shared.note(&hold, ClientSettlementKind::Completed, answer);
                        connection_task.settled(reply, answer);
                    }
                }
            });
        }
    }

    fn settled(&mut self, reply: SettlementReply, answer: Result<(), AmqpRefusal>) {
        self.shared.meters.note_settled(usize::from(answer.is_ok()));
        let Some(outcome) = reply.outcome else { return };
        let outcome = match answer {
            Ok(()) => outcome,
            Err(refusal) if refusal.condition == condition::LOCK_LOST => {
                DeliveryOutcome::Rejected(Some(self.lost(reply.link, refusal).into()))
            }
            Err(refusal) => DeliveryOutcome::Rejected(Some(refusal.into())),
        };
        self.amqp.settle(reply.link, reply.delivery, outcome);
    }

    /// What a client is told whose lock of a message is lost. Of a session that is still held the message was taken back alone, because
    /// one before it has failed: an SDK that hears of a lost session gives all of it up.
    fn lost(&mut self, link: LinkId, of_message: AmqpRefusal) -> AmqpRefusal {
        let now = self.shared.client.elapsed();
        let session = self.receiver(link).and_then(|receiver| receiver.session.as_ref());
        match session.is_some_and(|session| session.ends_at() <= now) {
            true => AmqpRefusal::session_lock_lost(),
            false => of_message,
        }
    }
}

impl EndpointState {
    pub(crate) fn settler(&self, queue: &QueueName) -> Result<Settler, AmqpRefusal> {
        Ok(self.client.queue(queue.as_str())?.settler())
    }

    /// Settles a message that a client holds.
    pub(crate) async fn settle(
        &self,
        hold: &ClientHold,
        settlement: ClientSettlement,
    ) -> Result<(), AmqpRefusal> {
        hold.note_activity();
        let kind = settlement.kind();
        let answer = self.settle_message(hold, settlement).await;
        self.note(hold, kind, answer)
    }

    async fn settle_message(
        &self,
        hold: &ClientHold,
        settlement: ClientSettlement,
    ) -> Result<(), AmqpRefusal> {
        let settler = self.settler(&hold.queue)?;
        if settlement == ClientSettlement::Complete {
            settler.complete(hold.id, Completion::new()).await?;
            return Ok(());
        }
        let (ending, properties) = self.ending(hold, settlement)?;
        Ok(settler.end_with(hold.id, ending, properties).await?)
    }

    /// How a message ends that is not completed, and what is set of it.
    pub(crate) fn ending(
        &self,
        hold: &ClientHold,
        settlement: ClientSettlement,
    ) -> Result<(engine::Outcome, Properties), AmqpRefusal> {
        let rule = self.intake.rule(&hold.queue);
        let (ending, changes) = match settlement {
            ClientSettlement::Complete => unreachable!("a message that is completed has no other ending"),
            ClientSettlement::Abandon(mut changes) => {
                let abandon = match changes.remove(RETRY_AFTER) {
                    Some(given) => Abandon::after(delay(RETRY_AFTER, &given)?),
                    None => rule
                        .and_then(|rule| rule.retry_delay(hold.id.delivery_count()))
                        .map_or_else(Abandon::now, Abandon::after),
                };
                (engine::Outcome::Abandon(abandon.reason("abandoned")), changes)
            }
            ClientSettlement::Defer(mut changes) => {
                let wanted = changes.remove(DEFER_FOR).map(|given| delay(DEFER_FOR, &given)).transpose()?;
                let defer_for = wanted.or_else(|| rule?.defer_delay());
                let now = self.client.wall_now();
                // A client says this of a message that expired in its hands: it is set aside no longer than it lives.
                let expired =
                    hold.expiry.filter(|expiry| expiry.reported_at <= now).map(|expiry| expiry.ends_at);
                (engine::Outcome::defer(expired, defer_for), changes)
            }
            ClientSettlement::DeadLetter { reason, description, changes } => {
                (engine::Outcome::DeadLetter { reason, description }, changes)
            }
        };
        Ok((ending, changes.to_properties(hold.set_before.as_ref())?))
    }

    /// Gives a message back as if it had not been handed out.
    pub(crate) async fn release(&self, hold: &ClientHold) -> Result<(), AmqpRefusal> {
        hold.note_activity();
        self.holds.forget(hold.token);
        Ok(self.settler(&hold.queue)?.end(hold.id, engine::Outcome::Release).await?)
    }

    /// Notes how a settlement went.
    pub(crate) fn note(
        &self,
        hold: &ClientHold,
        kind: ClientSettlementKind,
        answer: Result<(), AmqpRefusal>,
    ) -> Result<(), AmqpRefusal> {
        match answer {
            Ok(()) => {
                self.holds.note_settled(hold.token, kind);
                if let Some(place) = &hold.in_window {
                    place.note_settled(hold.number());
                }
                Ok(())
            }
            Err(refusal) => {
                // In a session that goes on, nothing else would ever forget what was taken back.
                if refusal.condition == condition::LOCK_LOST {
                    self.holds.forget(hold.token);
                }
                Err(refusal)
            }
        }
    }
}

/// A delay as a client says it: seconds, or text of a span.
fn delay(name: &str, given: &PropertyValue) -> Result<Duration, AmqpRefusal> {
    let wrong = || AmqpRefusal::argument(format!("{name} is neither seconds nor a span like 5m"));
    match given {
        PropertyValue::Integer(seconds) => {
            Ok(Duration::from_secs(u64::try_from(*seconds).map_err(|_| wrong())?))
        }
        PropertyValue::Float(seconds) => Duration::try_from_secs_f64(*seconds).map_err(|_| wrong()),
        PropertyValue::Text(text) => Ok(text.parse::<WireDuration>().map_err(|_| wrong())?.0),
        _ => Err(wrong()),
    }
}
