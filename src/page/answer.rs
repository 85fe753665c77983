//! What a request to the page is answered with.

use axum::response::Response;

use crate::page::api::ApiRefusal;
use crate::page::layout::Screen;

/// What somebody is shown.
pub(crate) enum PageAnswer {
    Screen(Screen),
    Response(Response),
}

impl From<Screen> for PageAnswer {
    fn from(screen: Screen) -> PageAnswer {
        PageAnswer::Screen(screen)
    }
}

impl From<Response> for PageAnswer {
    fn from(response: Response) -> PageAnswer {
        PageAnswer::Response(response)
    }
}

/// What a screen comes to.
pub(crate) type PageResult = Result<PageAnswer, ApiRefusal>;
