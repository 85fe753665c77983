//! Asking a person before something is done that cannot be taken back.

use crate::cli::arguments::operate::OperatorArguments;
use crate::cli::failure::CliFailure;
use crate::cli::out::ask;
use crate::cli::out::can_ask;

/// Asks before something is done; an error when it is not to be done, or nobody can be asked.
pub(crate) fn confirm(operator: &OperatorArguments, question: &str) -> Result<(), CliFailure> {
    if operator.yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(CliFailure::Argument(format!("ask ({question}): there is no terminal; say --yes")));
    }
    match ask(question)? {
        true => Ok(()),
        false => Err(CliFailure::Refused("go on: you said no".to_owned())),
    }
}
