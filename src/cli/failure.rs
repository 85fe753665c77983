//! Why a verb did not do what it was asked for, and the exit code that says so.

use std::error::Error;
use std::fmt;
use std::io;

use seriatim::Fault;
use seriatim::Misuse;
use seriatim::remote::RemoteError;

/// Exit code: a promise was broken, a file is damaged, or the daemon refused.
pub(crate) const BROKEN: u8 = 1;
/// Exit code: the arguments are wrong.
pub(crate) const MISUSED: u8 = 2;
/// Exit code: it could not run, could not reach the daemon, or was not let end in order.
pub(crate) const CANNOT_RUN: u8 = 3;

/// Exit code: the daemon ran, and a fault of the disk or the store stopped it.
pub(crate) const FAILED: u8 = 4;

/// HTTP statuses from here on are the daemon's own trouble, not a refusal.
pub(crate) const TROUBLE_STATUS: u16 = 500;

/// The code of what a cluster refuses for good, though its status is that of a server that cannot.
const UNSUPPORTED: &str = "unsupported";

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum CliFailure {
    /// An argument is wrong in a way that only shows when it is used.
    Argument(String),
    /// Something was not done, and why.
    Refused(String),
    /// The daemon did not do what is named, or was not reached.
    Remote { what: String, error: RemoteError },
    /// A fault has stopped the engine.
    Fault(Fault),
    /// A daemon was told a second time to stop, before it was drained.
    CutOff,
    /// Anything else.
    Other(Box<dyn Error>),
}

impl CliFailure {
    /// Makes a failure of a call, with what it was about.
    pub(crate) fn to(what: impl Into<String>) -> impl FnOnce(RemoteError) -> CliFailure {
        let what = what.into();
        |error| CliFailure::Remote { what, error }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            CliFailure::Argument(_) => MISUSED,
            CliFailure::Refused(_) => BROKEN,
            CliFailure::Fault(_) => FAILED,
            CliFailure::Remote { error: RemoteError::Misuse(_), .. } => MISUSED,
            CliFailure::Remote { error, .. } => match error.problem() {
                Some(problem) if problem.status < TROUBLE_STATUS || problem.code == UNSUPPORTED => BROKEN,
                _ => CANNOT_RUN,
            },
            CliFailure::Other(error) if error.is::<Misuse>() => MISUSED,
            CliFailure::CutOff | CliFailure::Other(_) => CANNOT_RUN,
        }
    }

    /// Whether whoever reads our output has stopped reading: nothing to complain about.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let CliFailure::Other(error) = self else { return false };
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Forgives that whoever reads our output has stopped reading: what was found is said by the exit code all the same.
pub(crate) fn unless_cut_off(printed: Result<(), CliFailure>) -> Result<(), CliFailure> {
    printed.or_else(|failure| if failure.is_broken_pipe() { Ok(()) } else { Err(failure) })
}

/// A refusal without the verb it begins with, if what was asked for has named it already.
fn without_verb<'a>(what: &str, why: &'a str) -> &'a str {
    let bare = why.strip_prefix("cannot ").unwrap_or(why);
    match (what.split(' ').next(), bare.split_once(": ")) {
        (Some(verb), Some((first, rest))) if first.split(' ').next() == Some(verb) => rest,
        _ => why,
    }
}

impl fmt::Display for CliFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliFailure::Argument(what) | CliFailure::Refused(what) => write!(f, "cannot {what}"),
            CliFailure::Remote { what, error } => match error.problem() {
                Some(problem) => {
                    let why = without_verb(what, without_place(&problem.detail));
                    write!(f, "cannot {what}: {why} ({})", problem.code)
                }
                None => error.fmt(f),
            },
            CliFailure::Fault(fault) => write!(f, "the engine has stopped: {fault}"),
            CliFailure::CutOff => f.write_str(
                "cannot stop in order: the drain was cut off; what was handed out is offered again when the daemon is back, \
                 with its count",
            ),
            CliFailure::Other(error) if error.is::<Misuse>() => {
                write!(f, "cannot use the arguments: {error}")
            }
            CliFailure::Other(error) if error.is::<io::Error>() => write!(f, "cannot use a file: {error}"),
            CliFailure::Other(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> From<E> for CliFailure {
    fn from(error: E) -> CliFailure {
        CliFailure::Other(Box::new(error))
    }
}

/// What is wrong with a message, without its place in the request, which is none of the person's business.
pub(crate) fn without_place(detail: &str) -> &str {
    let rest = detail
        .strip_prefix("cannot send message ")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(detail)
}

#[cfg(test)]
mod tests {
    use seriatim::api::Problem;
    use seriatim::daemon::DaemonError;

    use super::*;

    fn refused(code: &str) -> CliFailure {
        let problem = Problem::new(code, "cannot skip: the workflow has no message at its head");
        CliFailure::to("skip orders/4711")(RemoteError::Problem(Box::new(problem)))
    }

    #[test]
    fn a_refusal_has_another_exit_code_than_trouble() {
        assert_eq!(refused("no_head").exit_code(), BROKEN);
        assert_eq!(refused("stopped").exit_code(), CANNOT_RUN);
        assert_eq!(refused("unsupported").exit_code(), BROKEN, "to ask again is of no use");
        assert_eq!(CliFailure::from(Misuse::new("url", "is none")).exit_code(), MISUSED);
        let error = RemoteError::Unreachable {
            url: "http://a".to_owned(),
            detail: "refused".to_owned(),
            was_sent: false,
        };
        assert_eq!(CliFailure::to("a")(error).exit_code(), CANNOT_RUN);
    }

    #[test]
    fn what_failed_is_a_sentence_of_its_own() {
        let misuse = CliFailure::from(Misuse::new("url", "is none"));
        assert_eq!(misuse.to_string(), "cannot use the arguments: url is none");
        let missing = CliFailure::from(io::Error::other("there is none"));
        assert_eq!(missing.to_string(), "cannot use a file: there is none");
        let daemon = DaemonError::from(seriatim::Error::from(Misuse::new("secret", "is not set")));
        assert_eq!(CliFailure::from(daemon).to_string(), "cannot run the daemon: secret is not set");
    }

    #[test]
    fn the_place_in_the_request_is_left_out() {
        assert_eq!(without_place("cannot send message 17: its place is taken"), "its place is taken");
        for other in ["cannot send: the queue is full", "cannot send message: why", "position is taken"] {
            assert_eq!(without_place(other), other);
        }
    }

    #[test]
    fn a_verb_is_named_once() {
        assert_eq!(
            without_verb("redrive q#2", "cannot redrive message 2: it is no dead letter"),
            "it is no dead letter"
        );
        for other in ["message 2 is not scheduled: it never was", "cannot resume: the workflow is not held"] {
            assert_eq!(without_verb("cancel q#2", other), other);
        }
    }

    #[test]
    fn a_refusal_says_what_why_and_the_code() {
        let text = refused("no_head").to_string();
        assert_eq!(text, "cannot skip orders/4711: the workflow has no message at its head (no_head)");
    }
}
