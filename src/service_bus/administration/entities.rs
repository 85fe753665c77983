//! Entities as they are there: found by their names, in any case.

use roxmltree::Node;

use crate::clock::Timestamp;
use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::sas::Right;
use crate::service_bus::administration::authorized::Access;
use crate::service_bus::administration::document;
use crate::service_bus::administration::fields::Said;
use crate::service_bus::administration::fields::since;
use crate::service_bus::administration::host::Caller;
use crate::service_bus::administration::refused::Refused;
use crate::service_bus::administration::told::Known;
use crate::service_bus::description::Description;
use crate::service_bus::entity::Found;
use crate::service_bus::shared::Shared;

/// Says of a name that clients cannot have it.
fn own(name: &str) -> Refused {
    Refused::bad(format!("{name} is the daemon's own"))
}

/// A request, and what it takes to answer it.
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) access: &'a Access,
    pub(crate) caller: &'a Caller,
    /// Whether it changes what is there (`If-Match`), instead of making it.
    pub(crate) is_change: bool,
}

impl Call<'_> {
    /// The queue or topic of a name, if there is one.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Found>, Refused> {
        // Also before it is there.
        if QueueName::new(name).is_ok_and(|name| !(self.shared.is_open)(&name)) {
            return Err(own(name));
        }
        let found = self.shared.find(name).await?;
        match &found {
            Some(Found::Queue(view)) if !(self.shared.is_open)(&view.name) => Err(own(name)),
            _ => Ok(found),
        }
    }

    /// The topic of a name.
    pub(crate) async fn topic(&self, name: &str) -> Result<TopicView, Refused> {
        match self.find(name).await? {
            Some(Found::Topic(topic)) => Ok(*topic),
            _ => Err(Refused::not_found("topic", name)),
        }
    }

    /// The subscription of a name, and its queue.
    pub(crate) async fn subscription(
        &self,
        topic: &TopicView,
        name: &str,
    ) -> Result<(SubscriptionName, QueueView), Refused> {
        let alike = |known: &&SubscriptionName| known.as_str().eq_ignore_ascii_case(name);
        let names = topic.subscriptions.iter().map(|subscription| &subscription.name);
        let found = names.clone().find(|known| known.as_str() == name).or_else(|| names.clone().find(alike));
        let found = found.ok_or_else(|| Refused::not_found("subscription", name))?;
        let queue = self.shared.client.topic(&topic.name)?.subscription(found)?;
        Ok((found.clone(), queue.view().await?))
    }

    /// Takes what a document says of an entity, as far as the version of its client has words for it.
    pub(crate) fn take(&self, said: &mut Said, element: Node<'_, '_>) -> Result<(), Refused> {
        let newer = document::elements(element).find_map(|child| {
            let field = child.tag_name().name();
            let since = since(field)?;
            (!self.caller.knows(since) && !document::text(child).is_empty()).then_some((field, since))
        });
        match newer {
            Some((field, since)) => Err(Refused::bad(format!(
                "{field} is of version {since} of the API, and this request is of version {}",
                self.caller.version()
            ))),
            None => said.take(element),
        }
    }

    /// What was said of a queue.
    pub(crate) fn said(&self, view: &QueueView) -> Said {
        let description = self.shared.descriptions.of(&view.name, view.created_at);
        Said { options: view.options.clone(), description: (*description).clone() }
    }

    /// What was said of a topic, as if it had a queue.
    pub(crate) fn said_of_topic(&self, topic: &TopicView) -> Said {
        let description = self.shared.descriptions.of(&topic.name, topic.created_at);
        let mut said = Said { description: (*description).clone(), ..Said::new() };
        said.recall();
        said
    }

    pub(crate) fn known(&self, view: &QueueView) -> Known<'_> {
        Known {
            said: self.said(view),
            counts: view.counts,
            created_at: view.created_at,
            topic: None,
            caller: self.caller,
        }
    }

    pub(crate) fn known_topic<'a>(&'a self, topic: &'a TopicView) -> Known<'a> {
        Known {
            said: self.said_of_topic(topic),
            counts: Default::default(),
            created_at: topic.created_at,
            topic: Some(topic),
            caller: self.caller,
        }
    }

    /// Refuses to change what a file defines.
    pub(crate) fn check_undefined(&self, name: &QueueName) -> Result<(), Refused> {
        match (self.shared.defined)(name) {
            Some(file) => Err(Refused::is_defined(name.as_str(), &file)),
            None => Ok(()),
        }
    }

    /// Checks where an entity would forward to: what is there, and where who asks may send.
    pub(crate) async fn check_forwarding(&self, name: &str, said: &Said) -> Result<(), Refused> {
        let Description { forward_to, forward_dead_letters_to, .. } = &said.description;
        for target in [forward_to, forward_dead_letters_to].into_iter().flatten() {
            self.access.check(Right::Send, target)?;
            if self.find(target).await?.is_none() {
                return Err(Refused::bad(format!(
                    "{name} cannot forward to {target}: there is no such entity"
                )));
            }
        }
        Ok(())
    }

    /// Says something of an entity while it is being made. If it cannot be made, nothing is said of the next of its name.
    pub(crate) async fn describe_while<T, E: Into<Refused>>(
        &self,
        (name, said): (&QueueName, &Said),
        making: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Refused> {
        // First what is said of it: without the entity nobody sees that.
        self.describe(name, (said, None)).await?;
        match making.await {
            Ok(made) => Ok(made),
            Err(error) => {
                self.shared.descriptions.describe(name, &Description::default()).await?;
                Err(error.into())
            }
        }
    }

    /// Says something of an entity.
    pub(crate) async fn describe(
        &self,
        name: &QueueName,
        (said, of): (&Said, Option<Timestamp>),
    ) -> Result<(), Refused> {
        let now = self.shared.clock.now();
        let description = Description { of, updated_at: Some(now), ..said.description.clone() };
        Ok(self.shared.descriptions.describe(name, &description).await?)
    }
}
