//! Settling deliveries and runs by their IDs.

use std::collections::BTreeMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::engine::Abandon;
use crate::engine::Completion;
use crate::engine::DeliveryId;
use crate::engine::Ending;
use crate::engine::Receipt;
use crate::id::QueueName;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::answer::no_content;
use crate::server::caller::Caller;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::named::required;
use crate::server::send::ReceiptAnswer;
use crate::server::shared::House;
use crate::server::shared::Shared;
use crate::token::LockToken;
use crate::wire::OutcomeEnvelope;
use crate::wire::Problem;
use crate::wire::SendEnvelope;
use crate::wire::WireDuration;
use crate::wire::WireProperty;
use crate::wire::WireTime;
use crate::wire::read_properties;

/// What is one transaction with a completion.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CompleteRequest {
    /// The workflow's new state, as JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    state: Option<Box<RawValue>>,
    /// The workflow's new state, as base64.
    state_base64: Option<String>,
    /// Clears the workflow's state.
    clear_state: bool,
    /// Messages to send, each with the queue it goes to.
    send: Vec<SendEnvelope>,
}

/// What became of the messages that were sent with a completion.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompleteAnswer {
    /// One for each, in order.
    receipts: Vec<ReceiptAnswer>,
}

/// How a failed message is tried again; without an instant or delay, after the delay its queue says.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AbandonRequest {
    /// The delay; `0s` for at once.
    retry_after: Option<WireDuration>,
    /// The instant.
    retry_at: Option<WireTime>,
    /// Why it failed, in one line.
    reason: Option<String>,
    /// Properties that are set on the message.
    properties: BTreeMap<String, WireProperty>,
}

/// Until when a message is set aside.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeferRequest {
    /// When it comes back by itself; without it, when the queue's definition says, or when it is asked for by its number.
    until: Option<WireTime>,
}

/// Why a message is moved aside for good.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeadLetterRequest {
    /// A short reason, by which dead letters are listed; required.
    reason: Option<String>,
    /// What else there is to say.
    description: Option<String>,
}

/// Until when a lock lasts now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RenewAnswer {
    /// Until when.
    locked_until: WireTime,
}

/// Which deliveries are completed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteManyRequest {
    /// Up to 1,024, of any workflows of the queue.
    deliveries: Vec<String>,
}

/// Which deliveries were completed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompleteManyAnswer {
    /// How many were.
    completed: usize,
    /// What became of each, in order.
    results: Vec<CompletedDelivery>,
}

/// What became of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompletedDelivery {
    /// The delivery.
    delivery: String,
    /// Why it was not completed; absent when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

/// How a run ends: its first messages are completed, the next may end in its own way, the others are given back as if
/// they had not been handed out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SettleRunRequest {
    /// How many are completed, from the first on.
    completed: usize,
    /// The workflow's new state, as JSON.
    #[schemars(with = "Option<serde_json::Value>")]
    state: Option<Box<RawValue>>,
    /// The workflow's new state, as base64.
    state_base64: Option<String>,
    /// Clears the workflow's state.
    clear_state: bool,
    /// Messages to send, each with the queue it goes to.
    send: Vec<SendEnvelope>,
    /// How the message behind them ends; without it, it is given back too.
    next: Option<NextEnding>,
}

/// How a message ends that is not completed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub(crate) enum NextEnding {
    /// It failed and is tried again.
    Abandon(AbandonRequest),
    /// It is set aside.
    Defer(DeferRequest),
    /// It is moved aside for good.
    DeadLetter(DeadLetterRequest),
}

impl CompleteRequest {
    /// The completion. Who settles may not send everywhere: each queue is asked for.
    fn read(self, house: &House, caller: &Caller) -> Result<Completion, Refused> {
        for envelope in &self.send {
            if let Some(queue) = &envelope.queue {
                caller.check_send(&QueueName::new(queue)?)?;
            }
        }
        let CompleteRequest { state, state_base64, clear_state, send } = self;
        let outcome = OutcomeEnvelope { state, state_base64, clear_state, send, ..Default::default() };
        let place = |queue: &str, message| house.place.place(&QueueName::new(queue)?, message);
        Ok(outcome.completion(place)?)
    }
}

impl AbandonRequest {
    fn read(self, house: &House, queue: &QueueName, delivery_count: Option<u32>) -> Result<Ending, Refused> {
        let own = || delivery_count.and_then(|count| house.place.retry_delay(queue, count));
        let abandon = match (self.retry_after, self.retry_at) {
            (Some(_), Some(_)) => {
                return Err(Refused::misuse("retry_at", "is given together with retry_after"));
            }
            (Some(delay), None) if delay.0.is_zero() => Abandon::now(),
            (Some(delay), None) => Abandon::after(delay.0),
            (None, Some(instant)) => Abandon::at(instant.0),
            (None, None) => own().map_or_else(Abandon::with_backoff, Abandon::after),
        };
        let reason = self.reason.unwrap_or_else(|| "it was abandoned".to_owned());
        let properties = read_properties(self.properties)?;
        let with_properties = |abandon: Abandon, (name, value): (String, _)| abandon.property(name, value);
        Ok(Ending::Abandon(properties.into_iter().fold(abandon.reason(reason), with_properties)))
    }
}

impl DeferRequest {
    fn read(self, house: &House, queue: &QueueName) -> Ending {
        Ending::defer(self.until.map(|until| until.0), house.place.defer_delay(queue))
    }
}

impl DeadLetterRequest {
    fn read(self) -> Result<Ending, Refused> {
        let reason = required("reason", self.reason)?;
        Ok(Ending::DeadLetter { reason, description: self.description.unwrap_or_default() })
    }
}

fn delivery(named: &Named) -> Result<DeliveryId, Refused> {
    Ok(named.text("delivery")?.parse()?)
}

fn told(receipts: Vec<Receipt>) -> Answer {
    match receipts.is_empty() {
        true => no_content(),
        false => json(&CompleteAnswer { receipts: receipts.into_iter().map(ReceiptAnswer::show).collect() }),
    }
}

pub(crate) async fn complete(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(request): Told<CompleteRequest>,
) -> Answer {
    let (queue, id) = (named.queue()?, delivery(&named)?);
    told(queue.kept().complete(id, request.read(&shared, &caller)?).await?)
}

pub(crate) async fn abandon(
    State(shared): State<Shared>,
    named: Named,
    Told(request): Told<AbandonRequest>,
) -> Answer {
    let (queue, id) = (named.queue()?, delivery(&named)?);
    let ending = request.read(&shared, queue.name(), Some(id.delivery_count))?;
    queue.kept().end(id, ending).await?;
    no_content()
}

pub(crate) async fn defer(
    State(shared): State<Shared>,
    named: Named,
    Told(request): Told<DeferRequest>,
) -> Answer {
    let (queue, id) = (named.queue()?, delivery(&named)?);
    queue.kept().end(id, request.read(&shared, queue.name())).await?;
    no_content()
}

pub(crate) async fn dead_letter(named: Named, Told(request): Told<DeadLetterRequest>) -> Answer {
    named.queue()?.kept().end(delivery(&named)?, request.read()?).await?;
    no_content()
}

pub(crate) async fn release(named: Named) -> Answer {
    named.queue()?.kept().end(delivery(&named)?, Ending::Release).await?;
    no_content()
}

pub(crate) async fn renew(named: Named) -> Answer {
    let until = named.queue()?.kept().renew(delivery(&named)?.lock_token()).await?;
    json(&RenewAnswer { locked_until: WireTime(until) })
}

pub(crate) async fn complete_many(named: Named, Told(request): Told<CompleteManyRequest>) -> Answer {
    let queue = named.queue()?;
    let read: Vec<_> = request.deliveries.iter().map(|text| text.parse::<DeliveryId>()).collect();
    let ids: Vec<DeliveryId> = read.iter().filter_map(|id| id.as_ref().ok()).copied().collect();
    let mut completed = queue.kept().complete_all(&ids).await?.into_iter();
    let mut answer = CompleteManyAnswer { completed: 0, results: Vec::with_capacity(read.len()) };
    for (delivery, id) in request.deliveries.into_iter().zip(read) {
        let error = match id {
            Err(misuse) => Some(Problem::from(misuse)),
            Ok(_) => match completed.next().expect("every delivery has its answer") {
                Ok(()) => None,
                Err(refusal) => Some(Problem::refused(&refusal)),
            },
        };
        answer.completed += usize::from(error.is_none());
        answer.results.push(CompletedDelivery { delivery, error });
    }
    json(&answer)
}

fn run(named: &Named) -> Result<LockToken, Refused> {
    Ok(named.text("run")?.parse()?)
}

pub(crate) async fn settle_run(
    State(shared): State<Shared>,
    caller: Caller,
    named: Named,
    Told(request): Told<SettleRunRequest>,
) -> Answer {
    let (queue, token) = (named.queue()?, run(&named)?);
    let SettleRunRequest { completed, state, state_base64, clear_state, send, next } = request;
    let completion = CompleteRequest { state, state_base64, clear_state, send }.read(&shared, &caller)?;
    let next = match next {
        None => None,
        Some(NextEnding::Abandon(abandon)) => Some(abandon.read(&shared, queue.name(), None)?),
        Some(NextEnding::Defer(defer)) => Some(defer.read(&shared, queue.name())),
        Some(NextEnding::DeadLetter(dead_letter)) => Some(dead_letter.read()?),
    };
    told(queue.kept().settle_run(token, completed, completion, next).await?)
}

pub(crate) async fn renew_run(named: Named) -> Answer {
    let until = named.queue()?.kept().renew(run(&named)?).await?;
    json(&RenewAnswer { locked_until: WireTime(until) })
}
