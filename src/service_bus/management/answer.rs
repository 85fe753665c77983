//! An answer as clients read it.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Map;
use crate::amqp::MessageProperties as AmqpProperties;
use crate::amqp::Value;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_properties;
use crate::amqp::message::encode_value;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::refusal::AmqpRefusal;

/// An answer.
pub(crate) struct ManagementAnswer {
    status: i32,
    description: String,
    condition: Option<&'static str>,
    body: Map,
    /// Messages in it that are handed out by it.
    pub(crate) handed_out: Vec<ClientHold>,
    /// Whether those are gone once it is on its way.
    pub(crate) deletes: bool,
}

impl ManagementAnswer {
    /// It was done.
    pub(crate) fn done(body: Map) -> ManagementAnswer {
        ManagementAnswer { body, ..ManagementAnswer::of(200, "OK") }
    }

    /// There is nothing.
    pub(crate) fn nothing() -> ManagementAnswer {
        ManagementAnswer::of(204, "NoContent")
    }

    /// The same with messages that are handed out by it, and with that gone or not.
    pub(crate) fn handing_out(self, handed_out: Vec<ClientHold>, deletes: bool) -> ManagementAnswer {
        ManagementAnswer { handed_out, deletes, ..self }
    }

    pub(crate) fn refused(refusal: &AmqpRefusal) -> ManagementAnswer {
        let answer = ManagementAnswer::of(refusal.status(), &refusal.description);
        ManagementAnswer { condition: Some(refusal.condition), ..answer }
    }

    fn of(status: i32, description: &str) -> ManagementAnswer {
        ManagementAnswer {
            status,
            description: description.to_owned(),
            condition: None,
            body: Map::new(),
            handed_out: Vec::new(),
            deletes: false,
        }
    }

    pub(crate) fn encode(&self, request: &ManagementRequest) -> Bytes {
        let mut application = vec![
            (Value::string("statusCode"), Value::Int(self.status)),
            (Value::string("statusDescription"), Value::from(self.description.as_str())),
        ];
        if let Some(condition) = self.condition {
            application.push((Value::string("errorCondition"), Value::symbol(condition)));
        }
        message(request, &application, &Value::Map(self.body.clone()))
    }
}

/// A message that answers a request.
pub(crate) fn message(request: &ManagementRequest, application: &[(Value, Value)], body: &Value) -> Bytes {
    let properties = AmqpProperties {
        correlation_id: request.id.clone(),
        to: request.reply_to.as_deref().map(Into::into),
        ..AmqpProperties::default()
    };
    let mut out = BytesMut::new();
    encode_properties(&mut out, &properties);
    encode_application_properties(&mut out, application);
    encode_value(&mut out, body);
    out.freeze()
}
