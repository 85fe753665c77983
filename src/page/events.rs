//! What happens, as it happens: the stream of events of the API, with the session instead of a key.

use http::Method;

use crate::page::answer::PageResult;
use crate::page::fields::FormFields;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// The stream of events.
pub(crate) async fn stream(visitor: Visit, fields: FormFields) -> PageResult {
    let route = RequestPath::new("/v1/events").query("queue", fields.one("queue"));
    Ok(visitor.api.open(Method::GET, &route, None).await.into())
}
