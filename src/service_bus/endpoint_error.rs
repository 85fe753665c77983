//! Why an endpoint cannot start.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use crate::error::QueueError;
use crate::error::TopicError;
use crate::records::RecordError;
use crate::service_bus::config::ConfigurationError;

/// Why an endpoint cannot start.
#[derive(Debug, Error)]
pub(crate) enum EndpointError {
    /// The address cannot be had.
    #[error("cannot listen on {0} for AMQP: {1}")]
    Bind(SocketAddr, #[source] io::Error),
    /// Other machines could come in.
    #[error(
        "cannot listen on {0} for AMQP: other machines can reach this address, so keys and TLS are needed; give a keys file, \
         a certificate and its private key, listen on 127.0.0.1, or allow it with --insecure-network"
    )]
    Unprotected(SocketAddr),
    /// The file of queues cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// A queue of the file cannot be made.
    #[error("cannot make queue {0}: {1}")]
    Queue(String, #[source] QueueError),
    /// The descriptions of queues and topics cannot be read or written.
    #[error("cannot read or write the descriptions of queues and topics for AMQP: {0}")]
    Descriptions(#[from] RecordError),
    /// A topic of the file cannot be made.
    #[error("cannot make topic {0}: {1}")]
    Topic(String, #[source] TopicError),
}
