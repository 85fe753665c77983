//! The packages that `release/` makes, tried where there is nothing but them: the Debian package is installed, upgraded,
//! removed and purged, the image of the container is run as a container would be, and compose.yaml is read.
//!
//! They hold the binary of these tests, or the one that `SERIATIM_BINARY` names. Namespaces are root's to make: without
//! them, or without dpkg, these tests say that they tried nothing.

mod archive;
mod compose;
mod deb;
mod image;
mod made;
mod network;
mod papers;
mod room;
