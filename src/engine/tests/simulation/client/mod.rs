//! The clients: what they want is drawn by lot, what they do follows from what they were answered.

pub(crate) mod clients;
mod dead_letters;
mod hider;
mod operator;
mod queues;
mod receiver;
mod sender;
mod topics;
