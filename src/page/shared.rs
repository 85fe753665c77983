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
    let (bytes, _room) = read.map_err(|refusal| Problem::new("body_too_large", refusal.to_string()))?;
    Ok(FormFields::read(&String::from_utf8_lossy(&bytes)))
}
