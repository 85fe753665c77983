//! Sessions: workflows that a receiver has accepted.

use std::sync::Arc;

use crate::amqp::LinkAnswer;
use crate::amqp::LinkId;
use crate::amqp::SenderSettles;
use crate::amqp::Value;
use crate::clock::Timestamp;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::dotnet_value::TICKS_AT_EPOCH;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Receiver;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::selection;

/// The property that says until when a session is locked, in ticks of .NET.
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";

/// An instant in ticks of .NET.
fn ticks(at: Timestamp) -> i64 {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    TICKS_AT_EPOCH.saturating_add(millis.saturating_mul(10_000))
}

impl ConnectionTask {
    pub(crate) fn accept_session(
        &mut self,
        link: LinkId,
        mut answer: LinkAnswer,
        entity: Entity,
        session: HeldSession,
    ) {
        if let Some(source) = &mut answer.source {
            selection::name_session(&mut source.filter, &session.id);
        }
        let until = Value::Long(ticks(session.accepted.locked_until()));
        answer.properties.push((Value::symbol(LOCKED_UNTIL), until));
        let session = Arc::new(session);
        let deletes = answer.sender_settles == SenderSettles::Settled;
        let receiver = Receiver::new(entity, deletes, Some(session.clone()), self.backlogs.backlog());
        self.links.insert(link, EndpointLink::Receiver(Box::new(receiver)));
        self.amqp.accept_link(link, answer);
        self.watch_session(link, &session);
    }

    /// Tells the receiver when its session is lost.
    fn watch_session(&mut self, link: LinkId, session: &Arc<HeldSession>) {
        let client = self.shared.client.clone();
        let session = Arc::downgrade(session);
        self.wait_for(async move {
            while let Some(ends_at) = session.upgrade().map(|session| session.ends_at()) {
                if ends_at <= client.elapsed() || client.sleep_until(ends_at).await.is_err() {
                    break;
                }
            }
            move |connection_task: &mut ConnectionTask| {
                if connection_task.receiver(link).is_some() {
                    connection_task.detach(link, AmqpRefusal::session_lock_lost());
                }
            }
        });
    }

    /// The session of this connection with an ID.
    pub(crate) fn session(&self, entity: &Entity, id: &str) -> Result<Arc<HeldSession>, AmqpRefusal> {
        let held = self.links.values().find_map(|link| match link {
            EndpointLink::Receiver(receiver) if receiver.entity.name() == entity.name() => {
                receiver.session.as_ref().filter(|session| session.id == id)
            }
            _ => None,
        });
        held.cloned().ok_or_else(AmqpRefusal::session_lock_lost)
    }
}
