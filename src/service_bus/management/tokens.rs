//! The node for tokens: a client shows what it may do, and for how long.

use bytes::Bytes;

use crate::amqp::Value;
use crate::service_bus::management::answer::message;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::refusal::AmqpRefusal;

/// Answers a request with a token.
pub(crate) fn answer(request: &ManagementRequest, taken: Result<(), AmqpRefusal>) -> Bytes {
    let taken = match request.operation.as_str() {
        "put-token" => taken,
        _ => Err(AmqpRefusal::argument("the operation is not put-token")),
    };
    let (status, description) = match &taken {
        Ok(()) => (202, "Accepted"),
        Err(refusal) => (refusal.status(), refusal.description.as_str()),
    };
    let mut application = vec![
        (Value::string("status-code"), Value::Int(status)),
        (Value::string("status-description"), Value::from(description)),
    ];
    if let Err(refusal) = &taken {
        application.push((Value::string("error-condition"), Value::symbol(refusal.condition)));
    }
    message(request, &application, &Value::Null)
}
