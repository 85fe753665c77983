//! The promises of this room.

mod codec;
