//! A definition says what it says, and every mistake in it is told.

mod defaults;
mod folder;
mod mistakes;
mod readings;
mod reference;
