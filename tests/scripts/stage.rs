//! The stage on which a script is played: one queue of an engine in memory, and deliveries by name.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use seriatim::AcceptedWorkflow;
use seriatim::Clock;
use seriatim::Completion;
use seriatim::Delivery;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Order;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::event::EventKind;
use seriatim::event::Events;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::HoldKind;
use seriatim::testing::ManualClock;
use seriatim::view::MessageStatus;
use seriatim::view::WorkflowStatus;

use crate::scripts::line::Line;

/// What a script plays on.
pub(crate) struct Stage {
    engine: Engine,
    clock: ManualClock,
    start: Timestamp,
    queue: Queue,
    events: Events,
    deliveries: BTreeMap<String, Delivery>,
    taken: BTreeMap<String, AcceptedWorkflow>,
}

type Answers = Vec<String>;

/// An answer that is a word, or a refusal.
fn told<T, E: Display>(result: Result<T, E>, answer: impl FnOnce(T) -> String) -> Answers {
    vec![match result {
        Ok(done) => answer(done),
        Err(error) => format!("refused: {error}"),
    }]
}

fn done<E: Display>(result: Result<(), E>) -> Answers {
    told(result, |()| "done".to_owned())
}

impl Stage {
    pub(crate) async fn new() -> Stage {
        let (engine, clock) = seriatim::testing::engine().await.expect("an engine in memory opens");
        let (queue, events) = (engine.client().queue("q").expect("a good name"), engine.events());
        let start = clock.now();
        Stage { engine, clock, start, queue, events, deliveries: BTreeMap::new(), taken: BTreeMap::new() }
    }

    pub(crate) async fn play(&mut self, place: &str, line: &str) -> Answers {
        let line = Line::new(place, line);
        match line.verb {
            "queue" => self.create(&line).await,
            "send" => self.send(&line).await,
            "advance" => {
                self.clock.advance(Duration::from_secs(line.number(0)));
                // The next request sees what has become due, so this asks for nothing but that.
                self.queue.view().await.map_or_else(|error| vec![error.to_string()], |_| Vec::new())
            }
            "receive" | "run" | "take" | "ahead" | "fetch" => self.receive(&line).await,
            "complete" | "abandon" | "defer" | "dead-letter" | "release" | "renew" | "drop" | "close" => {
                self.settle(&line).await
            }
            "show" | "list" | "counts" | "dead" | "events" | "state" => self.look(&line).await,
            _ => self.operate(&line).await,
        }
    }

    async fn create(&mut self, line: &Line<'_>) -> Answers {
        let order = match line.value("order") {
            Some("position") => Order::POSITION,
            Some("after") => Order::After,
            Some("none") => Order::None,
            _ => Order::Arrival,
        };
        let mut options = QueueOptions::default().order(order);
        options.exhausted = line.value("spent").map(|policy| match policy {
            "skip" => ExhaustedPolicy::Skip,
            "quarantine" => ExhaustedPolicy::Quarantine,
            _ => ExhaustedPolicy::Hold,
        });
        if let Some(max) = line.value("max") {
            options.delivery_count_max = line.parse(max);
        }
        if let Some(wait) = line.seconds("gap") {
            let then = match line.value("then") {
                Some("skip") => GapAction::Skip,
                Some("wait") => GapAction::Wait,
                _ => GapAction::Hold,
            };
            options.gap = GapPolicy { wait, then };
        }
        options.hold_on_defer = line.value("defer") == Some("wait");
        options.keep_deferred = line.value("defer") == Some("keep");
        options.duplicate_window = line.seconds("window");
        told(self.engine.client().create_queue("q", options).await, |_| "created".to_owned())
    }

    async fn send(&mut self, line: &Line<'_>) -> Answers {
        let (workflow, body) = (line.word(0), line.word(1));
        let mut message = Message::new(body.to_owned());
        if workflow != "-" {
            message = message.workflow(workflow);
        }
        if let Some(position) = line.value("position") {
            message = message.position(line.parse(position));
        }
        match line.value("after") {
            Some("none") => message = message.first().message_id(body),
            Some(predecessor) => message = message.after(predecessor).message_id(body),
            None => {}
        }
        if let Some(id) = line.value("id") {
            message = message.message_id(id);
        }
        if let Some(lives) = line.seconds("ttl") {
            message = message.time_to_live(lives);
        }
        if let Some(in_seconds) = line.seconds("in") {
            message = message.schedule_at(self.clock.now() + in_seconds);
        }
        told(self.queue.send(message).await, |receipt| {
            let number = receipt.sequence_number().map(|number| format!(" {number}")).unwrap_or_default();
            let debug = format!("{receipt:?}").to_lowercase();
            format!("{}{number}", debug.split('(').next().unwrap_or_default())
        })
    }

    async fn receive(&mut self, line: &Line<'_>) -> Answers {
        let name = line.word(0);
        let received = match line.verb {
            "receive" => self.queue.receive(Duration::ZERO).await.map(|found| found.into_iter().collect()),
            "fetch" => {
                let number = [SequenceNumber::new(line.number(1))];
                match line.value("of") {
                    Some(taken) => self.taken[taken].receive_deferred(&number).await,
                    None => self.queue.receive_deferred(&number).await,
                }
            }
            "ahead" => {
                let max = usize::try_from(line.number(1)).expect("a small number");
                self.taken[name].receive(max, Duration::ZERO).await
            }
            "take" => return self.take(line).await,
            _ => return self.run(line).await,
        };
        let deliveries = match received {
            Ok(deliveries) => deliveries,
            Err(error) => return vec![format!("refused: {error}")],
        };
        if deliveries.is_empty() {
            return vec!["nothing".to_owned()];
        }
        let mut answers = Vec::new();
        for (index, delivery) in deliveries.into_iter().enumerate() {
            let name = if line.verb == "ahead" { format!("{name}.{}", index + 1) } else { name.to_owned() };
            answers.push(format!("{name} = {}", shown(delivery.message())));
            self.deliveries.insert(name, delivery);
        }
        answers
    }

    async fn take(&mut self, line: &Line<'_>) -> Answers {
        let name = line.word(0).to_owned();
        match self.queue.accept_workflow(line.word(1)).await {
            Ok(taken) => {
                let state = taken.state().map(|state| String::from_utf8_lossy(state).into_owned());
                self.taken.insert(name, taken);
                vec![format!("taken, state {}", state.as_deref().unwrap_or("none"))]
            }
            Err(error) => vec![format!("refused: {error}")],
        }
    }

    /// Receives a run, completes its first messages and abandons the next.
    async fn run(&mut self, line: &Line<'_>) -> Answers {
        let (max, first) = (line.number(0), line.number(1));
        let max = usize::try_from(max).expect("a small number");
        let run = self.queue.receive_run(max, Duration::ZERO).await.expect("the queue exists");
        let Some(mut run) = run else { return vec!["nothing".to_owned()] };
        let mut answers: Answers = run.messages().iter().map(shown).collect();
        let first = usize::try_from(first).expect("a small number");
        let later = seriatim::Outcome::Abandon(seriatim::Abandon::now().reason("not this one"));
        let settled = match first == run.messages().len() {
            true => run.complete_all().await,
            false => run.complete_first_then(first, later).await,
        };
        answers.extend(done(settled));
        answers
    }

    async fn settle(&mut self, line: &Line<'_>) -> Answers {
        let name = line.word(0);
        match line.verb {
            "drop" => {
                self.deliveries.remove(name);
                return Vec::new();
            }
            "close" => {
                let taken = self.taken.remove(name).expect("it was taken");
                return done(taken.close().await);
            }
            _ => {}
        }
        let in_seconds = line.seconds("in");
        let at = in_seconds.map(|delay| self.clock.now() + delay);
        let delivery = self.deliveries.get_mut(name).expect("it was received");
        match (line.verb, in_seconds) {
            ("complete", _) => {
                let mut completion = Completion::new();
                if let Some(state) = line.value("state") {
                    completion = completion.state(state.to_owned());
                }
                if let Some((workflow, body)) = line.value("send").and_then(|text| text.split_once('/')) {
                    completion = completion.send("q", Message::new(body.to_owned()).workflow(workflow));
                }
                told(delivery.complete_with(completion).await, |receipts| {
                    format!("done, sent {}", receipts.len())
                })
            }
            ("abandon", Some(delay)) => done(delivery.abandon_after(delay, "later").await),
            ("abandon", None) => done(delivery.abandon().await),
            ("defer", _) => done(match at {
                Some(at) => delivery.defer_until(at).await,
                None => delivery.defer().await,
            }),
            ("dead-letter", _) => done(delivery.dead_letter(line.word(1), "").await),
            ("release", _) => done(delivery.release().await),
            _ => told(delivery.renew().await, |until| format!("until {}", self.at(until))),
        }
    }

    async fn operate(&mut self, line: &Line<'_>) -> Answers {
        match line.verb {
            "cancel" => return done(self.queue.cancel(SequenceNumber::new(line.number(0))).await),
            "cancel-void" => {
                return done(self.queue.cancel_and_void(SequenceNumber::new(line.number(0))).await);
            }
            "redrive" => {
                let redriven = self.queue.redrive(SequenceNumber::new(line.number(0))).await;
                return told(redriven, |how| format!("{how:?}").replace("SequenceNumber", ""));
            }
            "purge" => return told(self.queue.purge().await, |count| format!("{count} purged")),
            "delete" => return done(self.engine.client().delete_queue("q").await),
            _ => {}
        }
        let workflow = self.queue.workflow(line.word(0)).expect("a good ID");
        done(match line.verb {
            "hold" => workflow.hold("a reason").await,
            "resume" => match line.value("cause") {
                Some("operator") => workflow.resume_for(HoldKind::Operator).await,
                Some("gap") => workflow.resume_for(HoldKind::Gap).await,
                Some("exhausted") => workflow.resume_for(HoldKind::Exhausted).await,
                Some(_) => line.unknown(),
                None => workflow.resume().await,
            },
            "resume-and-redrive" => workflow.resume_and_redrive().await.map(drop),
            "retry" => workflow.retry_now().await,
            "skip" => workflow.skip_head("a reason").await,
            "void" => workflow.declare_void(line.number(1), line.number(2)).await,
            "skip-gap" => workflow.skip_gap().await,
            "release-lock" => workflow.release_lock().await,
            _ => line.unknown(),
        })
    }

    async fn look(&mut self, line: &Line<'_>) -> Answers {
        match line.verb {
            "show" => self.show(line.word(0)).await,
            "list" => {
                let page = self.queue.peek(SequenceNumber::new(0), 100).await.expect("the queue exists");
                let shown = |view: &seriatim::view::MessageView| {
                    let body = String::from_utf8_lossy(&view.body).into_owned();
                    let count = view.delivery_count;
                    format!("{} {body} count {count}: {}", view.sequence_number, self.status(&view.status))
                };
                page.iter().map(shown).collect()
            }
            "counts" => {
                let counts = self.queue.view().await.expect("the queue exists").counts;
                let text = format!("{counts:?}");
                let parts = text.trim_start_matches("Counts { ").trim_end_matches(" }").split(", ");
                vec![parts.filter(|part| !part.ends_with(": 0")).collect::<Vec<_>>().join(", ")]
            }
            "dead" => {
                let letters = self.queue.dead_letters(None, 100).await.expect("the queue exists");
                letters
                    .iter()
                    .map(|letter| format!("{} {}", letter.sequence_number, letter.dead_letter.reason))
                    .collect()
            }
            "state" => {
                let workflow = self.queue.workflow(line.word(0)).expect("a good ID");
                let state = workflow.state().await.expect("the queue exists");
                vec![state.map_or("none".to_owned(), |state| String::from_utf8_lossy(&state).into_owned())]
            }
            _ => std::iter::from_fn(|| self.events.try_next()).map(|event| kind(&event.kind)).collect(),
        }
    }

    async fn show(&self, workflow: &str) -> Answers {
        let workflow = self.queue.workflow(workflow).expect("a good ID");
        let Some(view) = workflow.view().await.expect("the queue exists") else {
            return vec!["unknown".to_owned()];
        };
        let status = match &view.status {
            WorkflowStatus::Locked { until } => format!("locked until {}", self.at(*until)),
            WorkflowStatus::Blocked { sequence_number, until, reason, .. } => {
                let until = until.map_or("somebody acts".to_owned(), |until| self.at(until));
                format!("blocked by {sequence_number} until {until}: {reason}")
            }
            WorkflowStatus::Scheduled { until } => format!("scheduled until {}", self.at(*until)),
            WorkflowStatus::Held(_) => {
                let causes: Vec<String> = view.holds.iter().map(|hold| format!("{:?}", hold.cause)).collect();
                format!("held: {}", causes.join(" and ")).replace("SequenceNumber", "")
            }
            other => format!("{other:?}").to_lowercase(),
        };
        let next = view.next_position.map(|next| format!(", next {next}")).unwrap_or_default();
        let gap = view.gap.map(|gap| {
            let due = gap.due.map_or("over".to_owned(), |due| self.at(due));
            format!(", gap from {:?} to {:?} due {due}", gap.first_missing, gap.first_waiting)
        });
        vec![format!("{status}{next}{}", gap.unwrap_or_default())]
    }

    fn status(&self, status: &MessageStatus) -> String {
        match status {
            MessageStatus::Ready => "ready".to_owned(),
            MessageStatus::Locked { until } => format!("locked until {}", self.at(*until)),
            MessageStatus::Scheduled { until } => format!("scheduled until {}", self.at(*until)),
            MessageStatus::Deferred { why, until } => {
                let until = until.map(|until| format!(" until {}", self.at(until))).unwrap_or_default();
                format!("deferred, {why:?}{until}").to_lowercase()
            }
            MessageStatus::DeadLettered(letter) => format!("dead, {}", letter.reason),
            other => format!("{other:?}"),
        }
    }

    /// An instant, as seconds from the script's start.
    fn at(&self, instant: Timestamp) -> String {
        format!("+{}s", instant.since(self.start).as_secs())
    }
}

fn shown(message: &seriatim::ReceivedMessage) -> String {
    let body = String::from_utf8_lossy(&message.body).into_owned();
    format!("{} {body} count {}", message.sequence_number, message.delivery_count)
}

fn kind(kind: &EventKind) -> String {
    match kind {
        EventKind::Blocked { reason, .. } => format!("blocked: {reason}"),
        EventKind::Held { cause, .. } => format!("held: {cause:?}").replace("SequenceNumber", ""),
        EventKind::GapSkipped { from, to } => format!("skipped {from} to {to}"),
        EventKind::Gap { .. } => "gap".to_owned(),
        EventKind::DeadLettered { reason } => format!("dead: {reason}"),
        EventKind::Redriven { in_place } => format!("redriven, in place {in_place}"),
        other => format!("{other:?}").to_lowercase(),
    }
}
