//! What the server asks of the daemon.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::daemon::daemon::House;
use crate::daemon::error::DaemonError;
use crate::daemon::lookout::all_queues;
use crate::daemon::metrics;
use crate::daemon::metrics::Looked;
use crate::daemon::watch::explain;
use crate::daemon::watch::reload;
use crate::definition::Definition;
use crate::definition::HandlerDefinition;
use crate::definition::SCHEDULES_QUEUE;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::server::Host;
use crate::server::Place;
use crate::storage_queue::METADATA;
use crate::wire::Problem;
use crate::wire::WireDuration;
use crate::wire::WireTime;
use crate::wire::views::DefinitionView;
use crate::wire::views::ScheduleView;
use crate::wire::views::StatusView;

/// The daemon, as the server knows it.
pub(crate) struct Desk {
    pub(crate) house: Arc<House>,
}

/// Whether a queue is the daemon's own: schedules live in one, what is said of storage queues in another.
pub(crate) fn is_own(queue: &QueueName) -> bool {
    [SCHEDULES_QUEUE, METADATA].contains(&queue.as_str())
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
            state: if house.draining.is_cancelled() { "draining" } else { "ready" }.to_owned(),
            started_at: WireTime(house.started_at),
            file: Some(house.home.store().display().to_string()),
            file_bytes: Some(house.home.store_bytes()),
            definitions: house.definitions.load().len(),
            handlers_running: house.gauges.running(),
            reload_problem: house.reload_problem.load().as_ref().clone(),
        }
    }

    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>> {
        self.page().boxed()
    }

    fn definitions(&self) -> Vec<DefinitionView> {
        self.house.definitions.load().iter().map(|definition| self.show(definition)).collect()
    }

    fn definition_of(&self, queue: &QueueName) -> Option<DefinitionView> {
        if queue.as_str() == SCHEDULES_QUEUE {
            return Some(self.show_schedules());
        }
        self.house.definitions.load().get(queue).map(|definition| self.show(definition))
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), Problem>> {
        let reloading = async {
            let problem = |error: DaemonError| Problem::new("definition_invalid", explain(&error));
            reload(&self.house).await.map_err(problem)
        };
        reloading.boxed()
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), Box<Problem>> {
        let has_handlers = self
            .house
            .definitions
            .load()
            .get(queue)
            .is_some_and(|definition| !definition.handlers.is_empty());
        if !has_handlers {
            let detail = format!("queue {queue} has no handlers of its own");
            return Err(Box::new(Problem::new("no_handlers", detail)));
        }
        let unkept = |error: io::Error| Box::new(Problem::new("fault", format!("keep the pause: {error}")));
        self.house.crew.note_pause(queue, paused).map_err(unkept)?;
        let (house, queue) = (self.house.clone(), queue.clone());
        tokio::spawn(async move {
            if let Err(error) = house.crew.heed(&queue).await {
                tracing::error!(%error, %queue, "pause handlers, or let them go on");
            }
        });
        Ok(())
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

    fn backup_target(&self, name: &str) -> Result<PathBuf, Misuse> {
        // The rules of a queue's name are those of a plain file name.
        let name = QueueName::new(name).map_err(|error| Misuse::new("path", error.to_string()))?;
        self.house.home.backup(name.as_str())
    }
}

impl Desk {
    fn show(&self, definition: &Definition) -> DefinitionView {
        let handler = |handler: &HandlerDefinition| match &handler.subject {
            Some(subject) => format!("{} for {subject}", handler.spec.kind()),
            None => handler.spec.kind().to_owned(),
        };
        DefinitionView {
            queue: definition.name.to_string(),
            file: definition.file.display().to_string(),
            handlers: definition.handlers.iter().map(handler).collect(),
            paused: self.house.crew.is_paused(&definition.name),
            schedules: definition.schedules.len(),
            retry_delays: definition.rule.retry_delays().iter().copied().map(WireDuration).collect(),
            loaded_at: WireTime(**self.house.loaded_at.load()),
            problem: None,
        }
    }

    /// The queue of the schedules, which is the daemon's own to define.
    fn show_schedules(&self) -> DefinitionView {
        DefinitionView {
            queue: SCHEDULES_QUEUE.to_owned(),
            file: "the schedules of all definitions".to_owned(),
            handlers: vec!["sends the ticks that are due".to_owned()],
            paused: false,
            schedules: 0,
            retry_delays: Vec::new(),
            loaded_at: WireTime(**self.house.loaded_at.load()),
            problem: None,
        }
    }

    async fn page(&self) -> Result<String, Problem> {
        let (house, client) = (&self.house, self.house.intake.client());
        let looked = Looked {
            queues: all_queues(client).await.map_err(Problem::from)?,
            commits: client.commit_stats(),
            troubles: house.lookout.count(house.clock.now()),
            store_bytes: house.home.store_bytes(),
            amqp: house.options.amqp.map(|_| house.amqp_meters.read()),
            storage_queue: house.options.storage_queue.map(|_| house.storage_queue_meters.read()),
        };
        metrics::page(&house.gauges, &looked).map_err(|error| Problem::new("fault", error.to_string()))
    }
}
