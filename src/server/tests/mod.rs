//! The server as its callers see it: over a socket.

mod house;
mod thin;
