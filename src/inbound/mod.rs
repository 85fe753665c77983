//! HTTP connections as they come in, for every server of the daemon: limits, timeouts, TLS, bodies, and no web pages.

pub(crate) mod accept;
mod bodies;
pub(crate) mod browser;
pub(crate) mod connection;
mod head;
pub(crate) mod inflow;
pub(crate) mod live_value;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod timeouts;
pub(crate) mod tls;
