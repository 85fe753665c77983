//! Who looks at a screen, what they may do, and what their screens have in common.

use std::sync::Arc;

use http::header;
use http::request::Parts;

use crate::api::Problem;
use crate::api::QueuePage;
use crate::api::views::KeyView;
use crate::api::views::StatusView;
use crate::inbound::connection::OverTls;
use crate::page::api::Api;
use crate::page::api::ApiRefusal;
use crate::page::present::Present;
use crate::page::sessions::Lifetime;
use crate::page::shared::SharedPage;
use crate::remote::RequestPath;

/// Who looks. Cheap to clone.
pub(crate) type Visit = Arc<Visitor>;

/// Who looks at a screen.
pub(crate) struct Visitor {
    pub(crate) api: Api,
    /// The key and its rights; those of some queue, if not of all.
    pub(crate) key: KeyView,
    pub(crate) status: StatusView,
    /// The token of the forms.
    pub(crate) form_token: String,
    pub(crate) present: Present,
    /// What has just been done, to be shown once.
    pub(crate) notice: Option<String>,
    pub(crate) cookies: Cookies,
    /// Whether it is a session in which a key was shown that lets the visitor in.
    is_signed_in: bool,
}

/// The session of a request, and how cookies are set for it.
#[derive(Clone)]
pub(crate) struct Cookies {
    shared: SharedPage,
    /// The ID of the session; made anew for who had none.
    pub(crate) session: String,
    is_new: bool,
    is_secure: bool,
}

/// Why somebody is not let in.
pub(crate) enum VisitorRefusal {
    /// A key has to be shown first.
    NeedsKey(Cookies),
    /// The browser came from another site, and so did not send its cookie: it has to ask again by itself.
    ComesFromElsewhere,
    /// Something else.
    Refused(ApiRefusal),
}

impl Cookies {
    /// The session of a request, or a new one.
    pub(crate) fn of(shared: &SharedPage, parts: &Parts) -> Result<Cookies, ApiRefusal> {
        let is_proxied_over_tls =
            parts.headers.get("x-forwarded-proto").is_some_and(|protocol| protocol.as_bytes() == b"https");
        let is_secure = is_proxied_over_tls || parts.extensions.get::<OverTls>().is_some();
        let sent = shared.sessions.cookie(&parts.headers, "session").filter(|id| id.len() == 64);
        let is_new = sent.is_none();
        let session = sent.or_else(|| shared.sessions.fresh_id()).ok_or_else(no_chance)?;
        Ok(Cookies { shared: shared.clone(), session, is_new, is_secure })
    }

    /// A cookie with something to show once.
    pub(crate) fn notice(&self, text: &str) -> String {
        self.shared.sessions.set_cookie("notice", text, Lifetime::Seconds(60), self.is_secure)
    }

    pub(crate) fn no_notice(&self) -> String {
        self.shared.sessions.set_cookie("notice", "", Lifetime::Seconds(0), self.is_secure)
    }

    /// The cookie of the session, if the browser has none yet.
    pub(crate) fn if_new(&self) -> Option<String> {
        self.is_new.then(|| self.of_session(&self.session))
    }

    pub(crate) fn of_session(&self, id: &str) -> String {
        self.shared.sessions.set_cookie("session", id, Lifetime::Browser, self.is_secure)
    }

    pub(crate) fn form_token(&self) -> Result<String, ApiRefusal> {
        self.shared.sessions.form_token(&self.session).ok_or_else(no_chance)
    }
}

fn no_chance() -> ApiRefusal {
    Box::new(Problem::new("busy", "the system gives no random numbers"))
}

impl Visitor {
    /// Lets somebody in who may look.
    pub(crate) async fn admit(shared: &SharedPage, parts: &Parts) -> Result<Visit, VisitorRefusal> {
        let cookies = Cookies::of(shared, parts).map_err(VisitorRefusal::Refused)?;
        let key = shared.sessions.key_of(&cookies.session);
        let api = Api::of(&shared.api, parts, key.as_deref());
        let rights = api.get::<KeyView>(&RequestPath::new("/v1/key")).await;
        let rights = match rights {
            Ok(rights) => rights,
            Err(problem) if problem.status == 401 && comes_from_elsewhere(parts) => {
                return Err(VisitorRefusal::ComesFromElsewhere);
            }
            Err(problem) if problem.status == 401 => return Err(VisitorRefusal::NeedsKey(cookies)),
            Err(problem) => return Err(VisitorRefusal::Refused(problem)),
        };
        let status = api.get(&RequestPath::new("/v1/status")).await.map_err(VisitorRefusal::Refused)?;
        let notice = shared.sessions.cookie(&parts.headers, "notice").filter(|text| !text.is_empty());
        Ok(Arc::new(Visitor {
            api,
            key: rights,
            status,
            form_token: cookies.form_token().map_err(VisitorRefusal::Refused)?,
            present: Present(shared.clock.now()),
            notice,
            cookies,
            is_signed_in: key.is_some(),
        }))
    }

    /// Whether the visitor may still see what was opened for them: until they sign out, or their session ends otherwise.
    pub(crate) fn is_still_here(&self) -> bool {
        let Cookies { shared, session, .. } = &self.cookies;
        !self.is_signed_in || shared.sessions.key_of(session).is_some()
    }

    /// The names of the first queues there are, and of the one that is looked at, for who chooses one.
    pub(crate) async fn queue_names(&self, current: Option<&str>) -> Result<Vec<String>, ApiRefusal> {
        let route = RequestPath::new("/v1/queues").query("limit", Some(200));
        let page: QueuePage = self.api.get(&route).await?;
        let mut names: Vec<String> = page.queues.into_iter().map(|queue| queue.name).collect();
        // A form that does not name it would go on with another queue.
        if let Some(current) = current.filter(|current| names.iter().all(|name| name != current)) {
            names.push(current.to_owned());
        }
        Ok(names)
    }

    /// Whether the visitor may operate on a queue.
    pub(crate) async fn may_manage(&self, queue: &str) -> bool {
        if !self.key.is_needed || !self.may_manage_some() {
            return self.may_manage_some();
        }
        let route = RequestPath::new("/v1/key").query("queue", Some(queue));
        self.api.get::<KeyView>(&route).await.is_ok_and(|key| has(&key, "manage"))
    }

    /// Whether the visitor may operate on any queue at all.
    pub(crate) fn may_manage_some(&self) -> bool {
        has(&self.key, "manage")
    }

    /// Whether the visitor may do what belongs to no queue.
    pub(crate) fn may_manage_all(&self) -> bool {
        self.may_manage_some() && self.key.reaches_all
    }

    /// How many workflows do not go on.
    pub(crate) fn blocked(&self) -> u64 {
        self.status.blocked_for(None, None)
    }
}

fn has(key: &KeyView, right: &str) -> bool {
    key.rights.iter().any(|own| own == right)
}

/// Whether a link on another site was followed; a cookie that is meant for our own site is not sent then.
fn comes_from_elsewhere(parts: &Parts) -> bool {
    let site = parts.headers.get("sec-fetch-site").map(|site| site.as_bytes());
    site == Some(b"cross-site") && !parts.headers.contains_key(header::COOKIE)
}
