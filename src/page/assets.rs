//! The stylesheet, the script and the icon: parts of the binary, named by what is in them, so browsers keep them.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::Response;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use sha2::Digest;
use sha2::Sha256;

use crate::page::response::protected;

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");

/// The names of the parts, each with a hash of what is in it.
pub(crate) struct AssetNames {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

/// The names of the parts.
pub(crate) static NAMES: LazyLock<AssetNames> = LazyLock::new(|| AssetNames {
    style: format!("page-{}.css", tag(STYLE)),
    script: format!("page-{}.js", tag(SCRIPT)),
    icon: format!("icon-{}.svg", tag(ICON)),
});

fn tag(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// A part, if it is one. Whoever has an older screen gets what there is today.
pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    let (media_type, text) = match name.split_once('-').map(|(kind, _)| kind).zip(name.rsplit_once('.')) {
        Some(("page", (_, "css"))) => ("text/css; charset=utf-8", STYLE),
        Some(("page", (_, "js"))) => ("text/javascript; charset=utf-8", SCRIPT),
        Some(("icon", (_, "svg"))) => ("image/svg+xml", ICON),
        _ => return protected(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "there is no such part\n"),
    };
    let mut response = protected(StatusCode::OK, media_type, text);
    let is_todays = [&NAMES.style, &NAMES.script, &NAMES.icon].contains(&&name);
    if is_todays {
        let forever = HeaderValue::from_static("private, max-age=31536000, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, forever);
    }
    response
}
