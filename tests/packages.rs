//! The packages that `release/` makes, tried where there is nothing but them: the Debian package is installed, upgraded,
//! removed and purged, the image of the container is run as a container would be, and compose.yaml is read.
//!
//! They hold the binary of these tests, or the one that `SERIATIM_BINARY` names. Namespaces are root's to make: without
//! them, or without dpkg, these tests say that they tried nothing.

#[path = "packages/archive.rs"]
mod archive;
#[path = "packages/compose.rs"]
mod compose;
#[path = "packages/deb.rs"]
mod deb;
#[path = "packages/image.rs"]
mod image;
#[path = "packages/made.rs"]
mod made;
#[path = "packages/network.rs"]
mod network;
#[path = "packages/papers.rs"]
mod papers;
#[path = "packages/room.rs"]
mod room;
