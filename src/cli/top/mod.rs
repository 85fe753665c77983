//! `seriatim top`: the overview in a terminal, for people without a browser.

mod draw;
mod snapshot;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
#[expect(clippy::module_inception, reason = "the file is named by the verb it holds")]
mod top;

pub(crate) use crate::cli::top::top::run;
