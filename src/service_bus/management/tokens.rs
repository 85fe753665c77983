//! The node for tokens: a client shows what it may do, and for how long.

use bytes::Bytes;

use crate::amqp::Value;
use crate::service_bus::management::answer::message;
use crate::service_bus::management::request::Request;
use crate::service_bus::refusal::Refusal;

/// Answers a request with a token.
pub(crate) fn answer(request: &Request, taken: Result<(), Refusal>) -> Bytes {
    let (status, description) = match (request.operation.as_str(), taken) {
        ("put-token", Ok(())) => (202, "Accepted".to_owned()),
        ("put-token", Err(refusal)) => (refusal.status(), refusal.description),
        _ => (400, "the operation is not put-token".to_owned()),
    };
    let application = [
        (Value::string("status-code"), Value::Int(status)),
        (Value::string("status-description"), Value::from(description)),
    ];
    message(request, &application, &Value::Null)
}
