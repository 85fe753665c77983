//! What the endpoint promises, as far as no SDK is needed to see it.

mod arriving;
mod asking;
pub(crate) mod bare;
mod browsing;
mod buffering;
mod buffers;
mod dead_letters;
mod draining;
mod ending;
mod expiring;
mod forwarding;
mod full;
mod keyed;
mod large;
mod limited;
mod managing;
mod older_java;
mod prefetching;
mod settling;
mod small_buffers;
mod transactions;
mod translation;
mod typed;
mod websockets;
mod whole;
mod window;
mod wire;
