//! What all screens have in common: the head, the navigation, notices, and how errors are shown.

use axum::response::Response;
use http::StatusCode;
use maud::DOCTYPE;
use maud::Markup;
use maud::html;

use crate::api::Problem;
use crate::api::foreign_text::visible;
use crate::page::assets::NAMES;
use crate::page::fields::FormFields;
use crate::page::response;
use crate::page::visitor::Visitor;

/// A screen.
pub(crate) struct Screen {
    pub(crate) title: String,
    pub(crate) tab: Tab,
    pub(crate) content: Markup,
    /// Whether it shows what changes by itself.
    pub(crate) is_live: bool,
}

/// Where in the navigation a screen stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Overview,
    Topics,
    Blocked,
    Workflows,
    DeadLetters,
    Schedules,
    Definitions,
    Audit,
    Tail,
    Cluster,
}

impl Tab {
    const ALL: [(Tab, &'static str, &'static str); 10] = [
        (Tab::Blocked, "blocked", "Blocked"),
        (Tab::Overview, "overview", "Overview"),
        (Tab::Topics, "topics", "Topics"),
        (Tab::Workflows, "workflows", "Workflows"),
        (Tab::DeadLetters, "dead-letters", "Dead letters"),
        (Tab::Schedules, "schedules", "Schedules"),
        (Tab::Definitions, "definitions", "Definitions"),
        (Tab::Audit, "audit", "Audit"),
        (Tab::Tail, "tail", "Live tail"),
        (Tab::Cluster, "cluster", "Cluster"),
    ];

    fn is_for(self, visitor: &Visitor) -> bool {
        match self {
            Tab::Audit => visitor.status.cluster.is_none() && visitor.may_manage_all(),
            Tab::Cluster => visitor.status.cluster.is_some() && visitor.may_manage_all(),
            _ => true,
        }
    }
}

impl Screen {
    /// A screen that shows what changes by itself.
    pub(crate) fn live(tab: Tab, title: impl Into<String>, content: Markup) -> Screen {
        Screen { title: title.into(), tab, content, is_live: true }
    }

    /// A screen that stays as it is, because somebody is filling it in.
    pub(crate) fn still(tab: Tab, title: impl Into<String>, content: Markup) -> Screen {
        Screen { title: title.into(), tab, content, is_live: false }
    }

    pub(crate) fn respond(self, visitor: &Visitor) -> Response {
        let html = html! {
            (head(&self.title, visitor.present.0.as_millis()))
            body {
                a.skip href="#main" { "Skip to the content" }
                (bar(visitor, Some(self.tab)))
                main #main tabindex="-1" data-live[self.is_live] {
                    (standing(visitor))
                    (self.content)
                }
                (foot(visitor))
            }
        };
        let answer = response::page(StatusCode::OK, html.into_string());
        let answer = response::with_cookie(answer, visitor.cookies.if_new());
        let seen = visitor.notice.as_ref().map(|_| visitor.cookies.no_notice());
        response::with_cookie(answer, seen)
    }
}

/// An error, shown to a visitor who may look.
pub(crate) fn trouble(visitor: &Visitor, problem: &Problem) -> Response {
    let html = html! {
        (head(&problem.title, visitor.present.0.as_millis()))
        body {
            a.skip href="#main" { "Skip to the content" }
            (bar(visitor, None))
            main #main tabindex="-1" { (describe(problem)) p { a.button href="./" { "Back to what is blocked" } } }
            (foot(visitor))
        }
    };
    response::page(status_of(problem), html.into_string())
}

/// An error, shown to a visitor who has not signed in.
pub(crate) fn trouble_outside(problem: &Problem) -> Response {
    let html = html! {
        (head(&problem.title, 0))
        body { main.alone #main { h1.brand { "seriatim" } (describe(problem)) } }
    };
    response::page(status_of(problem), html.into_string())
}

fn status_of(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn describe(problem: &Problem) -> Markup {
    html! {
        div.notice.bad role="alert" {
            h1 { (problem.title) }
            p { (visible(&problem.detail, true)) }
            @if let Some(field) = &problem.field { p.quiet { "Field: " code { (visible(field, false)) } } }
            p.quiet { "Code: " code { (problem.code) } }
        }
    }
}

/// The head of every screen.
pub(crate) fn head(title: &str, now_ms: u64) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-now=(now_ms);
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (visible(title, false)) " \u{b7} seriatim" }
            link rel="icon" href={ "assets/" (NAMES.icon) } type="image/svg+xml";
            link rel="stylesheet" href={ "assets/" (NAMES.style) };
            script type="module" src={ "assets/" (NAMES.script) } {}
        }
    }
}

fn bar(visitor: &Visitor, here: Option<Tab>) -> Markup {
    let blocked = visitor.blocked();
    html! {
        header.bar {
            a.brand href="./" { (mark()) "seriatim" }
            @if let Some(environment) = &visitor.status.environment {
                span.environment.(environment.colour.as_str()) { span.sr { "Environment: " } (visible(&environment.name, false)) }
            }
            nav aria-label="Screens" {
                @for (tab, place, name) in Tab::ALL {
                    @if tab.is_for(visitor) {
                        a href=(place) aria-current=[(here == Some(tab)).then_some("page")] {
                            (name)
                            @if tab == Tab::Blocked && blocked > 0 {
                                " " span.count #blocked-count { (blocked) span.sr { " workflows" } }
                            }
                        }
                    }
                }
            }
            div.who {
                span.live #live hidden role="status" { span.dot {} span { "Live" } }
                @if visitor.key.is_needed {
                    form method="post" action="logout" {
                        input type="hidden" name="form_token" value=(visitor.form_token);
                        span.quiet { (visible(&visitor.key.name, false)) } " "
                        button.plain type="submit" { "Sign out" }
                    }
                }
            }
        }
    }
}

/// The mark: three places in a line, the second of which is being worked on.
fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false" {
            rect x="1" y="9" width="6" height="6" rx="1.5" {}
            rect.hot x="9" y="9" width="6" height="6" rx="1.5" {}
            rect x="17" y="9" width="6" height="6" rx="1.5" {}
        }
    }
}

/// What everybody has to know, whatever they look at.
fn standing(visitor: &Visitor) -> Markup {
    let status = &visitor.status;
    html! {
        @if let Some(notice) = &visitor.notice {
            div.notice.good #notice role="status" { p { (visible(notice, false)) } }
        }
        @if let Some(fault) = &status.fault {
            div.notice.bad role="alert" { p { strong { "The engine has stopped. " } (visible(fault, true)) } }
        }
        @if status.state == "full" {
            div.notice.bad role="alert" {
                p { strong { "The disk is full. " } "Nothing is accepted; all else goes on." }
            }
        }
        @if let Some(problem) = &status.reload_problem {
            div.notice.warn {
                p { strong { "The definition files are not in use as they are now. " }
                    a href="definitions" { "See why" } span.sr { (visible(problem, false)) } }
            }
        }
    }
}

fn foot(visitor: &Visitor) -> Markup {
    html! {
        footer.foot {
            span { "seriatim " (visitor.status.version) " \u{b7} " (visitor.status.state) " \u{b7} since "
                (visitor.present.show(visitor.status.started_at)) }
            span { "Looking changes nothing." }
        }
    }
}

/// A row of words and numbers at the top of a screen.
pub(crate) fn heading(title: Markup, aside: Markup) -> Markup {
    html! { div.heading { h1 { (title) } div.aside { (aside) } } }
}

/// How many rows a list has, or how many of them this page shows, if there are others before it, as its fields say, or behind it.
pub(crate) fn count(rows: usize, of: &str, fields: &FormFields, has_next: bool) -> Markup {
    html! { (rows) " " (of) @if has_next || fields.one("after").is_some() { " on this page" } }
}

/// A link to the next page of a list.
pub(crate) fn more(route: Option<String>) -> Markup {
    html! { @if let Some(route) = route { p.more { a.button href=(route) rel="next" { "Next page" } } } }
}

/// A table that scrolls by itself where it is too wide, with its name for screen readers.
pub(crate) fn scrolling_table(name: &str, headings: &Markup, rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table {
                thead { tr { (headings) } }
                tbody { (rows) }
            }
        }
    }
}
