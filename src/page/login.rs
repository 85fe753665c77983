//! Showing a key, and going away again. The key is in no URL and in no storage of the browser.

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use maud::DOCTYPE;
use maud::Markup;
use maud::html;

use crate::api::Problem;
use crate::api::foreign_text::visible;
use crate::api::views::KeyView;
use crate::page::api::Api;
use crate::page::api::ApiRefusal;
use crate::page::layout::head;
use crate::page::layout::trouble_outside;
use crate::page::response;
use crate::page::response::go_to;
use crate::page::response::with_cookie;
use crate::page::shared::SharedPage;
use crate::page::shared::read_form;
use crate::page::visitor::Cookies;
use crate::remote::RequestPath;

/// Asks for a key.
pub(crate) fn ask(cookies: &Cookies, problem: Option<&str>) -> Response {
    let token = match cookies.form_token() {
        Ok(token) => token,
        Err(problem) => return trouble_outside(&problem),
    };
    let html = html! {
        (head("Sign in", 0))
        body {
            main.alone #main {
                h1.brand { "seriatim" }
                form.card method="post" action="login" {
                    input type="hidden" name="form_token" value=(token);
                    @if let Some(problem) = problem { (wrong(problem)) }
                    label for="key" { "Key" }
                    input #key type="password" name="key" autocomplete="current-password" required
                        autofocus spellcheck="false" aria-describedby="about-key";
                    p.quiet #about-key {
                        "One of the daemon's keys file with the right " code { "listen" } " or " code { "manage" }
                        ". It is kept in the daemon's memory until you sign out, for 12 hours at most."
                    }
                    button.primary type="submit" { "Sign in" }
                }
            }
        }
    };
    let status = StatusCode::UNAUTHORIZED;
    with_cookie(response::page(status, html.into_string()), cookies.if_new())
}

fn wrong(problem: &str) -> Markup {
    html! { div.notice.bad role="alert" { p { (visible(problem, false)) } } }
}

/// Lets the browser ask again by itself: it sends its cookie then.
pub(crate) fn ask_again() -> Response {
    let html = html! {
        (DOCTYPE)
        html lang="en";
        head { meta charset="utf-8"; meta http-equiv="refresh" content="0"; title { "seriatim" } }
        body { p { "One moment." } }
    };
    response::page(StatusCode::OK, html.into_string())
}

/// Takes a key, and begins a session.
pub(crate) async fn login(State(shared): State<SharedPage>, request: Request) -> Response {
    match begin(&shared, request).await {
        Ok(response) => response,
        Err(problem) => trouble_outside(&problem),
    }
}

async fn begin(shared: &SharedPage, request: Request) -> Result<Response, ApiRefusal> {
    let (parts, body) = request.into_parts();
    let cookies = Cookies::of(shared, &parts)?;
    let form = read_form(shared, body).await?;
    if !shared.sessions.is_own_form(&cookies.session, form.one("form_token").unwrap_or_default()) {
        return Ok(ask(&cookies, Some("This form was too old. Show the key again.")));
    }
    let key = form.one("key").unwrap_or_default().trim();
    let api = Api::of(&shared.api, &parts, Some(key));
    match api.get::<KeyView>(&RequestPath::new("/v1/key")).await {
        Ok(_) => {
            // A session that somebody else may have begun is not taken over.
            let id =
                shared.sessions.begin(key).ok_or_else(|| Problem::new("busy", "try again in a moment"))?;
            tracing::info!("somebody has signed in to the page");
            Ok(with_cookie(go_to("./"), Some(cookies.of_session(&id))))
        }
        Err(problem) if problem.status == 401 => {
            Ok(ask(&cookies, Some("The daemon does not know this key.")))
        }
        Err(problem) => Ok(ask(&cookies, Some(&problem.detail))),
    }
}

/// Ends a session.
pub(crate) async fn logout(State(shared): State<SharedPage>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let ended = async {
        let cookies = Cookies::of(&shared, &parts)?;
        let form = read_form(&shared, body).await?;
        if shared.sessions.is_own_form(&cookies.session, form.one("form_token").unwrap_or_default()) {
            shared.sessions.end(&cookies.session);
        }
        Ok::<_, ApiRefusal>(())
    };
    match ended.await {
        Ok(()) => go_to("./"),
        Err(problem) => trouble_outside(&problem),
    }
}
