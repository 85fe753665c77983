//! What every request of the page shares.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;

use crate::api::Problem;
use crate::clock::Clock;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::page::api::ApiRefusal;
use crate::page::fields::FormFields;
use crate::page::sessions::Sessions;

/// What every request of the page shares.
pub(crate) struct PageState {
    pub(crate) api: Router,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sessions: Sessions,
    pub(crate) reading: Arc<BodyLimits>,
}

/// What every request of the page shares. Cheap to clone.
pub(crate) type SharedPage = Arc<PageState>;

/// Reads a form, within the bounds of one.
pub(crate) async fn read_form(shared: &SharedPage, body: Body) -> Result<FormFields, ApiRefusal> {
    let read = Inflow::new(&shared.reading, body, limits::FORM_BYTES_MAX).all().await;
    let (bytes, _room) = read.map_err(|refusal| Problem::new(refusal.code(), refusal.to_string()))?;
    Ok(FormFields::read(&String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::inbound::timeouts::Timeouts;

    #[tokio::test]
    async fn a_form_is_refused_for_what_is_wrong_with_it() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let sessions = Sessions::new(Arc::new(|| Some(0)), clock.clone(), 7700);
        let reading = Arc::new(BodyLimits::new(0, Timeouts::default()));
        let shared = Arc::new(PageState { api: Router::new(), clock, sessions, reading });
        let code = async |body: Vec<u8>| read_form(&shared, Body::from(body)).await.unwrap_err().code;
        assert_eq!(code(b"a=1".to_vec()).await, "busy");
        assert_eq!(code(vec![b'a'; limits::FORM_BYTES_MAX + 1]).await, "body_too_large");
    }
}
