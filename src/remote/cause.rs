//! Why a call had no answer: it took too long, or something below HTTP failed.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::time::Duration;

use rustls::CertificateError;
use tokio::time::timeout;

use crate::error::innermost;
use crate::error::root_cause;
use crate::remote::error::RemoteError;

/// How the verifier calls a server's certificate that is one of an authority, which TLS has no error of its own for.
const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// What is said of every certificate with which nobody is reached: the words of TLS, so that ours begin alike.
pub const WRONG_CERTIFICATE: &str = "invalid peer certificate";

/// What is said where HTTP is spoken with who speaks TLS.
pub const TLS_IS_SPOKEN: &str = "a daemon with TLS is at https://, not at http://";

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(
    url: &str,
    time_limit: Option<Duration>,
    work: impl Future<Output = Result<T, RemoteError>>,
) -> Result<T, RemoteError> {
    let Some(time_limit) = time_limit else { return work.await };
    timeout(time_limit, work).await.unwrap_or_else(|_| {
        Err(unanswered(url, format!("it did not answer within {} s", time_limit.as_secs())))
    })
}

/// What was asked may have been sent, and no answer to it came.
pub(crate) fn unanswered(url: &str, detail: String) -> RemoteError {
    RemoteError::Unreachable { url: url.to_owned(), detail, was_sent: true }
}

/// What was asked was sent, and not answered before the daemon said this of it.
pub(crate) fn open_still(url: &str, said: impl Display) -> RemoteError {
    unanswered(url, format!("it did not answer whether it was done, and says now: {said}"))
}

pub(crate) fn malformed(request_line: &str, detail: impl ToString) -> RemoteError {
    RemoteError::Malformed { request: request_line.to_owned(), detail: detail.to_string() }
}

/// Why nobody was reached at a URL, and how to change that where it is known.
pub(crate) fn describe(url: &str, error: &(dyn Error + 'static)) -> String {
    let (cause, said) = (innermost(error), root_cause(error));
    if let Some(unread) = cause.downcast_ref::<hyper::Error>() {
        return match unread.is_parse() && url.starts_with("http://") {
            true => format!("{said}; {TLS_IS_SPOKEN}"),
            false => said,
        };
    }
    let Some(failed) = cause.downcast_ref::<io::Error>() else { return said };
    match failed.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(wrong)) => {
            of_certificate(wrong).map_or(said, |why| format!("{WRONG_CERTIFICATE}: {why}"))
        }
        None if failed.kind() == io::ErrorKind::ConnectionRefused => {
            format!("{said}; `seriatim run` starts it")
        }
        _ => said,
    }
}

/// What is wrong with a certificate, where TLS has no words for it.
fn of_certificate(wrong: &CertificateError) -> Option<&'static str> {
    match wrong {
        CertificateError::UnknownIssuer => {
            Some("who signed it is not known here; --ca-file names a file with who did")
        }
        CertificateError::Other(other) if other.to_string().contains(IS_AUTHORITY) => {
            Some("it is one that signs others, not a server's; make one with basicConstraints=CA:FALSE")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_certificate_begins_alike_whoever_says_it() {
        for wrong in [CertificateError::Expired, CertificateError::UnknownIssuer] {
            let error = rustls::Error::InvalidCertificate(wrong);
            assert!(error.to_string().starts_with(WRONG_CERTIFICATE), "{error}");
            let said = describe("https://a", &io::Error::other(error));
            assert!(said.starts_with(WRONG_CERTIFICATE), "{said}");
        }
    }
}
