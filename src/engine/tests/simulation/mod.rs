//! Everything at once, out of one number: clients, a clock that jumps, lost locks and lost processes, played on the
//! real rules and turns, and every promise looked at again after each of them.

mod client;
mod clock;
mod dead_letters;
mod drain;
mod invariants;
mod ledger;
mod loss;
mod plain;
mod reference;
mod seeds;
mod stored;
mod view;
mod world;
