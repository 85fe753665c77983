//! What the engine will be asked for and cannot do yet, each behind one function.

use crate::engine::Client;
use crate::engine::Queue;
use crate::engine::Receipt;
use crate::message::Message;
use crate::server::answer::Refused;
use crate::server::caller::Caller;

/// A client that acts for a caller, so that what is done is written down with who did it and why.
pub(crate) fn acting_as(client: &Client, _caller: &Caller, _reason: Option<&str>) -> Client {
    client.clone()
}

/// Sends once, however often it is asked with this key: the first answer is given again. The digest tells whether it is
/// the same request.
pub(crate) async fn send_once(
    _queue: &Queue,
    _key: &str,
    _digest: [u8; 32],
    _messages: Vec<Message>,
) -> Result<Vec<Receipt>, Refused> {
    let detail = "Idempotency-Key is not taken yet; give messages an ID in a queue that detects duplicates";
    Err(Refused::new("not_available", detail))
}
