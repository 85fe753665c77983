//! Asking a person before something is done that cannot be taken back.

use crate::cli::arguments::operate::OperatorArguments;
use crate::cli::failure::CliFailure;
use crate::cli::interrupt::Interrupt;
use crate::cli::out::ask;
use crate::cli::out::can_ask;

/// One way through all that an operator means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Counts what would be done, before somebody is asked.
    Count,
    /// Says what would be done, and names what would be refused.
    Try,
    /// Does it, and names what is refused.
    Act,
}

impl Pass {
    /// The one that says or does it.
    pub(crate) fn of(operator: &OperatorArguments) -> Pass {
        if operator.dry_run { Pass::Try } else { Pass::Act }
    }

    pub(crate) fn is_dry_run(self) -> bool {
        self != Pass::Act
    }

    pub(crate) fn names_refused(self) -> bool {
        self != Pass::Count
    }
}

/// Asks before something is done; an error when it is not to be done, or nobody can be asked.
pub(crate) fn confirm(operator: &OperatorArguments, question: &str) -> Result<(), CliFailure> {
    if operator.yes {
        return Ok(());
    }
    check_terminal(question)?;
    heed(ask(question)?)
}

/// The same where Ctrl-C does not end the process by itself any more: it ends the question.
pub(crate) async fn confirm_unless_interrupted(
    operator: &OperatorArguments,
    question: String,
    interrupt: &Interrupt,
) -> Result<(), CliFailure> {
    if operator.yes {
        return Ok(());
    }
    check_terminal(&question)?;
    let refusal = || CliFailure::Refused("go on: interrupted; nothing was changed".to_owned());
    if interrupt.came() {
        return Err(refusal());
    }
    // Where nobody waits for the answer any more, its thread ends with the process.
    let asked = tokio::task::spawn_blocking(move || ask(&question));
    tokio::select! {
        biased;
        () = interrupt.wait() => Err(refusal()),
        answer = asked => heed(answer??),
    }
}

fn check_terminal(question: &str) -> Result<(), CliFailure> {
    match can_ask() {
        true => Ok(()),
        false => Err(CliFailure::Argument(format!("ask ({question}): there is no terminal; say --yes"))),
    }
}

fn heed(is_yes: bool) -> Result<(), CliFailure> {
    match is_yes {
        true => Ok(()),
        false => Err(CliFailure::Refused("go on: you said no".to_owned())),
    }
}
