//! What the server asks of the daemon.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::clock::Timestamp;
use crate::daemon::daemon::House;
use crate::daemon::error::DaemonError;
use crate::daemon::lookout::Cause;
use crate::daemon::lookout::all_queues;
use crate::daemon::metrics;
use crate::daemon::metrics::Looked;
use crate::daemon::reload_problem::explain;
use crate::daemon::watch::reload;
use crate::definition::Definition;
use crate::definition::HandlerDefinition;
use crate::definition::SCHEDULES_QUEUE;
use crate::engine::Client;
use crate::error::Misuse;
use crate::error::Unavailable;
use crate::handlers::HeldBack;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::intake::Source;
use crate::limits;
use crate::message::Message;
use crate::server::FullWindow;
use crate::server::Host;
use crate::server::Place;
use crate::server::TooLarge;
use crate::service_bus;
use crate::storage_queue::RECORDS_QUEUE;
use crate::wire::Problem;
use crate::wire::WireDuration;
use crate::wire::WireTime;
use crate::wire::views::BlockedCause;
use crate::wire::views::BlockedCountView;
use crate::wire::views::ClockStepView;
use crate::wire::views::DefinitionView;
use crate::wire::views::HeldBackCause;
use crate::wire::views::HeldBackView;
use crate::wire::views::RatesView;
use crate::wire::views::RedactionView;
use crate::wire::views::ScheduleView;
use crate::wire::views::StatusView;

/// The daemon, as the server knows it.
pub(crate) struct Desk {
    pub(crate) house: Arc<House>,
}

/// Whether a queue is the daemon's own: schedules live in one, what is said of storage queues in another.
pub(crate) fn is_own(queue: &QueueName) -> bool {
    [SCHEDULES_QUEUE, RECORDS_QUEUE].contains(&queue.as_str())
}

impl Place for Desk {
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse> {
        if is_own(queue) {
            return Err(Misuse::new("queue", "is the daemon's own"));
        }
        self.house.intake.place(queue, message)
    }

    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration> {
        self.house.intake.rule(queue)?.retry_delay(delivery_count)
    }

    fn defer_delay(&self, queue: &QueueName) -> Option<Duration> {
        self.house.intake.rule(queue)?.defer_delay()
    }
}

impl Host for Desk {
    fn ready(&self) -> Result<(), String> {
        match self.house.draining.is_cancelled() {
            true => Err("the daemon is draining".to_owned()),
            false => Ok(()),
        }
    }

    fn status(&self) -> StatusView {
        let house = &self.house;
        StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: self.state().to_owned(),
            started_at: WireTime(house.started_at),
            file: Some(house.home.store().display().to_string()),
            file_bytes: Some(house.home.store_bytes()),
            definitions: house.definitions.load().len(),
            handlers_running: house.gauges.running(),
            blocked: self.blocked_counts(),
            reload_problem: self.reload_problem(),
            environment: house.options.environment.clone(),
            trace_url: house.options.trace_url.clone(),
            clock_step: ClockStepView::of(house.intake.client().clock_steps()),
            storage_free_bytes: house.intake.client().storage_room().map(|room| room.free_bytes),
            fault: house.intake.client().fault().map(|fault| Unavailable::Stopped(fault).to_string()),
        }
    }

    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>> {
        self.page().boxed()
    }

    fn definitions(&self) -> Vec<DefinitionView> {
        self.house.definitions.load().iter().map(|definition| self.show(definition)).collect()
    }

    fn reload_problem(&self) -> Option<String> {
        self.house.reload_problem.load().as_ref().as_ref().map(|problem| problem.text.clone())
    }

    fn definition_of(&self, queue: &QueueName) -> Option<DefinitionView> {
        if queue.as_str() == SCHEDULES_QUEUE {
            return Some(self.show_schedules());
        }
        self.house.definitions.load().get(queue).map(|definition| self.show(definition))
    }

    fn is_own(&self, queue: &QueueName) -> bool {
        is_own(queue)
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), Problem>> {
        let reloading = async {
            let problem = |error: DaemonError| Problem::new("definition_invalid", explain(&error));
            reload(&self.house).await.map_err(problem)
        };
        reloading.boxed()
    }

    fn set_paused<'a>(
        &'a self,
        client: &'a Client,
        queue: &'a QueueName,
        paused: bool,
    ) -> BoxFuture<'a, Result<(), Problem>> {
        let pausing = async move {
            let definitions = self.house.definitions.load();
            if definitions.get(queue).is_none_or(|definition| definition.handlers.is_empty()) {
                let detail = format!("queue {queue} has no handlers of its own");
                return Err(Problem::new("no_handlers", detail));
            }
            client.queue(queue.as_str())?.set_paused(paused).await?;
            self.house.crew.note_pause(queue, paused);
            let (house, queue) = (self.house.clone(), queue.clone());
            tokio::spawn(async move {
                if let Err(error) = house.crew.heed(&queue).await {
                    tracing::error!(%error, %queue, "failed to pause handlers, or to let them go on");
                }
            });
            Ok(())
        };
        pausing.boxed()
    }

    fn too_large(&self, queue: &QueueName) -> Vec<TooLarge> {
        let known = self.house.amqp_meters.too_large.of(queue, self.house.clock.now());
        let show = |(sequence_number, message): (SequenceNumber, service_bus::TooLarge)| TooLarge {
            sequence_number,
            bytes: message.bytes,
            bytes_max: message.bytes_max,
            since: message.since,
        };
        known.into_iter().map(show).collect()
    }

    fn full_window(&self, queue: &QueueName) -> Option<FullWindow> {
        let known = self.house.amqp_meters.full_windows.of(queue);
        known.map(|service_bus::FullWindow { messages, since }| FullWindow { messages, since })
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleView>, Problem>> {
        let looking = async {
            let mut shown = Vec::new();
            for (ticking, next) in self.house.ticker.next_ticks(limits::TICKS_SHOWN) {
                let last = self.house.ticker.last_tick(&ticking).await;
                shown.push(ScheduleView {
                    queue: ticking.queue.to_string(),
                    name: ticking.schedule.name.clone(),
                    cron: ticking.schedule.cron.line().to_owned(),
                    time_zone: ticking.schedule.cron.time_zone().to_owned(),
                    next: next.into_iter().map(WireTime).collect(),
                    last: last.map_err(Problem::from)?.map(WireTime),
                });
            }
            Ok(shown)
        };
        looking.boxed()
    }

    fn rates(&self) -> RatesView {
        let commits = self.house.intake.client().commit_stats();
        let mean = commits.lasted.as_secs_f64() * 1_000.0 / commits.commits as f64;
        let commit_ms_mean = (commits.commits > 0).then_some(mean);
        RatesView { queues: self.house.rates.show(), commit_ms_mean }
    }

    fn scheduled_now(&self, queue: &QueueName, schedule: &str) -> Result<Message, Box<Problem>> {
        let missing = || {
            let detail = format!("queue {queue} has no schedule {schedule:?}");
            Box::new(Problem::new("schedule_not_found", detail))
        };
        let ticking = self.house.ticker.find(queue, schedule).ok_or_else(missing)?;
        let message = ticking.schedule.message(self.house.intake.client().wall_now());
        self.house.intake.place(queue, message).map_err(|misuse| Box::new(Problem::from(misuse)))
    }

    fn backup_target(&self, name: &str) -> Result<PathBuf, Misuse> {
        // The rules of a queue's name are those of a plain file name.
        let name = QueueName::new(name).map_err(|error| Misuse::new("path", error.to_string()))?;
        self.house.home.backup(name.as_str())
    }
}

fn show_held_back(until: Timestamp, held_back: HeldBack) -> HeldBackView {
    let until = WireTime(until);
    match held_back {
        HeldBack::ByRate { .. } => HeldBackView { cause: HeldBackCause::RateLimited, until, reason: None },
        HeldBack::ByShortage { why, .. } => {
            HeldBackView { cause: HeldBackCause::CannotStart, until, reason: Some(why) }
        }
    }
}

impl Desk {
    /// How many workflows do not go on, as the lookout knows them.
    fn blocked_counts(&self) -> Vec<BlockedCountView> {
        let mut troubles = self.house.lookout.count(self.house.clock.now());
        for (queue, workflows) in self.house.gaps.counts() {
            let known = troubles.by_cause.entry((queue, Cause::Gap)).or_default();
            *known = workflows.max(*known);
        }
        let show = |((queue, cause), workflows): ((QueueName, Cause), u64)| BlockedCountView {
            queue: queue.to_string(),
            cause: match cause {
                Cause::Retry => BlockedCause::Retry,
                Cause::Gap => BlockedCause::Gap,
                Cause::Held => BlockedCause::Held,
            },
            workflows,
        };
        troubles.by_cause.into_iter().map(show).collect()
    }

    /// Whether the disk is so full that nothing new is accepted.
    fn is_full(&self) -> bool {
        self.house.intake.client().storage_room().is_some_and(|room| room.is_full)
    }

    /// How the daemon is, in a word.
    fn state(&self) -> &'static str {
        match self.house.intake.client().fault() {
            Some(_) => "failed",
            None if self.house.draining.is_cancelled() => "draining",
            None if self.is_full() => "full",
            None => "ready",
        }
    }

    fn show(&self, definition: &Definition) -> DefinitionView {
        let handler = |handler: &HandlerDefinition| match &handler.subject {
            Some(subject) => format!("{} for {subject}", handler.spec.kind()),
            None => handler.spec.kind().to_owned(),
        };
        let held_back = self.house.crew.held_back(&definition.name);
        DefinitionView {
            held_back: held_back.map(|(until, why)| show_held_back(until, why)),
            queue: definition.name.to_string(),
            file: definition.file.display().to_string(),
            handlers: definition.handlers.iter().map(handler).collect(),
            paused: self.house.crew.is_paused(&definition.name),
            schedules: definition.schedules.len(),
            retry_delays: definition.rule.retry_delays().iter().copied().map(WireDuration).collect(),
            redact: definition.redact.iter().map(show_redaction).collect(),
            loaded_at: WireTime(**self.house.loaded_at.load()),
            problem: (**self.house.reload_problem.load())
                .as_ref()
                .and_then(|problem| problem.of_definition(definition)),
        }
    }

    /// The queue of the schedules, which is the daemon's own to define.
    fn show_schedules(&self) -> DefinitionView {
        DefinitionView {
            held_back: None,
            queue: SCHEDULES_QUEUE.to_owned(),
            file: "the schedules of all definitions".to_owned(),
            handlers: vec!["sends the ticks that are due".to_owned()],
            paused: false,
            schedules: 0,
            retry_delays: Vec::new(),
            redact: Vec::new(),
            loaded_at: WireTime(**self.house.loaded_at.load()),
            problem: None,
        }
    }

    async fn page(&self) -> Result<String, Problem> {
        let (house, client) = (&self.house, self.house.intake.client());
        let looked = Looked {
            queues: all_queues(client).await.map_err(Problem::from)?,
            commits: client.commit_stats(),
            clock_steps: client.clock_steps(),
            troubles: house.lookout.count(house.clock.now()),
            store_bytes: house.home.store_bytes(),
            definitions: house.definitions.load().len(),
            is_reload_refused: house.reload_problem.load().is_some(),
            loaded_at: **house.loaded_at.load(),
            room: client.storage_room(),
            amqp: house.options.amqp.map(|_| house.amqp_meters.read()),
            storage_queue: house.options.storage_queue.map(|_| house.storage_queue_meters.read()),
        };
        metrics::page(&house.gauges, &looked).map_err(|error| Problem::new("fault", error.to_string()))
    }
}

fn show_redaction(source: &Source) -> RedactionView {
    match source {
        Source::Pointer(pointer) => {
            RedactionView { pointer: Some(pointer.to_string()), ..RedactionView::default() }
        }
        Source::Header(header) => {
            RedactionView { header: Some(header.as_str().to_owned()), ..RedactionView::default() }
        }
        Source::Property(name) => RedactionView { property: Some(name.clone()), ..RedactionView::default() },
    }
}
