//! Why a call had no answer: it took too long, or something below HTTP failed.

use std::error::Error;
use std::io;
use std::time::Duration;

use tokio::time::timeout;

use crate::error::innermost;
use crate::error::root_cause;
use crate::remote::error::RemoteError;

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(
    url: &str,
    time_limit: Option<Duration>,
    work: impl Future<Output = Result<T, RemoteError>>,
) -> Result<T, RemoteError> {
    let Some(time_limit) = time_limit else { return work.await };
    timeout(time_limit, work).await.unwrap_or_else(|_| {
        let detail = format!("it did not answer within {} s", time_limit.as_secs());
        Err(RemoteError::Unreachable { url: url.to_owned(), detail })
    })
}

pub(crate) fn malformed(request_line: &str, detail: impl ToString) -> RemoteError {
    RemoteError::Malformed { request: request_line.to_owned(), detail: detail.to_string() }
}

/// Why nobody was reached; when nothing listens there, also how to change that.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let refused = innermost(error).downcast_ref::<io::Error>();
    match refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        true => format!("{}; `seriatim run` starts it", root_cause(error)),
        false => root_cause(error),
    }
}
