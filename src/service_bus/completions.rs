//! Settlements that are under way.

use std::collections::HashMap;

use crate::amqp::DeliveryNumber;
use crate::amqp::DeliveryOutcome;
use crate::amqp::LinkId;
use crate::id::QueueName;
use crate::service_bus::holds::ClientHold;

/// Completions of one queue that came together.
#[derive(Default)]
pub(crate) struct Completions {
    pub(crate) by_queue: HashMap<QueueName, Vec<(SettlementReply, ClientHold)>>,
}

/// Messages of sessions that their clients have not handled and gave back together.
pub(crate) type Releases = Vec<(SettlementReply, ClientHold)>;

/// Where and how a settlement is answered.
#[derive(Clone, Debug)]
pub(crate) struct SettlementReply {
    pub(crate) link: LinkId,
    pub(crate) delivery: DeliveryNumber,
    /// The answer if it went well; none, if the client expects none.
    pub(crate) outcome: Option<DeliveryOutcome>,
}
