//! How messages, deliveries, answers and errors look to outsiders: JSON, in the words of the library.

mod body;
mod delivery;
mod message;
pub mod options;
mod outcome;
mod plain;
pub(crate) mod plural;
mod problem;
mod rate;
mod time;
pub mod views;

pub use crate::wire::body::BodyFields;
pub(crate) use crate::wire::body::is_json;
pub use crate::wire::delivery::AttemptEnvelope;
pub use crate::wire::delivery::DeliveryEnvelope;
pub use crate::wire::message::SendEnvelope;
pub use crate::wire::message::WireProperty;
pub(crate) use crate::wire::message::read_properties;
pub(crate) use crate::wire::message::show_properties;
pub use crate::wire::outcome::OutcomeEnvelope;
pub use crate::wire::outcome::OutcomeWord;
pub use crate::wire::plain::plain;
pub(crate) use crate::wire::plain::plain_text;
pub use crate::wire::problem::Coded;
pub use crate::wire::problem::PROBLEM_KINDS;
pub use crate::wire::problem::Problem;
pub use crate::wire::rate::WireRate;
pub use crate::wire::time::WireDuration;
pub use crate::wire::time::WireTime;
