//! What the server asks of the daemon.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::api::Problem;
use crate::api::WireDuration;
use crate::api::WireTime;
use crate::api::views::BlockedCause;
use crate::api::views::BlockedCountView;
use crate::api::views::ClockStepView;
#[cfg(feature = "cluster")]
use crate::api::views::ClusterView;
use crate::api::views::DefinitionView;
use crate::api::views::HeldBackCause;
use crate::api::views::HeldBackView;
use crate::api::views::RatesView;
use crate::api::views::RedactionView;
use crate::api::views::ScheduleView;
use crate::api::views::StatusView;
use crate::clock::Timestamp;
#[cfg(feature = "cluster")]
use crate::cluster::ClusterHandle;
use crate::daemon::blocked_monitor::BlockedCounts;
#[cfg(feature = "cluster")]
use crate::daemon::cluster_host;
use crate::daemon::daemon_state::DaemonState;
use crate::daemon::error::DaemonError;
use crate::daemon::metrics;
use crate::daemon::metrics::MetricsSnapshot;
use crate::daemon::reload_problem::explain;
use crate::daemon::watch::reload_whole;
use crate::definition::Definition;
use crate::definition::HandlerDefinition;
use crate::engine::Client;
use crate::error::Misuse;
use crate::error::Unavailable;
use crate::handlers::DispatchPause;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::intake::FieldSource;
use crate::limits;
use crate::message::Message;
use crate::own_queues::SCHEDULES_QUEUE;
use crate::own_queues::kept_in;
use crate::server::Host;
use crate::server::OversizeMessage;
use crate::server::Placement;
use crate::server::WindowStall;
use crate::service_bus;
use crate::task;

/// The daemon, as the server knows it.
pub(crate) struct DaemonHost {
    pub(crate) daemon_state: Arc<DaemonState>,
}

/// Whether a queue is the daemon's own: schedules live in one, the metadata of storage queues in another.
pub(crate) fn is_own(queue: &QueueName) -> bool {
    kept_in(queue.as_str()).is_some()
}

impl Placement for DaemonHost {
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse> {
        if is_own(queue) {
            return Err(Misuse::new("queue", "is the daemon's own"));
        }
        self.daemon_state.intake.place(queue, message)
    }

    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration> {
        self.daemon_state.intake.rule(queue)?.retry_delay(delivery_count)
    }

    fn defer_delay(&self, queue: &QueueName) -> Option<Duration> {
        self.daemon_state.intake.rule(queue)?.defer_delay()
    }
}

impl Host for DaemonHost {
    fn ready(&self) -> Result<(), String> {
        match self.daemon_state.draining.is_cancelled() {
            true => Err("the daemon is draining".to_owned()),
            false => self.daemon_state.membership.ready(),
        }
    }

    fn status(&self) -> StatusView {
        let daemon_state = &self.daemon_state;
        StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: self.state().to_owned(),
            started_at: WireTime(daemon_state.started_at),
            file: Some(daemon_state.data_dir.store().display().to_string()),
            file_bytes: Some(daemon_state.data_dir.store_bytes()),
            definitions: daemon_state.definitions.load().len(),
            handlers_running: daemon_state.gauges.running(),
            blocked: self.blocked_counts(),
            reload_problem: self.reload_problem(),
            environment: daemon_state.options.environment.clone(),
            trace_url: daemon_state.options.trace_url.clone(),
            cluster: daemon_state.membership.cluster(),
            clock_step: ClockStepView::of(daemon_state.intake.client().clock_steps()),
            storage_free_bytes: daemon_state.intake.client().storage_room().map(|room| room.free_bytes),
            fault: daemon_state.intake.client().fault().map(|fault| Unavailable::Stopped(fault).to_string()),
        }
    }

    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>> {
        self.page().boxed()
    }

    fn definitions(&self) -> Vec<DefinitionView> {
        self.daemon_state.definitions.load().iter().map(|definition| self.show(definition)).collect()
    }

    fn reload_problem(&self) -> Option<String> {
        self.daemon_state.reload_problem.load().as_ref().as_ref().map(|problem| problem.text.clone())
    }

    fn definition_of(&self, queue: &QueueName) -> Option<DefinitionView> {
        if queue.as_str() == SCHEDULES_QUEUE {
            return Some(self.show_schedules());
        }
        self.daemon_state.definitions.load().get(queue).map(|definition| self.show(definition))
    }

    fn is_own(&self, queue: &QueueName) -> bool {
        is_own(queue)
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), Problem>> {
        let reloading = async {
            let problem = |error: DaemonError| {
                let code = match error {
                    DaemonError::Credentials(_) => "credentials_invalid",
                    _ => "definition_invalid",
                };
                Problem::new(code, explain(&error))
            };
            reload_whole(&self.daemon_state).await.map_err(problem)
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
            let definitions = self.daemon_state.definitions.load();
            if definitions.get(queue).is_none_or(|definition| definition.handlers.is_empty()) {
                let detail = format!("queue {queue} has no handlers of its own");
                return Err(Problem::new("no_handlers", detail));
            }
            client.queue(queue.as_str())?.set_paused(paused).await?;
            self.daemon_state.handler_supervisor.note_pause(queue, paused);
            let (daemon_state, queue) = (self.daemon_state.clone(), queue.clone());
            task::spawn(async move {
                daemon_state.handler_supervisor.heed(&queue).await;
            });
            Ok(())
        };
        pausing.boxed()
    }

    fn too_large(&self, queue: &QueueName) -> Vec<OversizeMessage> {
        let known = self.daemon_state.amqp_meters.too_large.of(queue, self.daemon_state.clock.now());
        let show =
            |(sequence_number, message): (SequenceNumber, service_bus::OversizeEntry)| OversizeMessage {
                sequence_number,
                bytes: message.bytes,
                bytes_max: message.bytes_max,
                since: message.since,
            };
        known.into_iter().map(show).collect()
    }

    fn full_window(&self, queue: &QueueName) -> Option<WindowStall> {
        let known = self.daemon_state.amqp_meters.full_windows.of(queue);
        known.map(|service_bus::WindowWait { messages, since }| WindowStall { messages, since })
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleView>, Problem>> {
        let looking = async {
            let mut shown = Vec::new();
            for (ticking, next) in self.daemon_state.ticker.next_ticks(limits::TICKS_SHOWN) {
                let last = self.daemon_state.ticker.last_tick(&ticking).await;
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
        let commits = self.daemon_state.membership.commits(self.daemon_state.intake.client());
        let mean = commits.lasted.as_secs_f64() * 1_000.0 / commits.commits as f64;
        let commit_ms_mean = (commits.commits > 0).then_some(mean);
        RatesView { queues: self.daemon_state.rates.show(), commit_ms_mean }
    }

    #[cfg(feature = "cluster")]
    fn cluster(&self) -> BoxFuture<'_, Result<ClusterView, Problem>> {
        cluster_host::look(&self.daemon_state.membership, &*self.daemon_state.clock).boxed()
    }

    #[cfg(feature = "cluster")]
    fn drain_node<'a>(&'a self, node: &'a str, drains: bool) -> BoxFuture<'a, Result<(), Problem>> {
        cluster_host::drain(&self.daemon_state.membership, node, drains).boxed()
    }

    #[cfg(feature = "cluster")]
    fn move_partition<'a>(
        &'a self,
        partition: u16,
        node: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), Problem>> {
        cluster_host::move_partition(&self.daemon_state.membership, partition, node).boxed()
    }

    fn scheduled_now(&self, queue: &QueueName, schedule: &str) -> Result<Message, Box<Problem>> {
        let missing = || {
            let detail = format!("queue {queue} has no schedule {schedule:?}");
            Box::new(Problem::new("schedule_not_found", detail))
        };
        let ticking = self.daemon_state.ticker.find(queue, schedule).ok_or_else(missing)?;
        let message = ticking.schedule.message(self.daemon_state.intake.client().wall_now());
        self.daemon_state.intake.place(queue, message).map_err(|misuse| Box::new(Problem::from(misuse)))
    }

    fn backup_target(&self, name: &str) -> Result<PathBuf, Misuse> {
        self.daemon_state.data_dir.backup(name)
    }
}

fn show_held_back(until: Timestamp, held_back: DispatchPause) -> HeldBackView {
    let until = WireTime(until);
    match held_back {
        DispatchPause::ByRate { .. } => {
            HeldBackView { cause: HeldBackCause::RateLimited, until, reason: None }
        }
        DispatchPause::ByShortage { why, .. } => {
            HeldBackView { cause: HeldBackCause::CannotStart, until, reason: Some(why) }
        }
    }
}

impl DaemonHost {
    /// How many workflows do not go on, as the blocked monitor and the look for gaps know them.
    fn troubles(&self) -> BlockedCounts {
        let mut troubles =
            self.daemon_state.blocked_monitor.count(self.daemon_state.intake.client().elapsed());
        for (queue, workflows) in self.daemon_state.gaps.counts() {
            let known = troubles.by_cause.entry((queue, BlockedCause::Gap)).or_default();
            *known = workflows.max(*known);
        }
        troubles
    }

    /// The same, as the API shows it.
    fn blocked_counts(&self) -> Vec<BlockedCountView> {
        let show = |((queue, cause), workflows): ((QueueName, BlockedCause), u64)| BlockedCountView {
            queue: queue.to_string(),
            cause,
            workflows,
        };
        self.troubles().by_cause.into_iter().map(show).collect()
    }

    /// Whether the disk is so full that nothing new is accepted.
    fn is_full(&self) -> bool {
        self.daemon_state.intake.client().storage_room().is_some_and(|room| room.is_full)
    }

    /// How the daemon is, in a word.
    fn state(&self) -> &'static str {
        match self.daemon_state.intake.client().fault() {
            Some(_) => "failed",
            None if self.daemon_state.draining.is_cancelled() => "draining",
            None if self.is_full() => "full",
            None => "ready",
        }
    }

    fn show(&self, definition: &Definition) -> DefinitionView {
        let handler = |handler: &HandlerDefinition| match &handler.subject {
            Some(subject) => format!("{} for {subject}", handler.spec.kind()),
            None => handler.spec.kind().to_owned(),
        };
        let held_back = self.daemon_state.handler_supervisor.held_back(&definition.name);
        DefinitionView {
            held_back: held_back.map(|(until, why)| show_held_back(until, why)),
            queue: definition.name.to_string(),
            file: definition.file.display().to_string(),
            handlers: definition.handlers.iter().map(handler).collect(),
            paused: self.daemon_state.handler_supervisor.is_paused(&definition.name),
            schedules: definition.schedules.len(),
            retry_delays: definition.rule.retry_delays().iter().copied().map(WireDuration).collect(),
            redact: definition.redact.iter().map(show_redaction).collect(),
            source: self.daemon_state.outboxes.show(&definition.name),
            loaded_at: WireTime(**self.daemon_state.loaded_at.load()),
            problem: (**self.daemon_state.reload_problem.load())
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
            source: None,
            loaded_at: WireTime(**self.daemon_state.loaded_at.load()),
            problem: None,
        }
    }

    async fn page(&self) -> Result<String, Problem> {
        let (daemon_state, client) = (&self.daemon_state, self.daemon_state.intake.client());
        let queues = match daemon_state.membership.queues().await {
            Some(queues) => queues,
            None => client.all_queues().await.map_err(Problem::from)?,
        };
        let looked = MetricsSnapshot {
            queues,
            commits: daemon_state.membership.commits(client),
            clock_steps: client.clock_steps(),
            sources: daemon_state.outboxes.counts(),
            troubles: self.troubles(),
            store_bytes: daemon_state.data_dir.store_bytes(),
            definitions: daemon_state.definitions.load().len(),
            is_reload_refused: daemon_state.reload_problem.load().is_some(),
            loaded_at: **daemon_state.loaded_at.load(),
            room: client.storage_room(),
            #[cfg(feature = "cluster")]
            cluster: daemon_state.membership.handle.as_ref().map(ClusterHandle::meters),
            amqp: (!daemon_state.options.amqp.is_empty()).then(|| daemon_state.amqp_meters.read()),
            storage_queue: daemon_state
                .options
                .storage_queue
                .map(|_| daemon_state.storage_queue_meters.read()),
        };
        metrics::page(&daemon_state.gauges, &looked).map_err(|error| Problem::new("fault", error.to_string()))
    }
}

fn show_redaction(source: &FieldSource) -> RedactionView {
    match source {
        FieldSource::Pointer(pointer) => {
            RedactionView { pointer: Some(pointer.to_string()), ..RedactionView::default() }
        }
        FieldSource::Header(header) => {
            RedactionView { header: Some(header.as_str().to_owned()), ..RedactionView::default() }
        }
        FieldSource::Property(name) => {
            RedactionView { property: Some(name.clone()), ..RedactionView::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_queues::SOURCES_QUEUE;
    use crate::storage_queue;

    #[test]
    fn every_queue_in_which_a_part_of_the_daemon_keeps_something_is_its_own() {
        let kept = [SCHEDULES_QUEUE, SOURCES_QUEUE, service_bus::RECORDS_QUEUE, storage_queue::RECORDS_QUEUE];
        for name in kept {
            assert!(is_own(&QueueName::new(name).unwrap()), "{name}");
        }
    }
}
