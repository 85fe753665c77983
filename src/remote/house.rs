//! Calls about the daemon itself: how it is, what it has loaded, what was done, what happens.

use std::path::Path;

use serde_json::json;

use crate::error::Misuse;
use crate::remote::error::RemoteError;
use crate::remote::events::Events;
use crate::remote::lines::Lines;
use crate::remote::remote::Remote;
use crate::remote::route::Route;
use crate::wire::views::AuditPage;
use crate::wire::views::BackupView;
use crate::wire::views::DefinitionPage;
use crate::wire::views::SchedulePage;
use crate::wire::views::StatusView;

impl Remote {
    /// How the daemon is.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn status(&self) -> Result<StatusView, RemoteError> {
        self.get(Route::new("/v1/status")).answer().await
    }

    /// Whether the daemon is ready; a problem says why not.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn ready(&self) -> Result<(), RemoteError> {
        self.get(Route::new("/readyz")).answer_bytes().await?;
        Ok(())
    }

    /// The definitions as they are loaded.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn definitions(&self) -> Result<DefinitionPage, RemoteError> {
        self.get(Route::new("/v1/definitions")).answer().await
    }

    /// Reads the definitions again, and takes all of them or none.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `definition_invalid` when one of them is wrong.
    pub async fn reload(&self) -> Result<DefinitionPage, RemoteError> {
        self.post(Route::new("/v1/definitions/reload")).answer_or_default().await
    }

    /// Schedules and their next ticks.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn schedules(&self) -> Result<SchedulePage, RemoteError> {
        self.get(Route::new("/v1/schedules")).answer().await
    }

    /// A page of what operators did, oldest first.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn audit(&self, after: Option<u64>, limit: usize) -> Result<AuditPage, RemoteError> {
        let route = Route::new("/v1/audit").query("after", after).query("limit", Some(limit));
        self.get(route).answer().await
    }

    /// Writes a consistent copy of the daemon's file to a path on the daemon's machine.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn backup(&self, path: &Path) -> Result<BackupView, RemoteError> {
        let path = path.to_str().ok_or_else(|| Misuse::new("path", "is not UTF-8"))?;
        self.post(Route::new("/v1/backup")).json(&json!({ "path": path }))?.patiently().answer().await
    }

    /// What happens from now on, in one queue or in all.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn events(&self, queue: Option<&str>) -> Result<Events, RemoteError> {
        let route = Route::new("/v1/events").query("queue", queue);
        let asked = format!("GET {}", route.as_str());
        let call = self.get(route).header("accept", Some("text/event-stream"))?;
        Ok(Events::new(Lines::new(asked, call.open().await?)))
    }
}
