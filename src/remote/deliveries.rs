//! Calls that take messages and settle them.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::remote::error::RemoteError;
use crate::remote::page::DeliveryPage;
use crate::remote::remote::Remote;
use crate::remote::route::Route;
use crate::wire::DeliveryEnvelope;
use crate::wire::WireDuration;

impl Remote {
    /// Takes up to `max` messages under locks, waiting for the first; with `run`, consecutive ones of one workflow.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn receive(
        &self,
        queue: &str,
        max: usize,
        wait: Duration,
        run: bool,
    ) -> Result<Vec<DeliveryEnvelope>, RemoteError> {
        let asked = json!({ "max": max, "wait": WireDuration(wait), "run": run });
        let call = self.post(Route::queue(queue).word("receive")).json(&asked)?;
        let page: DeliveryPage = call.waiting(wait).answer().await?;
        Ok(page.deliveries)
    }

    /// Takes deferred messages by number.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn receive_deferred(
        &self,
        queue: &str,
        sequence_numbers: &[u64],
    ) -> Result<Vec<DeliveryEnvelope>, RemoteError> {
        let asked = json!({ "sequence_numbers": sequence_numbers });
        let call = self.post(Route::queue(queue).word("receive_deferred")).json(&asked)?;
        let page: DeliveryPage = call.answer().await?;
        Ok(page.deliveries)
    }

    /// Settles a delivery, or renews its lock: complete, abandon, defer, dead_letter, release or renew, with what goes
    /// with the verb. Renew answers until when it is locked.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `lock_lost` when somebody else may have it by now.
    pub async fn settle(
        &self,
        queue: &str,
        delivery: &str,
        verb: &str,
        particulars: &impl Serialize,
    ) -> Result<Value, RemoteError> {
        let route = Route::queue(queue).word("deliveries").data(delivery).word(verb);
        self.post(route).json(particulars)?.answer_or_default().await
    }
}
