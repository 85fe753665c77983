//! The seriatim command.
fn main() {}
