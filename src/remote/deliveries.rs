//! Calls that take messages and settle them.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::api::CompleteManyRequest;
use crate::api::CompleteManyResponse;
use crate::api::CompleteResponse;
use crate::api::ReceiveDeferredRequest;
use crate::api::ReceiveRequest;
use crate::api::ReceiveResponse;
use crate::api::RenewResponse;
use crate::remote::answer::LOST;
use crate::remote::cause::open_still;
use crate::remote::error::RemoteError;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

impl Remote {
    /// Takes messages under locks, waiting for the first, a minute at most.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn receive(
        &self,
        queue: &str,
        request: &ReceiveRequest,
    ) -> Result<ReceiveResponse, RemoteError> {
        let wait = request.wait.map_or(Duration::ZERO, |wait| wait.0);
        let call = self.post(RequestPath::queue(queue).word("receive")).json(request)?;
        call.waiting(wait).answer().await
    }

    /// Takes deferred messages by number.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn receive_deferred(
        &self,
        queue: &str,
        sequence_numbers: &[u64],
    ) -> Result<ReceiveResponse, RemoteError> {
        let sequence_numbers = sequence_numbers.to_vec();
        let request =
            ReceiveDeferredRequest { sequence_numbers, dead_letters: false, state: false, raw: false };
        self.post(RequestPath::queue(queue).word("receive_deferred")).json(&request)?.answer().await
    }

    /// Settles a delivery, or renews its lock: complete, abandon, defer, dead_letter, release or renew, with what goes
    /// with the verb. Renew answers until when it is locked.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `lock_lost` when somebody else may have it by now, and `delivery_settled` when it
    /// was settled in another way in the last minute. The same again is answered as it was, and so it is asked again for up to ten
    /// seconds when nobody answers.
    pub async fn settle(
        &self,
        queue: &str,
        delivery: &str,
        verb: &str,
        particulars: &impl Serialize,
    ) -> Result<Value, RemoteError> {
        let route = RequestPath::queue(queue).word("deliveries").data(delivery).word(verb);
        let answer = self.post(route).json(particulars)?.repeatable().whole().await?;
        match verb {
            "complete" => answer.json_of_if_any::<CompleteResponse>(),
            "renew" => answer.json_of::<RenewResponse>(),
            _ => answer.nothing().map(|()| Value::Null),
        }
    }

    /// Completes many deliveries in one transaction; each has its own answer. It is asked again as [`Remote::settle`] is.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn complete_all(
        &self,
        queue: &str,
        deliveries: &[String],
    ) -> Result<CompleteManyResponse, RemoteError> {
        let request = CompleteManyRequest { deliveries: deliveries.to_vec() };
        let call = self.post(RequestPath::queue(queue).word("complete")).json(&request)?;
        let answer = call.repeatable().whole().await?;
        let completed: CompleteManyResponse = answer.value()?;
        let mut refused = completed.results.iter().filter_map(|result| result.error.as_ref());
        match refused.find(|problem| problem.code == LOST) {
            Some(problem) if answer.was_sent_before => Err(open_still(self.url(), &problem.detail)),
            _ => Ok(completed),
        }
    }

    /// Settles a run: its first messages are completed, and what else is said with `particulars` is done; the others
    /// are given back as if they had not been handed out.
    ///
    /// # Errors
    /// As [`Remote::settle`].
    pub async fn settle_run(
        &self,
        queue: &str,
        run: &str,
        particulars: &impl Serialize,
    ) -> Result<Value, RemoteError> {
        let route = RequestPath::queue(queue).word("runs").data(run).word("settle");
        let answer = self.post(route).json(particulars)?.repeatable().whole().await?;
        answer.json_of_if_any::<CompleteResponse>()
    }

    /// Renews the lock of a run.
    ///
    /// # Errors
    /// As [`Remote::settle`].
    pub async fn renew_run(&self, queue: &str, run: &str) -> Result<Value, RemoteError> {
        let route = RequestPath::queue(queue).word("runs").data(run).word("renew");
        self.post(route).repeatable().whole().await?.json_of::<RenewResponse>()
    }
}
