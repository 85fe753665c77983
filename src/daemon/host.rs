//! What the server asks of the daemon.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::daemon::daemon::House;
use crate::daemon::lookout::all_queues;
use crate::daemon::metrics;
use crate::daemon::metrics::Looked;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::message::Message;
use crate::server::Host;
use crate::server::Place;
use crate::wire::Problem;

/// The daemon, as the server knows it.
pub(crate) struct Desk {
    pub(crate) house: Arc<House>,
}

impl Place for Desk {
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse> {
        self.house.intake.place(queue, message)
    }

    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration> {
        self.house.intake.rule(queue)?.retry_delay(delivery_count)
    }
}

impl Host for Desk {
    fn ready(&self) -> Result<(), String> {
        match self.house.draining.is_cancelled() {
            true => Err("the daemon is draining".to_owned()),
            false => Ok(()),
        }
    }

    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>> {
        self.page().boxed()
    }
}

impl Desk {
    async fn page(&self) -> Result<String, Problem> {
        let (house, client) = (&self.house, self.house.intake.client());
        let looked = Looked {
            queues: all_queues(client).await.map_err(Problem::from)?,
            commits: client.commit_stats(),
            troubles: house.lookout.count(house.clock.now()),
            store_bytes: house.home.store_bytes(),
        };
        metrics::page(&house.gauges, &looked).map_err(|error| Problem::new("fault", error.to_string()))
    }
}
