//! A message as it is sent, and how it ends.

use std::time::Duration;

use bytes::Bytes;

use crate::bench::body::BodyStamp;
use crate::bench::plan::BenchOrder;

/// A message to send.
#[derive(Clone, Debug)]
pub(crate) struct BenchMessage {
    pub(crate) workflow: String,
    /// Its place in its workflow, from 1; given when the order is by position.
    pub(crate) position: Option<u64>,
    pub(crate) body: Bytes,
}

/// How a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageEnd {
    Complete,
    /// It failed, and is tried again after this long, before everything behind it.
    Retry(Duration),
}

/// A message to send, by what its body says.
pub(crate) fn outgoing(stamp: &BodyStamp, order: BenchOrder) -> BenchMessage {
    BenchMessage {
        workflow: workflow_name(stamp.workflow),
        position: (order == BenchOrder::Position).then_some(u64::from(stamp.index) + 1),
        body: stamp.write(),
    }
}

pub(crate) fn workflow_name(workflow: u32) -> String {
    format!("workflow-{workflow}")
}
