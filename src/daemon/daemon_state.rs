//! What the daemon's parts share.

use std::sync::Arc;
use std::sync::OnceLock;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::daemon::blocked_monitor::BlockedMonitor;
use crate::daemon::data_dir::DataDir;
use crate::daemon::gaps::Gaps;
use crate::daemon::gauges::Gauges;
use crate::daemon::handler_supervisor::HandlerSupervisor;
use crate::daemon::membership::Membership;
use crate::daemon::notices::Notices;
use crate::daemon::options::DaemonOptions;
use crate::daemon::outboxes::Outboxes;
use crate::daemon::rates::HourlyRates;
use crate::daemon::reload_problem::ReloadProblem;
use crate::daemon::ticker::Ticker;
use crate::definition::Definitions;
use crate::intake::Intake;
use crate::server::CredentialReloader;
use crate::service_bus::Meters;
use crate::storage_queue;

/// What the daemon's parts share.
pub(crate) struct DaemonState {
    pub(crate) options: DaemonOptions,
    pub(crate) data_dir: DataDir,
    /// What is known of the cluster, if there is one.
    pub(crate) membership: Membership,
    pub(crate) intake: Intake,
    pub(crate) handler_supervisor: HandlerSupervisor,
    pub(crate) ticker: Ticker,
    pub(crate) outboxes: Outboxes,
    pub(crate) blocked_monitor: BlockedMonitor,
    pub(crate) gaps: Gaps,
    pub(crate) rates: HourlyRates,
    pub(crate) gauges: Gauges,
    /// What the endpoint of Service Bus counts.
    pub(crate) amqp_meters: Meters,
    /// What the endpoint for storage queues counts.
    pub(crate) storage_queue_meters: storage_queue::StorageMeters,
    pub(crate) clock: Arc<dyn Clock>,
    /// Changes who may come in; there once the server is.
    pub(crate) credential_reloader: OnceLock<CredentialReloader>,
    /// The definitions that are in force.
    pub(crate) definitions: ArcSwap<Definitions>,
    /// Why the last reload changed nothing.
    pub(crate) reload_problem: ArcSwap<Option<ReloadProblem>>,
    pub(crate) started_at: Timestamp,
    /// When the definitions in force were loaded.
    pub(crate) loaded_at: ArcSwap<Timestamp>,
    pub(crate) draining: CancellationToken,
    /// Whose turn it is to be notified.
    pub(crate) notices: Notices,
    /// One reload at a time.
    pub(crate) reloading: tokio::sync::Mutex<()>,
}

impl DaemonState {
    /// Of a daemon that starts now: no definitions are in force yet.
    pub(crate) fn new(
        options: DaemonOptions,
        data_dir: DataDir,
        membership: Membership,
        intake: Intake,
        ticker: Ticker,
        clock: Arc<dyn Clock>,
    ) -> DaemonState {
        let gauges = Gauges::new();
        let handler_supervisor = HandlerSupervisor::new(
            intake.clone(),
            data_dir.clone(),
            gauges.clone(),
            clock.clone(),
            options.drain,
        );
        DaemonState {
            options,
            data_dir,
            outboxes: Outboxes::new(intake.clone(), membership.clone()),
            membership,
            intake,
            handler_supervisor,
            ticker,
            blocked_monitor: BlockedMonitor::default(),
            gaps: Gaps::default(),
            rates: HourlyRates::default(),
            gauges,
            amqp_meters: Meters::default(),
            storage_queue_meters: storage_queue::StorageMeters::default(),
            started_at: clock.now(),
            clock,
            credential_reloader: OnceLock::new(),
            definitions: ArcSwap::default(),
            reload_problem: ArcSwap::default(),
            loaded_at: ArcSwap::default(),
            notices: Notices::default(),
            draining: CancellationToken::new(),
            reloading: tokio::sync::Mutex::default(),
        }
    }
}
