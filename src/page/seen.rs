//! What a request to the page is answered with.

use axum::response::Response;

use crate::page::api::Refused;
use crate::page::layout::Screen;

/// What somebody is shown.
pub(crate) enum Shown {
    Screen(Screen),
    Response(Response),
}

impl From<Screen> for Shown {
    fn from(screen: Screen) -> Shown {
        Shown::Screen(screen)
    }
}

impl From<Response> for Shown {
    fn from(response: Response) -> Shown {
        Shown::Response(response)
    }
}

/// What a screen comes to.
pub(crate) type Seen = Result<Shown, Refused>;
