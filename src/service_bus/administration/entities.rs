//! Entities as they are there: found by their names, in any case.

use std::error::Error;

use roxmltree::Node;

use crate::clock::Timestamp;
use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::error::OperationError;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::service_bus::administration::authorized::AdminAccess;
use crate::service_bus::administration::document;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::fields::since;
use crate::service_bus::administration::host::Caller;
use crate::service_bus::administration::properties::EntityProperties;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::description::Description;
use crate::service_bus::entity::QueueOrTopic;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::slashed::entity_name;

/// Says of a name that clients cannot have it.
fn own(name: &str) -> AdminRefusal {
    AdminRefusal::bad(format!("{name} is the daemon's own"))
}

/// A request, and what it takes to answer it.
pub(crate) struct AdminCall<'a> {
    pub(crate) shared: &'a EndpointState,
    pub(crate) access: &'a AdminAccess,
    pub(crate) caller: &'a Caller,
    /// Whether it changes what is there (`If-Match`), instead of making it.
    pub(crate) is_change: bool,
}

/// A subscription that is there.
pub(crate) struct AdminSubscription {
    pub(crate) topic: QueueName,
    pub(crate) name: SubscriptionName,
    /// Its queue.
    pub(crate) queue: QueueView,
}

impl AdminCall<'_> {
    /// The queue or topic of a name, if there is one.
    async fn find(&self, name: &str) -> Result<Option<QueueOrTopic>, AdminRefusal> {
        // Also before it is there.
        if QueueName::new(name).is_ok_and(|name| !(self.shared.is_open)(&name)) {
            return Err(own(name));
        }
        let found = self.shared.find(name).await?;
        match &found {
            Some(QueueOrTopic::Queue(view)) if !(self.shared.is_open)(&view.name) => Err(own(name)),
            _ => Ok(found),
        }
    }

    /// The queue or topic of a name, if there is one; refused if who asks may not manage it, whatever its case is.
    pub(crate) async fn managed(&self, name: &str) -> Result<Option<QueueOrTopic>, AdminRefusal> {
        let found = self.find(name).await?;
        self.access.check_manages(found.as_ref().map_or(name, QueueOrTopic::name), name)?;
        Ok(found)
    }

    /// The topic of a name, of which who asks may manage everything.
    pub(crate) async fn managed_topic(&self, name: &str) -> Result<TopicView, AdminRefusal> {
        match self.managed(name).await? {
            Some(QueueOrTopic::Topic(topic)) => Ok(*topic),
            _ => Err(AdminRefusal::not_found("topic", name)),
        }
    }

    /// The subscription of a name, of a topic of which who asks may manage everything.
    pub(crate) async fn managed_subscription(
        &self,
        topic: &str,
        name: &str,
    ) -> Result<AdminSubscription, AdminRefusal> {
        self.subscription(&self.managed_topic(topic).await?, name).await
    }

    /// The subscription of a name.
    pub(crate) async fn subscription(
        &self,
        topic: &TopicView,
        name: &str,
    ) -> Result<AdminSubscription, AdminRefusal> {
        let found = named(&topic.subscriptions, name, |subscription| subscription.name.as_str());
        let found = &found.ok_or_else(|| AdminRefusal::not_found("subscription", name))?.name;
        let queue = self.shared.client.topic(&topic.name)?.subscription(found)?;
        Ok(AdminSubscription { topic: topic.name.clone(), name: found.clone(), queue: queue.view().await? })
    }

    /// Takes what a document says of an entity, as far as the version of its client has words for it.
    pub(crate) fn take(
        &self,
        settings: &mut EntitySettings,
        element: Node<'_, '_>,
    ) -> Result<(), AdminRefusal> {
        let newer = document::elements(element).find_map(|child| {
            let field = child.tag_name().name();
            let since = since(field)?;
            (!self.caller.knows(since) && !document::text(child).is_empty()).then_some((field, since))
        });
        match newer {
            Some((field, since)) => Err(AdminRefusal::bad(format!(
                "{field} is of version {since} of the API, and this request is of version {}",
                self.caller.version()
            ))),
            None => settings.take(element),
        }
    }

    /// The description of a queue.
    pub(crate) fn settings(&self, view: &QueueView) -> EntitySettings {
        let description = self.shared.descriptions.of(&view.name, view.into());
        EntitySettings { options: view.options.clone(), description: (*description).clone() }
    }

    /// The description of a topic, as if it had a queue.
    pub(crate) fn settings_of_topic(&self, topic: &TopicView) -> EntitySettings {
        let description = self.shared.descriptions.of(&topic.name, topic.into());
        let mut settings = EntitySettings { description: (*description).clone(), ..EntitySettings::new() };
        settings.recall();
        settings
    }

    pub(crate) fn known(&self, view: &QueueView) -> EntityProperties<'_> {
        EntityProperties {
            settings: self.settings(view),
            counts: view.counts,
            created_at: view.created_at,
            topic: None,
            caller: self.caller,
        }
    }

    pub(crate) fn known_topic<'a>(&'a self, topic: &'a TopicView) -> EntityProperties<'a> {
        EntityProperties {
            settings: self.settings_of_topic(topic),
            counts: Default::default(),
            created_at: topic.created_at,
            topic: Some(topic),
            caller: self.caller,
        }
    }

    /// Refuses to change what is said of an entity while a partition is stopped: which of its name it is is not sure then.
    pub(crate) fn check_whole(&self, view: &QueueView) -> Result<(), AdminRefusal> {
        match view.missing_partitions.first() {
            Some(partition) => Err(AdminRefusal::busy(format!(
                "{} is not changed while partition {partition} of the cluster is stopped",
                entity_name(view.name.as_str())
            ))),
            None => Ok(()),
        }
    }

    /// Checks where an entity would forward to: what is there, and where who asks may send. An administration client hears the name as
    /// it said it.
    pub(crate) async fn check_forwarding(
        &self,
        name: &str,
        settings: &EntitySettings,
    ) -> Result<(), AdminRefusal> {
        let Description { forward_to, forward_dead_letters_to, .. } = &settings.description;
        for target in [forward_to, forward_dead_letters_to].into_iter().flatten() {
            let found = self.find(target).await?;
            let entity = found.as_ref().map_or(target.as_str(), QueueOrTopic::name);
            self.access.check_sends(self.shared, entity, target)?;
            if found.is_none() {
                let refusal = format!("{name} cannot forward to {target}: there is no such entity");
                return Err(AdminRefusal::bad(refusal));
            }
        }
        Ok(())
    }

    /// Describes an entity while it is being made. If it is not made, the description does not stay for the next of its name.
    pub(crate) async fn describe_while<T, R: Error + 'static>(
        &self,
        (name, settings): (&QueueName, &EntitySettings),
        making: impl Future<Output = Result<T, OperationError<R>>>,
    ) -> Result<T, AdminRefusal>
    where
        AdminRefusal: From<OperationError<R>>,
    {
        // First its description: without the entity nobody sees it.
        self.describe(name, (settings, None)).await?;
        match making.await {
            Ok(made) => Ok(made),
            Err(error) if error.may_be_done() => Err(error.into()),
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
        (settings, of): (&EntitySettings, Option<Timestamp>),
    ) -> Result<(), AdminRefusal> {
        let now = self.shared.clock.now();
        let description = Description { of, updated_at: Some(now), ..settings.description.clone() };
        Ok(self.shared.descriptions.describe(name, &description).await?)
    }
}

/// The one of a name; if there is none, one whose name is alike but for case.
pub(crate) fn named<'k, T>(known: &'k [T], name: &str, name_of: impl Fn(&T) -> &str) -> Option<&'k T> {
    let exact = known.iter().find(|one| name_of(one) == name);
    exact.or_else(|| known.iter().find(|one| name_of(one).eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::QueueError;
    use crate::error::QueueRefusal;
    use crate::error::Unavailable;
    use crate::inbound::live_value::LiveValue;
    use crate::intake::Intake;
    use crate::service_bus::creation_instant::CreationInstant;
    use crate::service_bus::meters::Meters;
    use crate::service_bus::shared::Owners;

    #[tokio::test]
    async fn what_may_have_been_made_keeps_what_was_said_of_it() {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let (intake, keys) = (Intake::new(engine.client().clone()), LiveValue::default());
        let shared =
            EndpointState::new(intake, Owners::nobody(), Arc::new(clock), Meters::default(), keys, false);
        shared.descriptions.open().await.unwrap();
        let caller = Caller::of(&http::Request::new(()).into_parts().0);
        let access = AdminAccess::Local;
        let call = AdminCall { shared: &shared, access: &access, caller: &caller, is_change: false };
        let mut settings = EntitySettings::new();
        settings.description.requires_session = true;
        let name = QueueName::new("q").unwrap();
        for (error, stays) in [
            (QueueError::from(Unavailable::Unanswered("the node has gone".to_owned())), true),
            (QueueError::from(Unavailable::Busy), false),
            (QueueError::Refused(QueueRefusal::QueueExists(name.clone())), false),
        ] {
            let making = async { Err::<(), _>(error) };
            assert!(call.describe_while((&name, &settings), making).await.is_err());
            let view = engine.client().create_queue(&name, Default::default()).await.unwrap().view().await;
            let description = shared.descriptions.of(&name, CreationInstant::from(&view.unwrap()));
            assert_eq!(description.requires_session, stays);
            engine.client().delete_queue(&name).await.unwrap();
        }
        engine.close().await;
    }
}
