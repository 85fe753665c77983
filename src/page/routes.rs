//! The screens and what they are called: the only table of them.

use std::future::Future;

use axum::Router;
use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use axum::routing::MethodRouter;
use axum::routing::get;
use axum::routing::post;

use crate::api::BlockedPage;
use crate::api::Problem;
use crate::page::actions;
use crate::page::answer::PageAnswer;
use crate::page::answer::PageResult;
use crate::page::assets::asset;
use crate::page::audit;
use crate::page::blocked;
use crate::page::body;
use crate::page::cluster;
use crate::page::dead_letters;
use crate::page::definitions;
use crate::page::edit;
use crate::page::events;
use crate::page::fields::FormFields;
use crate::page::layout::trouble;
use crate::page::layout::trouble_outside;
use crate::page::login;
use crate::page::message;
use crate::page::messages;
use crate::page::queues;
use crate::page::response::go_to;
use crate::page::review;
use crate::page::schedules;
use crate::page::shared::SharedPage;
use crate::page::shared::read_form;
use crate::page::tail;
use crate::page::topics;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::page::visitor::VisitorRefusal;
use crate::page::workflow;
use crate::page::workflows;
use crate::remote::RequestPath;

/// The routes of the page. All screens stand beside each other, so that links between them are one word.
pub(crate) fn routes(shared: SharedPage) -> Router {
    Router::new()
        .route("/", get(|| async { go_to("ui/") }))
        .route("/ui", get(|| async { go_to("ui/") }))
        .route("/ui/", look(home))
        .route("/ui/overview", look(queues::screen))
        .route("/ui/blocked", look(blocked::screen))
        .route("/ui/workflows", look(workflows::screen))
        .route("/ui/workflow", look(workflow::screen))
        .route("/ui/message", look(message::screen))
        .route("/ui/messages", look(messages::screen))
        .route("/ui/body", look(body::download))
        .route("/ui/edit", look(edit::screen))
        .route("/ui/dead-letters", look(dead_letters::screen))
        .route("/ui/schedules", look(schedules::screen))
        .route("/ui/definitions", look(definitions::screen))
        .route("/ui/topics", look(topics::screen))
        .route("/ui/topic", look(topics::detail))
        .route("/ui/audit", look(audit::screen))
        .route("/ui/tail", look(tail::screen))
        .route("/ui/cluster", look(cluster::screen))
        .route("/ui/events", look(events::stream))
        .route("/ui/review", look(review::screen).merge(act(review::screen)))
        .route("/ui/act", act(actions::carry_out))
        .route("/ui/login", post(login::login).get(|| async { go_to("./") }))
        .route("/ui/logout", post(login::logout).get(|| async { go_to("./") }))
        .route("/ui/assets/{name}", get(asset))
        .route("/ui/{*rest}", look(nothing_here))
        .with_state(shared)
}

/// Shows a screen to those who may look.
fn look<F>(screen: fn(Visit, FormFields) -> F) -> MethodRouter<SharedPage>
where
    F: Future<Output = PageResult> + Send + 'static,
{
    get(move |State(shared): State<SharedPage>, request: Request| async move {
        let (parts, _) = request.into_parts();
        let fields = FormFields::read(parts.uri.query().unwrap_or_default());
        match Visitor::admit(&shared, &parts).await {
            Ok(visitor) => {
                let seen = screen(visitor.clone(), fields).await;
                respond(&visitor, seen)
            }
            Err(outside) => turn_away(outside),
        }
    })
}

/// Takes a form, if it is one of ours.
fn act<F>(take: fn(Visit, FormFields) -> F) -> MethodRouter<SharedPage>
where
    F: Future<Output = PageResult> + Send + 'static,
{
    post(move |State(shared): State<SharedPage>, request: Request| async move {
        let (parts, body) = request.into_parts();
        let visitor = match Visitor::admit(&shared, &parts).await {
            Ok(visitor) => visitor,
            Err(outside) => return turn_away(outside),
        };
        let seen = async {
            let form = read_form(&shared, body).await?;
            let token = form.one("form_token").unwrap_or_default();
            match shared.sessions.is_own_form(&visitor.cookies.session, token) {
                true => take(visitor.clone(), form).await,
                false => Err(Box::new(foreign_form())),
            }
        };
        let seen = seen.await;
        respond(&visitor, seen)
    })
}

fn foreign_form() -> Problem {
    let detail = "the form was not made by this page for this browser, or the daemon has been started again since: \
                  nothing was done; go back, load the screen again and repeat it";
    Problem::new("forbidden", detail)
}

fn respond(visitor: &Visitor, seen: PageResult) -> Response {
    match seen {
        Ok(PageAnswer::Screen(screen)) => screen.respond(visitor),
        Ok(PageAnswer::Response(response)) => response,
        Err(problem) => trouble(visitor, &problem),
    }
}

fn turn_away(outside: VisitorRefusal) -> Response {
    match outside {
        VisitorRefusal::NeedsKey(cookies) => login::ask(&cookies, None),
        VisitorRefusal::ComesFromElsewhere => login::ask_again(),
        VisitorRefusal::Refused(problem) => trouble_outside(&problem),
    }
}

/// Where somebody begins: with what is stuck, if anything is.
async fn home(visitor: Visit, _: FormFields) -> PageResult {
    if visitor.blocked() > 0 {
        return Ok(go_to("blocked").into());
    }
    // What has got stuck a moment ago is not counted yet.
    let page: BlockedPage = visitor.api.get(&RequestPath::new("/v1/blocked").query("limit", Some(1))).await?;
    let place = if page.blocked.is_empty() { "overview" } else { "blocked" };
    Ok(go_to(place).into())
}

async fn nothing_here(_: Visit, _: FormFields) -> PageResult {
    Err(Box::new(Problem::new("route_not_found", "there is no such screen")))
}
