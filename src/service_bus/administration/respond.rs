//! Which request is answered how.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::header;

use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::atom::instant;
use crate::service_bus::administration::authorized::AdminAccess;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::host::Caller;
use crate::service_bus::administration::listing;
use crate::service_bus::administration::listing::ListPage;
use crate::service_bus::administration::path::AdminTarget;
use crate::service_bus::administration::queues;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::administration::subscriptions;
use crate::service_bus::administration::topics;
use crate::service_bus::entity::QueueOrTopic;
use crate::service_bus::shared::EndpointState;
use crate::task;

/// Answers a request of an administration client.
pub(crate) async fn respond(shared: &Arc<EndpointState>, request: Request) -> Response {
    let shared = shared.clone();
    // What has begun ends, also when its client has left: an entity that is described in part would be another's of its name.
    let answered = task::spawn(async move { answer(&shared, request).await });
    let answered = answered.await.unwrap_or_else(|_| {
        Err(AdminRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the request was not carried out"))
    });
    answered.unwrap_or_else(|refused| {
        tracing::debug!(
            status = refused.status.as_u16(),
            detail = refused.detail,
            "refuse a request of an administration client"
        );
        refused.into_response()
    })
}

async fn answer(shared: &EndpointState, request: Request) -> AdminResult {
    let (parts, body) = request.into_parts();
    let caller = Caller::of(&parts);
    let is_change = parts.headers.contains_key(header::IF_MATCH);
    let access = AdminAccess::of(shared, &parts)?;
    let target = AdminTarget::read(parts.uri.path())?;
    let call = AdminCall { shared, access: &access, caller: &caller, is_change };
    match parts.method {
        Method::GET => call.get(&target, &parts.uri).await,
        Method::PUT => call.put(&target, document::whole(shared, body).await?).await,
        Method::DELETE => call.delete(&target).await,
        _ => Err(AdminRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "use GET, PUT or DELETE")),
    }
}

impl AdminCall<'_> {
    async fn get(&self, target: &AdminTarget, uri: &Uri) -> AdminResult {
        match target {
            AdminTarget::Namespace => Ok(self.namespace()),
            AdminTarget::Queues => listing::all_queues(self, ListPage::of(uri)?).await,
            AdminTarget::Topics => listing::all_topics(self, ListPage::of(uri)?).await,
            AdminTarget::Entity(name) => match self.managed(name).await? {
                Some(QueueOrTopic::Queue(view)) => Ok(queues::answer_with(self, &view, StatusCode::OK)),
                Some(QueueOrTopic::Topic(topic)) => Ok(topics::answer_with(self, &topic, StatusCode::OK)),
                None => Err(AdminRefusal::not_found("queue or topic", name)),
            },
            AdminTarget::Subscriptions(topic) => {
                listing::all_subscriptions(self, &self.managed_topic(topic).await?, ListPage::of(uri)?).await
            }
            AdminTarget::Subscription(topic, name) => {
                let subscription = self.managed_subscription(topic, name).await?;
                Ok(subscription.answer_with(self, StatusCode::OK))
            }
            AdminTarget::Rules(topic, name) => {
                let subscription = self.managed_subscription(topic, name).await?;
                listing::all_rules(self, &subscription, ListPage::of(uri)?).await
            }
            AdminTarget::Rule(topic, name, rule) => {
                self.managed_subscription(topic, name).await?.show_rule(self, rule).await
            }
        }
    }

    async fn put(&self, target: &AdminTarget, text: String) -> AdminResult {
        // Who looks at what is there, and changes it, does so alone.
        let _alone = self.shared.administering.lock().await;
        match target {
            AdminTarget::Namespace
            | AdminTarget::Queues
            | AdminTarget::Topics
            | AdminTarget::Subscriptions(_)
            | AdminTarget::Rules(..) => {
                Err(AdminRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "a list is not written"))
            }
            AdminTarget::Entity(name) => self.put_entity(name, &text).await,
            AdminTarget::Subscription(topic, name) => {
                let topic = self.managed_topic(topic).await?;
                match (self.subscription(&topic, name).await, self.is_change) {
                    (Ok(subscription), true) => subscription.change(self, &topic, &text).await,
                    (Ok(found), false) => Err(AdminRefusal::exists("subscription", found.name.as_str())),
                    (Err(refused), false) if refused.status == StatusCode::NOT_FOUND => {
                        subscriptions::create(self, &topic, name, &text).await
                    }
                    (Err(refused), _) => Err(refused),
                }
            }
            AdminTarget::Rule(topic, name, rule) => {
                self.managed_subscription(topic, name).await?.put_rule(self, rule, &text).await
            }
        }
    }

    /// Which kind it is, the document says.
    async fn put_entity(&self, name: &str, text: &str) -> AdminResult {
        let is_topic = document::read(text, topics::ELEMENT, |_| Ok(())).is_ok();
        match (self.managed(name).await?, self.is_change) {
            (Some(QueueOrTopic::Queue(view)), true) if !is_topic => queues::change(self, &view, text).await,
            (Some(QueueOrTopic::Topic(topic)), true) if is_topic => topics::change(self, &topic, text).await,
            (_, true) => Err(AdminRefusal::not_found(if is_topic { "topic" } else { "queue" }, name)),
            (Some(QueueOrTopic::Queue(view)), false) => {
                Err(AdminRefusal::exists("queue", view.name.as_str()))
            }
            (Some(QueueOrTopic::Topic(topic)), false) => {
                Err(AdminRefusal::exists("topic", topic.name.as_str()))
            }
            (None, false) if is_topic => topics::create(self, name, text).await,
            (None, false) => queues::create(self, name, text).await,
        }
    }

    async fn delete(&self, target: &AdminTarget) -> AdminResult {
        let _alone = self.shared.administering.lock().await;
        match target {
            AdminTarget::Namespace
            | AdminTarget::Queues
            | AdminTarget::Topics
            | AdminTarget::Subscriptions(_)
            | AdminTarget::Rules(..) => {
                return Err(AdminRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "a list is not deleted"));
            }
            AdminTarget::Entity(name) => match self.managed(name).await? {
                Some(QueueOrTopic::Queue(view)) => queues::delete(self, &view).await?,
                Some(QueueOrTopic::Topic(topic)) => topics::delete(self, &topic).await?,
                None => return Err(AdminRefusal::not_found("queue or topic", name)),
            },
            AdminTarget::Subscription(topic, name) => {
                queues::delete(self, &self.managed_subscription(topic, name).await?.queue).await?;
            }
            AdminTarget::Rule(topic, name, rule) => {
                self.managed_subscription(topic, name).await?.remove_rule(self, rule).await?;
            }
        }
        Ok(Response::new(Body::empty()))
    }

    /// What the namespace is: this daemon, whose tier no client needs to know.
    fn namespace(&self) -> Response {
        let now = self.shared.clock.now();
        let name = self.caller.namespace();
        let entry = AtomEntry {
            title: name.into(),
            path: "$namespaceinfo".to_owned(),
            published: now,
            updated: now,
            element: "NamespaceInfo",
        };
        entry.answer(StatusCode::OK, self.caller, |xml| {
            xml.leaf("CreatedTime", &instant(now));
            xml.leaf("MessagingSKU", "Standard");
            xml.leaf("ModifiedTime", &instant(now));
            xml.leaf("Name", name);
            xml.leaf("NamespaceType", "Messaging");
        })
    }
}
