//! A link over which messages come to a queue or a topic, and what waits on it to be sent.

use std::collections::VecDeque;

use crate::amqp::DeliveryNumber;
use crate::limits;
use crate::message::Message;
use crate::service_bus::entity::Entity;

/// A link over which messages come to a queue or a topic.
pub(crate) struct Sender {
    pub(crate) entity: Entity,
    /// What came together, to be sent together; the first is sent first.
    groups: VecDeque<MessageGroup>,
    /// Whether it ends, and takes nothing more: what still comes over it was not taken, as its end tells.
    pub(crate) is_leaving: bool,
    /// Whether a topic has not answered the group that was sent last. It refuses one as a whole, whose messages are then sent one by one:
    /// what was sent meanwhile would come before them.
    is_unanswered: bool,
}

/// Messages that came together.
#[derive(Default)]
pub(crate) struct MessageGroup {
    pub(crate) messages: Vec<Message>,
    /// What each is settled by; nothing for one that the client has settled.
    pub(crate) deliveries: Vec<Option<DeliveryNumber>>,
    pub(crate) bytes: usize,
    /// Whether the client has sent them as one, by one delivery: all or none.
    pub(crate) is_batch: bool,
}

impl Sender {
    pub(crate) fn new(entity: Entity) -> Sender {
        Sender { entity, groups: VecDeque::new(), is_leaving: false, is_unanswered: false }
    }

    /// The group that the next message joins.
    pub(crate) fn open_group(&mut self) -> &mut MessageGroup {
        if self.groups.back().is_none_or(|group| group.is_batch || group.is_full()) {
            self.groups.push_back(MessageGroup::default());
        }
        self.groups.back_mut().expect("there is one, perhaps a new one")
    }

    /// Adds what the client sends as one.
    pub(crate) fn add_batch(&mut self, batch: MessageGroup) {
        self.groups.push_back(batch);
    }

    /// The group that is to be sent now.
    pub(crate) fn next_group(&mut self) -> Option<MessageGroup> {
        if self.is_unanswered {
            return None;
        }
        let group = self.groups.pop_front()?;
        self.is_unanswered = self.entity.topic.is_some();
        Some(group)
    }

    pub(crate) fn note_answered(&mut self) {
        self.is_unanswered = false;
    }

    /// How many deliveries wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.groups.iter().map(|group| group.deliveries.len()).sum()
    }

    /// Whether nothing waits to be sent or answered, as far as it has to.
    pub(crate) fn is_quiet(&self) -> bool {
        self.groups.is_empty() && !self.is_unanswered
    }
}

impl MessageGroup {
    /// Whether it is sent although more may come.
    pub(crate) fn is_full(&self) -> bool {
        self.messages.len() >= limits::SERVICE_BUS_GROUP_MAX || self.bytes >= limits::SERVICE_BUS_GROUP_BYTES
    }
}
