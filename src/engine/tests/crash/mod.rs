//! What a power cut, a failing disk and a flipped bit may do to the store, tried out: nothing that was acknowledged is
//! lost, nothing is made up, and what is damaged is refused.

mod compact;
mod cut;
pub(crate) mod disk;
mod faults;
mod flips;
pub(crate) mod image;
pub(crate) mod listing;
pub(crate) mod play;
#[path = "../../../../tests/model/random.rs"]
pub(crate) mod random;
mod random_messages;
pub(crate) mod rows;
mod run;
pub(crate) mod setting;
pub(crate) mod story;
mod story_generator;
mod sweep;
pub(crate) mod upgrade;
