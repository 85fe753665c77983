//! Which request is answered how.

use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::header;

use crate::sas::Right;
use crate::service_bus::administration::atom::Entry;
use crate::service_bus::administration::atom::instant;
use crate::service_bus::administration::authorized::Access;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::Call;
use crate::service_bus::administration::host::Caller;
use crate::service_bus::administration::listing;
use crate::service_bus::administration::listing::Page;
use crate::service_bus::administration::path::Target;
use crate::service_bus::administration::queues;
use crate::service_bus::administration::refused::Answer;
use crate::service_bus::administration::refused::Refused;
use crate::service_bus::administration::rules;
use crate::service_bus::administration::subscriptions;
use crate::service_bus::administration::topics;
use crate::service_bus::entity::Found;
use crate::service_bus::shared::Shared;

/// Answers a request of an administration client.
pub(crate) async fn respond(shared: &Shared, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let caller = Caller::of(&parts);
    let is_change = parts.headers.contains_key(header::IF_MATCH);
    let answer = async {
        let access = Access::of(shared, &parts)?;
        let target = Target::read(parts.uri.path())?;
        let call = Call { shared, access: &access, caller: &caller, is_change };
        match parts.method {
            Method::GET => call.get(&target, &parts.uri).await,
            Method::PUT => call.put(&target, document::whole(shared, body).await?).await,
            Method::DELETE => call.delete(&target).await,
            _ => Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "use GET, PUT or DELETE")),
        }
    };
    answer.await.unwrap_or_else(|refused: Refused| {
        tracing::debug!(
            status = refused.status.as_u16(),
            detail = refused.detail,
            "refuse a request of an administration client"
        );
        refused.into_response()
    })
}

impl Call<'_> {
    fn may_manage(&self, name: &str) -> Result<(), Refused> {
        self.access.check(Right::Manage, name)
    }

    async fn get(&self, target: &Target, uri: &Uri) -> Answer {
        match target {
            Target::Namespace => Ok(self.namespace()),
            Target::Queues => listing::all_queues(self, Page::of(uri)?).await,
            Target::Topics => listing::all_topics(self, Page::of(uri)?).await,
            Target::Entity(name) => {
                self.may_manage(name)?;
                match self.find(name).await? {
                    Some(Found::Queue(view)) => Ok(queues::tell(self, &view, StatusCode::OK)),
                    Some(Found::Topic(topic)) => Ok(topics::tell(self, &topic, StatusCode::OK)),
                    None => Err(Refused::not_found("queue or topic", name)),
                }
            }
            Target::Subscriptions(topic) => {
                self.may_manage(topic)?;
                listing::all_subscriptions(self, &self.topic(topic).await?, Page::of(uri)?).await
            }
            Target::Subscription(topic, name) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                let (name, queue) = self.subscription(&topic, name).await?;
                Ok(subscriptions::tell(self, (&topic, &name, &queue), StatusCode::OK))
            }
            Target::Rules(topic, name) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                let (name, queue) = self.subscription(&topic, name).await?;
                let of = rules::Of { topic: &topic, name: &name, queue: &queue };
                listing::all_rules(self, &of, Page::of(uri)?).await
            }
            Target::Rule(topic, name, rule) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                let (name, queue) = self.subscription(&topic, name).await?;
                rules::Of { topic: &topic, name: &name, queue: &queue }.show(self, rule).await
            }
        }
    }

    async fn put(&self, target: &Target, text: String) -> Answer {
        // Who looks at what is there, and changes it, does so alone.
        let _alone = self.shared.administering.lock().await;
        match target {
            Target::Namespace
            | Target::Queues
            | Target::Topics
            | Target::Subscriptions(_)
            | Target::Rules(..) => Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "a list is not written")),
            Target::Entity(name) => {
                self.may_manage(name)?;
                self.put_entity(name, &text).await
            }
            Target::Subscription(topic, name) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                match (self.subscription(&topic, name).await, self.is_change) {
                    (Ok((name, queue)), true) => {
                        subscriptions::change(self, (&topic, &name, &queue), &text).await
                    }
                    (Ok((name, _)), false) => Err(Refused::exists("subscription", name.as_str())),
                    (Err(refused), false) if refused.status == StatusCode::NOT_FOUND => {
                        subscriptions::create(self, &topic, name, &text).await
                    }
                    (Err(refused), _) => Err(refused),
                }
            }
            Target::Rule(topic, name, rule) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                let (name, queue) = self.subscription(&topic, name).await?;
                rules::Of { topic: &topic, name: &name, queue: &queue }.put(self, rule, &text).await
            }
        }
    }

    /// Which kind it is, the document says.
    async fn put_entity(&self, name: &str, text: &str) -> Answer {
        let is_topic = document::read(text, topics::ELEMENT, |_| Ok(())).is_ok();
        match (self.find(name).await?, self.is_change) {
            (Some(Found::Queue(view)), true) if !is_topic => queues::change(self, &view, text).await,
            (Some(Found::Topic(topic)), true) if is_topic => topics::change(self, &topic, text).await,
            (_, true) => Err(Refused::not_found(if is_topic { "topic" } else { "queue" }, name)),
            (Some(Found::Queue(view)), false) => Err(Refused::exists("queue", view.name.as_str())),
            (Some(Found::Topic(topic)), false) => Err(Refused::exists("topic", topic.name.as_str())),
            (None, false) if is_topic => topics::create(self, name, text).await,
            (None, false) => queues::create(self, name, text).await,
        }
    }

    async fn delete(&self, target: &Target) -> Answer {
        let _alone = self.shared.administering.lock().await;
        match target {
            Target::Namespace
            | Target::Queues
            | Target::Topics
            | Target::Subscriptions(_)
            | Target::Rules(..) => {
                return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "a list is not deleted"));
            }
            Target::Entity(name) => {
                self.may_manage(name)?;
                match self.find(name).await? {
                    Some(Found::Queue(view)) => queues::delete(self, &view).await?,
                    Some(Found::Topic(topic)) => topics::delete(self, &topic).await?,
                    None => return Err(Refused::not_found("queue or topic", name)),
                }
            }
            Target::Subscription(topic, name) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                let (_, queue) = self.subscription(&topic, name).await?;
                subscriptions::delete(self, &queue).await?;
            }
            Target::Rule(topic, name, rule) => {
                self.may_manage(topic)?;
                let topic = self.topic(topic).await?;
                let (name, queue) = self.subscription(&topic, name).await?;
                rules::Of { topic: &topic, name: &name, queue: &queue }.remove(self, rule).await?;
            }
        }
        Ok(Response::new(Body::empty()))
    }

    /// What the namespace is: this daemon, whose tier no client needs to know.
    fn namespace(&self) -> Response {
        let now = self.shared.clock.now();
        let name = self.caller.namespace();
        let entry = Entry {
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
