//! What a receiver asks for when it attaches.

use crate::amqp::Value;
use crate::service_bus::tests::wire::NONE;

/// Where a receiver wants its messages from.
pub(super) struct Source {
    pub(super) fields: Vec<Value>,
    pub(super) properties: Vec<(Value, Value)>,
    pub(super) is_settled: bool,
    pub(super) reply_to: String,
}

impl Source {
    pub(super) fn of(address: &str) -> Source {
        Source {
            fields: vec![Value::from(address), NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE],
            properties: Vec::new(),
            is_settled: false,
            reply_to: "here".to_owned(),
        }
    }

    pub(super) fn durable(mut self) -> Source {
        (self.fields[1], self.fields[2]) = (Value::Uint(2), Value::symbol("never"));
        self
    }

    /// As browsers of JMS ask: copies, which the sender settles.
    pub(super) fn copy(mut self) -> Source {
        self.fields[6] = Value::symbol("copy");
        self.is_settled = true;
        self
    }

    /// As who receives and deletes asks: what is sent is gone.
    pub(super) fn deleting(mut self) -> Source {
        self.is_settled = true;
        self
    }

    pub(super) fn filter(mut self, name: &'static str, value: Value) -> Source {
        let mut filter = self.fields[7].as_map().unwrap_or_default().to_vec();
        filter.push((Value::symbol(name), value));
        self.fields[7] = Value::Map(filter);
        self
    }

    pub(super) fn session(self, id: &str) -> Source {
        self.filter("com.microsoft:session-filter", Value::from(id))
    }

    pub(super) fn capability(mut self, name: &'static str) -> Source {
        self.fields[10] = Value::Array(vec![Value::symbol(name)]);
        self
    }

    pub(super) fn property(mut self, name: &'static str, value: Value) -> Source {
        self.properties.push((Value::symbol(name), value));
        self
    }
}
