//! A stream of JetStream is a log.

use std::cell::Cell;
use std::sync::Arc;

use async_nats::jetstream;
use tokio::runtime::Runtime;

use crate::cluster::entry_version;
use crate::cluster::entry_version::EntryVersion;
use crate::cluster::jet_stream::JetStreamLog;
use crate::cluster::options::ClusterOptions;
use crate::cluster::stop::ClusterStop;
use crate::cluster::tests::nats::NatsServers;
use crate::engine::log::Entry;
use crate::engine::log::SharedLog;
use crate::engine::tests::log::Epoch;
use crate::engine::tests::log::Log;
use crate::engine::tests::log::conformance;
use crate::engine::tests::log::conformance::Subject;

/// Servers that have not agreed on a leader yet, or have little of a processor, are asked again so often: a node would go on asking.
const OPENED_AGAIN_MAX: usize = 5;

struct OnServers<'a> {
    runtime: &'a Runtime,
    options: ClusterOptions,
    partition: u16,
}

impl OnServers<'_> {
    fn log(&self) -> SharedLog<JetStreamLog> {
        self.runtime.block_on(async {
            let client = async_nats::connect(&self.options.servers).await.unwrap();
            let context = jetstream::new(client.clone());
            let open = || {
                let (version, stop) = (EntryVersion::new(entry_version::NEWEST), ClusterStop::default());
                JetStreamLog::open(&client, &context, &self.options, self.partition, version, stop)
            };
            let mut opened = open().await;
            for _ in 0..OPENED_AGAIN_MAX {
                if opened.is_ok() {
                    break;
                }
                opened = open().await;
            }
            SharedLog::new(opened.unwrap())
        })
    }
}

impl Subject for OnServers<'_> {
    fn another(&self) -> Option<Arc<dyn Log>> {
        Some(Arc::new(self.log()))
    }
}

fn conforms(servers: usize) {
    let Some(servers) = NatsServers::start(servers) else { return };
    let (runtime, partition) = (Runtime::new().unwrap(), Cell::new(0));
    conformance::all(|| {
        let number = partition.replace(partition.get() + 1);
        let options = servers.options("conformance", "a");
        let subject = OnServers { runtime: &runtime, options, partition: number };
        (Arc::new(subject.log()) as Arc<dyn Log>, subject)
    });
}

#[test]
fn a_stream_on_one_server_is_a_log() {
    conforms(1);
}

#[test]
fn a_stream_on_three_servers_is_a_log() {
    conforms(3);
}

#[test]
fn a_stream_keeps_what_it_has_acknowledged_while_servers_are_killed() {
    let Some(mut servers) = NatsServers::start(3) else { return };
    let runtime = Runtime::new().unwrap();
    let options = servers.options("kills", "a");
    let subject = OnServers { runtime: &runtime, options, partition: 0 };
    let log = subject.log();
    let epoch = Epoch { number: 1, holder: 1 };
    let mut written = Vec::new();
    for position in 1..=60 {
        if position % 10 == 5 {
            servers.kill(usize::try_from(position / 10 % 3).unwrap());
        }
        if position % 10 == 0 {
            servers.start_again(usize::try_from((position - 5) / 10 % 3).unwrap());
        }
        let bytes = conformance::entry(position, epoch, 100);
        log.append(Entry { position, bytes: &bytes }).unwrap();
        written.push((position, bytes));
    }
    assert!(conformance::read_to(&subject.log(), 0, 60) == written, "something acknowledged is not there");
}
