//! `seriatim completions`: what makes a shell complete the verbs.

use clap::CommandFactory;

use crate::cli::arguments::verb::Arguments;
use crate::cli::arguments::verb::CompletionsArguments;
use crate::cli::failure::CliFailure;
use crate::cli::out::write_line;

/// Prints the completions for a shell.
pub(crate) fn run(arguments: &CompletionsArguments) -> Result<bool, CliFailure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "seriatim", &mut text);
    write_line(text.trim_ascii_end())?;
    Ok(true)
}
