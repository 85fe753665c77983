//! Hearing of keys in the cluster's bucket as they change.

use std::time::Duration;

use async_nats::jetstream::kv;
use futures_util::StreamExt;

use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::limits;

/// How long nothing has to be heard of keys that seldom change before it is listened anew.
const SILENCE: Duration = Duration::from_secs(60);

/// Which keys are heard of, and how.
pub(crate) struct BucketWatch {
    /// The keys, each as a subject that may end with `>`; the servers pass on nothing else.
    pub(crate) keys: Vec<String>,
    /// What they say, in words.
    pub(crate) what: &'static str,
    /// How long nothing has to be heard before it is listened anew, in case the watch hangs: all keys are told then.
    pub(crate) silence: Duration,
    /// How long it is waited after an error.
    pub(crate) pause: Duration,
}

impl BucketWatch {
    /// Of all keys that begin alike and seldom change.
    pub(crate) fn seldom(prefix: &str, what: &'static str) -> BucketWatch {
        let keys = vec![format!("{prefix}>")];
        BucketWatch { keys, what, silence: SILENCE, pause: limits::ROUTE_PAUSE * 10 }
    }

    /// Passes on every key that there is, and each change, until the node is stopped.
    pub(crate) async fn follow(&self, bucket: &kv::Store, stop: &ClusterStop, note: impl Fn(&kv::Entry)) {
        let mut failures = 0_u32;
        while !stop.is_said() {
            match self.follow_once(bucket, stop, &note).await {
                Ok(()) => failures = 0,
                Err(why) => {
                    failures = failures.saturating_add(1);
                    if failures.is_power_of_two() {
                        let what = self.what;
                        tracing::warn!(
                            what,
                            why,
                            failures,
                            "the cluster's bucket is not heard, and listened to again"
                        );
                    }
                    pause(self.pause).await;
                }
            }
        }
    }

    async fn follow_once(
        &self,
        bucket: &kv::Store,
        stop: &ClusterStop,
        note: &impl Fn(&kv::Entry),
    ) -> Result<(), String> {
        let watch = bucket.watch_many_with_history(&self.keys).await;
        let mut watch = watch.map_err(|error| error.to_string())?;
        while !stop.is_said() {
            match tokio::time::timeout(self.silence, watch.next()).await {
                Ok(Some(entry)) => note(&entry.map_err(|error| error.to_string())?),
                Ok(None) => return Err("the watch has ended".to_owned()),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}
