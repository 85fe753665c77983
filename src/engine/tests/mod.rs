//! What holds the engine to its word: simulation, power cuts, hand-over between threads, and how much work a command takes.

mod asking;
mod bare;
mod blocks;
mod bounded;
mod bounds;
mod chained;
mod crash;
mod flushing;
mod golden;
mod handed_over;
mod handoff;
pub(crate) mod log;
mod margin;
mod planned_topics;
mod simulation;
mod transactions;
mod waiting_room;
