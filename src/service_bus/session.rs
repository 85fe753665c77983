//! Sessions: workflows that a receiver has accepted.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::amqp::Attach;
use crate::amqp::LinkAnswer;
use crate::amqp::LinkId;
use crate::amqp::SenderSettles;
use crate::amqp::Value;
use crate::clock::Timestamp;
use crate::engine::AcceptedWorkflow;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::entity::Entity;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Receiver;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::selection;
use crate::service_bus::shared::EndpointState;

/// The property that says until when a session is locked, in ticks of .NET.
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";

/// Ticks of .NET (100 ns since year 1) at the Unix epoch.
const TICKS_AT_EPOCH: i64 = 621_355_968_000_000_000;

/// Which session a receiver wants.
pub(crate) enum SessionChoice {
    Named(String),
    /// The next that has work, waiting for one so long.
    Next(Duration),
}

/// A session that a link holds.
pub(crate) struct HeldSession {
    pub(crate) id: String,
    pub(crate) accepted: AcceptedWorkflow,
    /// Milliseconds; renewals move it.
    locked_until: AtomicU64,
}

impl HeldSession {
    pub(crate) fn locked_until(&self) -> Timestamp {
        Timestamp::from_millis(self.locked_until.load(Ordering::Relaxed))
    }

    pub(crate) fn note_renewal(&self, until: Timestamp) {
        self.locked_until.store(until.as_millis(), Ordering::Relaxed);
    }
}

/// Takes a session.
pub(crate) async fn accept(
    shared: &EndpointState,
    entity: &Entity,
    wanted: SessionChoice,
) -> Result<HeldSession, AmqpRefusal> {
    let accepted = match wanted {
        SessionChoice::Named(id) => match entity.queue.accept_workflow(&id).await {
            Ok(accepted) => accepted,
            Err(ReceiveError::Refused(ReceiveRefusal::WorkflowLocked)) => {
                let description = format!("session {id:?} is locked by another receiver");
                return Err(AmqpRefusal::new(condition::SESSION_CANNOT_BE_LOCKED, description));
            }
            Err(error) => return Err(error.into()),
        },
        SessionChoice::Next(wait) => {
            let next = tokio::select! {
                next = entity.queue.accept_next_workflow(wait) => next?,
                () = shared.stopping.cancelled() => None,
            };
            next.ok_or_else(|| AmqpRefusal::new(condition::TIMEOUT, "no session has work"))?
        }
    };
    accepted.settle_apart().await?;
    let id = accepted.workflow_id().map(ToString::to_string).unwrap_or_default();
    let locked_until = AtomicU64::new(accepted.locked_until().as_millis());
    Ok(HeldSession { id, accepted, locked_until })
}

/// An instant in ticks of .NET.
fn ticks(at: Timestamp) -> i64 {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    TICKS_AT_EPOCH.saturating_add(millis.saturating_mul(10_000))
}

impl ConnectionTask {
    pub(crate) fn accept_session(
        &mut self,
        link: LinkId,
        attach: &Attach,
        entity: Entity,
        session: HeldSession,
    ) {
        let mut answer =
            LinkAnswer { message_bytes_max: Some(entity.message_bytes_max()), ..LinkAnswer::to(attach) };
        if let Some(source) = &mut answer.source {
            selection::name_session(&mut source.filter, &session.id);
        }
        let until = Value::Long(ticks(session.locked_until()));
        answer.properties.push((Value::symbol(LOCKED_UNTIL), until));
        let session = Arc::new(session);
        let deletes = attach.sender_settles == SenderSettles::Settled;
        let receiver = Receiver::new(entity, deletes, Some(session.clone()));
        self.links.insert(link, EndpointLink::Receiver(receiver));
        self.amqp.accept_link(link, answer);
        self.watch_session(link, &session);
    }

    /// Tells the receiver when its session is lost.
    fn watch_session(&mut self, link: LinkId, session: &Arc<HeldSession>) {
        let client = self.shared.client.clone();
        let session = Arc::downgrade(session);
        self.wait_for(async move {
            while let Some(until) = session.upgrade().map(|session| session.locked_until()) {
                let left = until.since(client.wall_now());
                if left.is_zero() || client.sleep(left).await.is_err() {
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
