//! The node for tokens: a client shows what it may do, and for how long.

use bytes::Bytes;

use crate::amqp::Value;
use crate::service_bus::management::answer::message;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::refusal::AmqpRefusal;

/// Answers a request with a token.
pub(crate) fn answer(request: &ManagementRequest, accepted: Result<(), AmqpRefusal>) -> Bytes {
    let accepted = match request.operation.as_str() {
        "put-token" => accepted,
        _ => Err(AmqpRefusal::argument("the operation is not put-token")),
    };
    let (status, description) = match &accepted {
        Ok(()) => (202, "Accepted"),
        Err(refusal) => (refusal.status(), refusal.description.as_str()),
    };
    let mut application = vec![
        (Value::string("status-code"), Value::Int(status)),
        (Value::string("status-description"), Value::from(description)),
    ];
    if let Err(refusal) = &accepted {
        application.push((Value::string("error-condition"), Value::symbol(refusal.condition)));
    }
    message(request, &application, &Value::Null)
}
