//! Calls about the daemon itself: how it is, what it has loaded, what was done, what happens.

use bytes::Bytes;
use http::header;

use crate::api::AuditPage;
use crate::api::AuditQuery;
use crate::api::BackupRequest;
use crate::api::BackupView;
use crate::api::DefinitionPage;
use crate::api::EventsQuery;
use crate::api::SchedulePage;
use crate::api::WireTime;
use crate::api::daemon::HEALTHY;
use crate::api::daemon::READY;
use crate::api::views::DefinitionView;
use crate::api::views::RatesView;
use crate::api::views::ScheduleView;
use crate::api::views::StatusView;
use crate::clock::Timestamp;
use crate::remote::error::RemoteError;
use crate::remote::events::EventStream;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

impl Remote {
    /// How the daemon is.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn status(&self) -> Result<StatusView, RemoteError> {
        self.get(RequestPath::new("/v1/status")).answer().await
    }

    /// Whether the daemon is ready; a problem says why not.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn ready(&self) -> Result<(), RemoteError> {
        self.get(RequestPath::new("/readyz")).whole().await?.text(READY)
    }

    /// Whether the daemon answers and its store works; a problem says why not.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn health(&self) -> Result<(), RemoteError> {
        self.get(RequestPath::new("/healthz")).whole().await?.text(HEALTHY)
    }

    /// What the daemon's clock says, to the second; `None` when it does not say.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn clock(&self) -> Result<Option<WireTime>, RemoteError> {
        let answer = self.get(RequestPath::new("/healthz")).whole().await?;
        answer.text(HEALTHY)?;
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        let date = answer.header(header::DATE).and_then(|date| parser.parse_timestamp(date).ok());
        let millis = date.and_then(|date| u64::try_from(date.as_millisecond()).ok());
        Ok(millis.map(|millis| WireTime(Timestamp::from_millis(millis))))
    }

    /// The definitions as they are loaded.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn definitions(&self) -> Result<DefinitionPage, RemoteError> {
        self.get(RequestPath::new("/v1/definitions")).answer().await
    }

    /// Reads the definitions again, and takes all of them or none.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `definition_invalid` when one of them is wrong, and `credentials_invalid` when only keys or
    /// certificate are.
    pub async fn reload(&self) -> Result<Vec<DefinitionView>, RemoteError> {
        let call = self.post(RequestPath::new("/v1/definitions/reload")).without_timeout();
        let page: DefinitionPage = call.answer().await?;
        Ok(page.definitions)
    }

    /// Schedules and their next ticks.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn schedules(&self) -> Result<Vec<ScheduleView>, RemoteError> {
        let page: SchedulePage = self.get(RequestPath::new("/v1/schedules")).answer().await?;
        Ok(page.schedules)
    }

    /// How much came and was completed in each minute of the last hour.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn rates(&self) -> Result<RatesView, RemoteError> {
        self.get(RequestPath::new("/v1/rates")).answer().await
    }

    /// A page of what operators did, oldest first.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn audit(&self, after: Option<&str>, limit: usize) -> Result<AuditPage, RemoteError> {
        let query = AuditQuery { after: after.map(str::to_owned), limit: Some(limit), newest: false };
        self.get(RequestPath::new("/v1/audit").asking(&query)).answer().await
    }

    /// Writes a consistent copy of the daemon's file, under this name, where the daemon keeps backups.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn backup(&self, name: &str) -> Result<BackupView, RemoteError> {
        let request = BackupRequest { path: Some(name.to_owned()) };
        self.post(RequestPath::new("/v1/backup")).json(&request)?.without_timeout().answer().await
    }

    /// The daemon's metrics, in the text format of OpenMetrics.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn metrics(&self) -> Result<Bytes, RemoteError> {
        self.get(RequestPath::new("/metrics")).answer_bytes().await
    }

    /// What happens from now on, in one queue or in all.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn events(&self, queue: Option<&str>) -> Result<EventStream<'_>, RemoteError> {
        let query = EventsQuery { queue: queue.map(str::to_owned) };
        let call = self.get(RequestPath::new("/v1/events").asking(&query));
        let lines = call.header("accept", Some("text/event-stream"))?.open_stream().await?;
        Ok(EventStream::new(lines))
    }
}
