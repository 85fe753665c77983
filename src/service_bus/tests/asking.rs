//! What a client without an SDK asks of the management of a queue, and of the node for tokens.

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::MessageProperties;
use crate::amqp::Value;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_properties;
use crate::amqp::message::encode_value;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::NONE;
use crate::service_bus::tests::wire::TRANSFER;
use crate::service_bus::tests::wire::Wire;

impl Wire {
    /// Attaches both links of the management of a queue, at handles 100 and 101.
    pub(super) async fn manage(&mut self, queue: &str) {
        self.manage_without_credit(queue).await;
        self.credit(100, 0, 1_000, false).await;
    }

    /// The same, without credit for answers.
    pub(super) async fn manage_without_credit(&mut self, queue: &str) {
        let address = format!("{queue}/$management");
        let mut replies = Source::of(&address);
        replies.reply_to = "replies".to_owned();
        assert_eq!(self.attach_receiver(100, replies).await.code, ATTACH);
        assert_eq!(self.attach_sender(101, vec![Value::from(address)]).await.code, ATTACH);
    }

    /// Asks the management, and hears status and body of its answer.
    pub(super) async fn ask(&mut self, operation: &'static str, body: &Value) -> Reply {
        self.ask_only(operation, body).await;
        self.reply().await
    }

    /// Asks the management.
    pub(super) async fn ask_only(&mut self, operation: &'static str, body: &Value) {
        let operation = [(Value::from("operation"), Value::from(format!("com.microsoft:{operation}")))];
        self.request(101, &operation, body).await;
    }

    /// The next answer of the management.
    pub(super) async fn reply(&mut self) -> Reply {
        Reply::read(&self.answer(100).await)
    }

    /// Shows a token for a resource; attaches both links of the node for tokens before the first, at handles 200 and 201.
    pub(super) async fn put_token(&mut self, resource: &str, token: &str) -> TokenReply {
        if !std::mem::replace(&mut self.has_tokens, true) {
            let mut replies = Source::of("$cbs");
            replies.reply_to = "replies".to_owned();
            self.attach_receiver(200, replies).await;
            self.attach_sender(201, vec![Value::from("$cbs")]).await;
            self.credit(200, 0, 10_000, false).await;
        }
        let claims =
            [("operation", "put-token"), ("type", "servicebus.windows.net:sastoken"), ("name", resource)];
        let claims = claims.map(|(name, value)| (Value::from(name), Value::from(value)));
        self.request(201, &claims, &Value::from(token)).await;
        let application = Sections::parse(&self.answer(200).await).unwrap().application_properties().unwrap();
        let claims = |name: &str| crate::amqp::lookup(&application, name).cloned().unwrap_or_default();
        TokenReply {
            status: claims("status-code").as_i64().unwrap(),
            condition: claims("error-condition").as_str().unwrap_or_default().to_owned(),
            description: claims("status-description").as_str().unwrap().to_owned(),
        }
    }

    /// Makes a request over a link.
    pub(super) async fn request(&mut self, handle: u32, application: &[(Value, Value)], body: &Value) {
        self.requests += 1;
        let properties = MessageProperties {
            message_id: Value::Ulong(self.requests),
            reply_to: Some("replies".into()),
            ..MessageProperties::default()
        };
        let mut request = BytesMut::new();
        encode_properties(&mut request, &properties);
        encode_application_properties(&mut request, application);
        encode_value(&mut request, body);
        self.transfer(handle, 0, &request).await;
    }

    /// The next message that comes over a link, whole.
    pub(super) async fn answer(&mut self, handle: u32) -> Bytes {
        let mut payload = BytesMut::new();
        loop {
            let frames = self.another_answer().await;
            if frames.code == TRANSFER && *frames.field(0) == Value::Uint(handle) {
                payload.put_slice(&frames.payload);
                if *frames.field(5) != Value::Boolean(true) {
                    return payload.freeze();
                }
            }
        }
    }
}

/// An answer of the node for tokens.
#[derive(Debug)]
pub(super) struct TokenReply {
    pub(super) status: i64,
    pub(super) condition: String,
    pub(super) description: String,
}

/// An answer of the management.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: i64,
    pub(super) condition: String,
    pub(super) description: String,
    pub(super) body: Value,
}

impl Reply {
    fn read(payload: &Bytes) -> Reply {
        let sections = Sections::parse(payload).unwrap();
        let application = sections.application_properties().unwrap();
        let claims = |name: &str| crate::amqp::lookup(&application, name).cloned().unwrap_or_default();
        let MessageBody::Value(body) = sections.body().unwrap() else { panic!("an answer is a value") };
        Reply {
            status: claims("statusCode").as_i64().unwrap(),
            condition: claims("errorCondition").as_str().unwrap_or_default().to_owned(),
            description: claims("statusDescription").as_str().unwrap().to_owned(),
            body,
        }
    }

    pub(super) fn get(&self, name: &str) -> &Value {
        crate::amqp::lookup(self.body.as_map().unwrap(), name).unwrap_or(&NONE)
    }
}
