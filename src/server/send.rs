//! Sending: the body is the message.

use axum::extract::Request;
use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::Receipt;
use crate::limits;
use crate::message::Message;
use crate::server::answer::Answer;
use crate::server::answer::json_as;
use crate::server::inflow::Inflow;
use crate::server::named::Named;
use crate::server::shared::Shared;

/// What became of a message that was sent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReceiptAnswer {
    /// Its number; absent when its place was settled before.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<u64>,
    /// Whether it was stored now.
    status: ReceiptWord,
}

/// What became of a message, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReceiptWord {
    /// It is stored.
    Accepted,
    /// It was accepted before, under this number.
    Duplicate,
    /// Its place was completed before; nothing was stored.
    AlreadySettled,
    /// It is stored as a dead letter: its place was given up before it came.
    DeadLettered,
}

impl ReceiptAnswer {
    pub(crate) fn show(receipt: Receipt) -> ReceiptAnswer {
        let status = match receipt {
            Receipt::Accepted(_) => ReceiptWord::Accepted,
            Receipt::Duplicate(_) => ReceiptWord::Duplicate,
            Receipt::AlreadySettled => ReceiptWord::AlreadySettled,
            Receipt::DeadLettered(_) => ReceiptWord::DeadLettered,
        };
        ReceiptAnswer { sequence_number: receipt.sequence_number().map(|number| number.get()), status }
    }
}

pub(crate) async fn send(State(shared): State<Shared>, named: Named, request: Request) -> Answer {
    let queue = named.queue()?;
    let (_parts, body) = request.into_parts();
    let (body, _room) = Inflow::new(&shared, body, limits::HTTP_MESSAGES_BYTES_MAX).all().await?;
    let message = shared.place.place(queue.name(), Message::new(body))?;
    let receipt = ReceiptAnswer::show(queue.send(message).await?);
    let status = match receipt.status {
        ReceiptWord::Accepted | ReceiptWord::DeadLettered => StatusCode::CREATED,
        ReceiptWord::Duplicate | ReceiptWord::AlreadySettled => StatusCode::OK,
    };
    Ok(json_as(status, &receipt))
}
