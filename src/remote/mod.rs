//! A client of a running daemon, over HTTP.

mod answer;
mod cause;
mod cluster;
mod connector;
mod daemon;
mod dead_letters;
mod deliveries;
mod error;
mod events;
mod exchange;
mod lines;
mod messages;
mod parts;
mod queues;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod remote;
mod route;
#[cfg(test)]
mod tests;
mod topics;
mod workflows;

pub use crate::remote::cause::TLS_IS_SPOKEN;
pub use crate::remote::cause::WRONG_CERTIFICATE;
pub use crate::remote::error::RemoteError;
pub use crate::remote::events::EventStream;
pub use crate::remote::events::Happening;
pub use crate::remote::messages::BatchAnswers;
pub use crate::remote::remote::Remote;
pub use crate::remote::remote::RemoteOptions;
pub(crate) use crate::remote::route::RequestPath;
