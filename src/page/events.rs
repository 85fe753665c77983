//! What happens, as it happens: the stream of events of the API, with the session instead of a key.

use http::Method;

use crate::page::fields::Fields;
use crate::page::seen::Seen;
use crate::page::visitor::Visit;
use crate::remote::Route;

/// The stream of events.
pub(crate) async fn stream(visitor: Visit, fields: Fields) -> Seen {
    let route = Route::new("/v1/events").query("queue", fields.one("queue"));
    Ok(visitor.api.open(Method::GET, &route, None).await.into())
}
