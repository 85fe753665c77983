//! Settling deliveries and runs by their IDs.

use std::time::Duration;

use axum::extract::State;

use crate::api::AbandonRequest;
use crate::api::CompleteManyRequest;
use crate::api::CompleteManyResponse;
use crate::api::CompleteRequest;
use crate::api::CompleteResponse;
use crate::api::CompletedDelivery;
use crate::api::DeadLetterRequest;
use crate::api::DeferRequest;
use crate::api::NextOutcome;
use crate::api::Problem;
use crate::api::ReceiptView;
use crate::api::RenewResponse;
use crate::api::SettleRunRequest;
use crate::api::read_properties;
use crate::engine::Abandon;
use crate::engine::Completion;
use crate::engine::DeliveryId;
use crate::engine::Outcome;
use crate::engine::Receipt;
use crate::id::QueueName;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::answer::no_content;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::required;
use crate::server::principal::Principal;
use crate::server::shared::ServerState;
use crate::server::shared::SharedServer;
use crate::token::LockToken;

impl CompleteRequest {
    /// The completion. Who settles may not send everywhere: each queue is asked for.
    fn read(self, app_state: &ServerState, principal: &Principal) -> Result<Completion, HttpRefusal> {
        for envelope in &self.send {
            if let Some(queue) = &envelope.queue {
                principal.check_send(&QueueName::new(queue)?)?;
            }
        }
        let place = |queue: &str, message| app_state.place.place(&QueueName::new(queue)?, message);
        Ok(self.completion(place)?)
    }
}

impl AbandonRequest {
    fn read(
        self,
        app_state: &ServerState,
        queue: &QueueName,
        delivery_count: Option<u32>,
    ) -> Result<Outcome, HttpRefusal> {
        let own = || own_delay(app_state, queue, delivery_count);
        let abandon = match (self.retry_after, self.retry_at) {
            (Some(_), Some(_)) => {
                return Err(HttpRefusal::misuse("retry_at", "is given together with retry_after"));
            }
            (Some(delay), None) if delay.0.is_zero() => Abandon::now(),
            (Some(delay), None) => Abandon::after(delay.0),
            (None, Some(instant)) => Abandon::at(instant.0),
            (None, None) => own().map_or_else(Abandon::with_backoff, Abandon::after),
        };
        let reason = self.reason.unwrap_or_else(|| "it was abandoned".to_owned());
        let properties = read_properties(self.properties)?;
        let with_properties = |abandon: Abandon, (name, value): (String, _)| abandon.property(name, value);
        Ok(Outcome::Abandon(properties.into_iter().fold(abandon.reason(reason), with_properties)))
    }
}

/// After which delay a message of a queue is tried again; of several, that is known only with its delivery count.
fn own_delay(app_state: &ServerState, queue: &QueueName, delivery_count: Option<u32>) -> Option<Duration> {
    let after = |delivery_count: u32| app_state.place.retry_delay(queue, delivery_count);
    match delivery_count {
        Some(delivery_count) => after(delivery_count),
        None => after(1).filter(|first| after(u32::MAX) == Some(*first)),
    }
}

impl DeferRequest {
    fn read(self, app_state: &ServerState, queue: &QueueName) -> Outcome {
        Outcome::defer(self.until.map(|until| until.0), app_state.place.defer_delay(queue))
    }
}

impl DeadLetterRequest {
    fn read(self) -> Result<Outcome, HttpRefusal> {
        let reason = required("reason", self.reason)?;
        Ok(Outcome::DeadLetter { reason, description: self.description.unwrap_or_default() })
    }
}

fn delivery(extract: &PathParams) -> Result<DeliveryId, HttpRefusal> {
    Ok(extract.text("delivery")?.parse()?)
}

fn describe(receipts: Vec<Receipt>) -> HttpResult {
    match receipts.is_empty() {
        true => no_content(),
        false => json(&CompleteResponse { receipts: receipts.into_iter().map(ReceiptView::show).collect() }),
    }
}

pub(crate) async fn complete(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<CompleteRequest>,
) -> HttpResult {
    let (queue, id) = (extract.queue()?, delivery(&extract)?);
    describe(queue.settler().complete(id, request.read(&shared, &principal)?).await?)
}

pub(crate) async fn abandon(
    State(shared): State<SharedServer>,
    extract: PathParams,
    JsonBody(request): JsonBody<AbandonRequest>,
) -> HttpResult {
    let (queue, id) = (extract.queue()?, delivery(&extract)?);
    let ending = request.read(&shared, queue.name(), Some(id.delivery_count))?;
    queue.settler().end(id, ending).await?;
    no_content()
}

pub(crate) async fn defer(
    State(shared): State<SharedServer>,
    extract: PathParams,
    JsonBody(request): JsonBody<DeferRequest>,
) -> HttpResult {
    let (queue, id) = (extract.queue()?, delivery(&extract)?);
    queue.settler().end(id, request.read(&shared, queue.name())).await?;
    no_content()
}

pub(crate) async fn dead_letter(
    extract: PathParams,
    JsonBody(request): JsonBody<DeadLetterRequest>,
) -> HttpResult {
    extract.queue()?.settler().end(delivery(&extract)?, request.read()?).await?;
    no_content()
}

pub(crate) async fn release(extract: PathParams) -> HttpResult {
    extract.queue()?.settler().end(delivery(&extract)?, Outcome::Release).await?;
    no_content()
}

pub(crate) async fn renew(extract: PathParams) -> HttpResult {
    let (until, lasts) = extract.queue()?.settler().renew_for(delivery(&extract)?.lock_token()).await?;
    json(&RenewResponse::new(until, lasts))
}

pub(crate) async fn complete_many(
    extract: PathParams,
    JsonBody(request): JsonBody<CompleteManyRequest>,
) -> HttpResult {
    let queue = extract.queue()?;
    let read: Vec<_> = request.deliveries.iter().map(|text| text.parse::<DeliveryId>()).collect();
    let ids: Vec<DeliveryId> = read.iter().filter_map(|id| id.as_ref().ok()).copied().collect();
    let mut completed = queue.settler().complete_all(&ids).await?.into_iter();
    let mut answer = CompleteManyResponse { completed: 0, results: Vec::with_capacity(read.len()) };
    for (delivery, id) in request.deliveries.into_iter().zip(read) {
        let error = match id {
            Err(misuse) => Some(Problem::from(misuse)),
            Ok(_) => match completed.next().expect("every delivery has its answer") {
                Ok(()) => None,
                Err(refusal) => Some(Problem::refused(&refusal)),
            },
        };
        answer.completed += u64::from(error.is_none());
        answer.results.push(CompletedDelivery { delivery, error });
    }
    json(&answer)
}

fn run(extract: &PathParams) -> Result<LockToken, HttpRefusal> {
    Ok(extract.text("run")?.parse()?)
}

pub(crate) async fn settle_run(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<SettleRunRequest>,
) -> HttpResult {
    let (queue, token) = (extract.queue()?, run(&extract)?);
    let SettleRunRequest { completed, state, state_base64, clear_state, send, next, next_delivery_count } =
        request;
    let completion = CompleteRequest { state, state_base64, clear_state, send }.read(&shared, &principal)?;
    let next = match next {
        None => None,
        Some(NextOutcome::Abandon(abandon)) => {
            Some(abandon.read(&shared, queue.name(), next_delivery_count)?)
        }
        Some(NextOutcome::Defer(defer)) => Some(defer.read(&shared, queue.name())),
        Some(NextOutcome::DeadLetter(dead_letter)) => Some(dead_letter.read()?),
    };
    describe(queue.settler().settle_run(token, completed, completion, next).await?)
}

pub(crate) async fn renew_run(extract: PathParams) -> HttpResult {
    let (until, lasts) = extract.queue()?.settler().renew_for(run(&extract)?).await?;
    json(&RenewResponse::new(until, lasts))
}
