//! Where the page stands: in front of the API.

use std::sync::Arc;

use axum::Router;

use crate::clock::Clock;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::timeouts::Timeouts;
use crate::limits;
use crate::page::routes::routes;
use crate::page::sessions::Draw;
use crate::page::sessions::Sessions;
use crate::page::shared::PageState;

/// What the page is made with.
pub(crate) struct PageOptions {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) draw: Draw,
    /// The port of the daemon: browsers keep cookies for a machine, whatever the port.
    pub(crate) port: u16,
}

/// The API, with the page in front of it at `/ui`. Links are relative, so whatever prefix a proxy adds, they work.
pub(crate) fn mount(api: Router, options: PageOptions) -> Router {
    let state = Arc::new(PageState {
        api: api.clone(),
        sessions: Sessions::new(options.draw, options.clock.clone(), options.port),
        clock: options.clock,
        reading: Arc::new(BodyLimits::new(limits::FORMS_BYTES, Timeouts::default())),
    });
    api.merge(routes(state))
}
