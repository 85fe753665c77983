//! The seriatim command.

#[cfg(feature = "cli")]
mod demo;

fn main() {}
