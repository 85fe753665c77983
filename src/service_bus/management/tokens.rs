//! The node for tokens: a client shows what it may do, and for how long.

use bytes::Bytes;

use crate::amqp::Value;
use crate::service_bus::management::answer::message;
use crate::service_bus::management::request::Request;

/// Answers a request with a token. Whoever reaches an endpoint without keys may do everything.
pub(crate) fn answer(request: &Request) -> Bytes {
    let (status, description) = match request.operation.as_str() {
        "put-token" => (202, "Accepted"),
        "delete-token" => (200, "OK"),
        _ => (400, "the operation is neither put-token nor delete-token"),
    };
    let application = [
        (Value::string("status-code"), Value::Int(status)),
        (Value::string("status-description"), Value::string(description)),
    ];
    message(request, &application, &Value::Null)
}
