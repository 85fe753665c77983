//! What every request of the page shares.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;

use crate::api::Problem;
use crate::clock::Clock;
use crate::inbound::inflow::Inflow;
use crate::inbound::inflow::Reading;
use crate::limits;
use crate::page::api::Refused;
use crate::page::fields::Fields;
use crate::page::sessions::Sessions;

/// What every request of the page shares.
pub(crate) struct State {
    pub(crate) api: Router,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sessions: Sessions,
    pub(crate) reading: Arc<Reading>,
}

/// What every request of the page shares. Cheap to clone.
pub(crate) type Shared = Arc<State>;

/// Reads a form, within the bounds of one.
pub(crate) async fn read_form(shared: &Shared, body: Body) -> Result<Fields, Refused> {
    let read = Inflow::new(&shared.reading, body, limits::FORM_BYTES_MAX).all().await;
    let (bytes, _room) = read.map_err(|refusal| Problem::new("body_too_large", refusal.to_string()))?;
    Ok(Fields::read(&String::from_utf8_lossy(&bytes)))
}
