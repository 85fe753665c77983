//! The body of an answer, part by part as it comes.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

use crate::error::root_cause;
use crate::remote::cause::unanswered;
use crate::remote::error::RemoteError;

/// The next part of a body, `None` at its end. One that does not come in time is not waited for any longer.
pub(crate) async fn next_part<B>(
    url: &str,
    time_limit: Option<Duration>,
    body: &mut B,
) -> Result<Option<Bytes>, RemoteError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Error + 'static,
{
    // What is not data stands behind all of it, once.
    loop {
        let frame = match time_limit {
            None => body.frame().await,
            Some(time_limit) => {
                let silent = |_| unanswered(url, format!("it said no more for {} s", time_limit.as_secs()));
                timeout(time_limit, body.frame()).await.map_err(silent)?
            }
        };
        match frame {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(unanswered(url, format!("the connection broke: {}", root_cause(&error))));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
