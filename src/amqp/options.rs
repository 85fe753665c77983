//! What one connection may cost, and what it says of itself.

use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::limits::AMQP_BUFFERED_BYTES_MAX;
use crate::limits::AMQP_CHANNELS_MAX;
use crate::limits::AMQP_FRAME_BYTES_MAX;
use crate::limits::AMQP_HANDLES_MAX;
use crate::limits::AMQP_IDLE_MS;
use crate::limits::AMQP_INCOMING_WINDOW;
use crate::limits::AMQP_LINKS_MAX;
use crate::limits::AMQP_OPEN_MS_MAX;
use crate::limits::AMQP_PARTIAL_BYTES_MAX;
use crate::limits::AMQP_UNSETTLED_MAX;
use crate::limits::BODY_BYTES_MAX;

/// Bounds and names of a connection. Every one of them is held whatever the peer does.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// What this side calls itself.
    pub container_id: Text,
    /// What else it tells when it opens.
    pub properties: Map,
    /// The SASL mechanisms it offers.
    pub mechanisms: Vec<&'static str>,
    /// Whether a peer may leave SASL out. It is then as trusted as an anonymous one.
    pub may_skip_sasl: bool,
    /// The largest frame it takes and writes, at least 512.
    pub frame_bytes_max: u32,
    /// How many sessions a connection has at most.
    pub channels_max: u16,
    /// How many links a session has at most.
    pub handles_max: u32,
    /// How many links a connection has at most.
    pub links_max: usize,
    /// How many deliveries of a connection may be unsettled in each direction.
    pub unsettled_max: usize,
    /// The largest message, unless the answer to an attach says less.
    pub message_bytes_max: u64,
    /// How many frames of transfers a peer may send before it hears that there is room again.
    pub incoming_window: u32,
    /// How many bytes of messages, and as many of answers, may wait to be written.
    pub buffered_bytes_max: usize,
    /// How many bytes of messages may have come in part; one message always may.
    pub partial_bytes_max: usize,
    /// How often a peer is told to say something; after twice as long it is given up. None, to wait for ever.
    pub idle_ms: Option<u32>,
    /// How long a peer may take to open, and to close.
    pub open_ms_max: u64,
}

impl Default for ConnectionOptions {
    fn default() -> ConnectionOptions {
        ConnectionOptions {
            container_id: Text::of("seriatim"),
            properties: Map::new(),
            mechanisms: vec!["ANONYMOUS", "PLAIN", "MSSBCBS", "EXTERNAL"],
            may_skip_sasl: true,
            frame_bytes_max: AMQP_FRAME_BYTES_MAX,
            channels_max: AMQP_CHANNELS_MAX,
            handles_max: AMQP_HANDLES_MAX,
            links_max: AMQP_LINKS_MAX,
            unsettled_max: AMQP_UNSETTLED_MAX,
            message_bytes_max: BODY_BYTES_MAX as u64,
            incoming_window: AMQP_INCOMING_WINDOW,
            buffered_bytes_max: AMQP_BUFFERED_BYTES_MAX,
            partial_bytes_max: AMQP_PARTIAL_BYTES_MAX,
            idle_ms: Some(AMQP_IDLE_MS),
            open_ms_max: AMQP_OPEN_MS_MAX,
        }
    }
}
