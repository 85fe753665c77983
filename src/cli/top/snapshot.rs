//! What `top` shows: how the daemon is at one moment, as its API says.

use serde::Serialize;
use seriatim::api::plural::size;
use seriatim::api::views::BlockedCause;
use seriatim::api::views::BlockedView;
use seriatim::api::views::QueueEnvelope;
use seriatim::api::views::QueueRatesView;
use seriatim::api::views::RatesView;
use seriatim::api::views::StatusView;
use seriatim::remote::Remote;

use crate::cli::blocked;
use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::queues;
use crate::cli::word::counted;
use crate::cli::word::word;

/// The daemon at one moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DaemonSnapshot {
    pub(crate) status: StatusView,
    pub(crate) rates: RatesView,
    pub(crate) queues: Vec<QueueEnvelope>,
    /// The first workflows that do not go on.
    pub(crate) blocked: Vec<BlockedView>,
    /// Whether there are more of them.
    pub(crate) has_more: bool,
}

impl DaemonSnapshot {
    /// Asks the daemon.
    pub(crate) async fn take(remote: &Remote) -> Result<DaemonSnapshot, CliFailure> {
        let status = remote.status().await.map_err(CliFailure::to("ask the daemon how it is"))?;
        let rates = remote.rates().await.map_err(CliFailure::to("ask for the rates"))?;
        let queues = queues::all(remote).await?;
        let page = remote.blocked(None, None, None, limits::TOP_ROWS).await;
        let page = page.map_err(CliFailure::to("list what is blocked"))?;
        Ok(DaemonSnapshot { status, rates, queues, blocked: page.blocked, has_more: page.after.is_some() })
    }

    /// The last hour of a queue.
    pub(crate) fn rates_of(&self, queue: &str) -> Option<&QueueRatesView> {
        self.rates.queues.iter().find(|rates| rates.queue == queue)
    }

    /// What matters most, in a few words each.
    pub(crate) fn figures(&self) -> Vec<String> {
        let causes = [BlockedCause::Retry, BlockedCause::Held, BlockedCause::Gap];
        let of_cause = |cause: &BlockedCause| match self.status.blocked_for(None, Some(*cause)) {
            0 => None,
            some => Some(format!("{some} {}", word(cause))),
        };
        let causes: Vec<String> = causes.iter().filter_map(of_cause).collect();
        let blocked = match causes.is_empty() {
            true => "nothing blocked".to_owned(),
            false => format!("blocked: {}", causes.join(", ")),
        };
        let mut figures = vec![blocked];
        figures.extend(self.rates.commit_ms_mean.map(|commit| format!("commit {commit:.1} ms")));
        figures.extend(self.status.file_bytes.map(|bytes| format!("store {}", size(bytes))));
        figures.extend(self.status.storage_free_bytes.map(|bytes| format!("disk free {}", size(bytes))));
        figures.push(format!("{} at work", counted(self.status.handlers_running as u64, "handler")));
        figures
    }

    /// All of it as text.
    pub(crate) fn describe(&self, present: &LocalTime) -> String {
        let StatusView { version, state, .. } = &self.status;
        let mut parts = vec![format!("seriatim {version}, {state}\n{}", self.figures().join("; "))];
        if !self.queues.is_empty() {
            parts.push(queues::table(&self.queues).to_string());
        }
        if !self.blocked.is_empty() {
            parts.push(blocked::table(&self.blocked, present).to_string());
        }
        if self.has_more {
            parts.push("... and more: seriatim blocked".to_owned());
        }
        parts.join("\n\n")
    }
}
