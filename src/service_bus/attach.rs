//! What a client wants a link for, and whether it gets it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::amqp::Attach;
use crate::amqp::LinkAnswer;
use crate::amqp::LinkId;
use crate::amqp::Role;
use crate::amqp::SenderSettles;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::limits;
use crate::sas::Right;
use crate::service_bus::accept::SessionChoice;
use crate::service_bus::accept::accept;
use crate::service_bus::address::EntityAddress;
use crate::service_bus::address::EntityPath;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::description::EntityStatus;
use crate::service_bus::entity::Entity;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Node;
use crate::service_bus::links::Receiver;
use crate::service_bus::links::Requests;
use crate::service_bus::links::SessionWait;
use crate::service_bus::management::replies::Replies;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::rights;
use crate::service_bus::selection;
use crate::service_bus::selection::SESSION_FILTER;
use crate::service_bus::sender::Sender;

/// The property that says how large a batch may be.
const BATCH_BYTES_MAX: &str = "com.microsoft:max-message-batch-size";

/// The property that names the entity to which messages are passed on that are sent by way of another.
const DESTINATION: &str = "com.microsoft:transfer-destination-address";

/// The property that says how long a client waits for a session.
const TIMEOUT: &str = "com.microsoft:timeout";

impl ConnectionTask {
    pub(crate) fn attach(&mut self, link: LinkId, attach: Attach) {
        self.links.insert(link, EndpointLink::Pending(None));
        if let Err(refusal) = self.check_attach(&attach) {
            return self.refuse(link, refusal);
        }
        match attach.role {
            Role::Sender => self.attach_sender(link, attach),
            Role::Receiver => self.attach_receiver(link, attach),
        }
    }

    /// Refuses what would keep much of whoever reaches the port.
    fn check_attach(&self, attach: &Attach) -> Result<(), AmqpRefusal> {
        let refused = |refusal| Err(AmqpRefusal::new(condition::RESOURCE_LIMIT, refusal));
        let most = limits::SERVICE_BUS_STRANGER_LINKS_MAX;
        if self.is_stranger() && self.links.len() > most {
            return refused(format!("a connection that has shown no token has at most {most} links"));
        }
        let source = attach.source.as_ref().and_then(|source| source.address.as_ref());
        let target = attach.target.as_ref().and_then(|target| target.address.as_ref());
        let most = limits::SERVICE_BUS_ADDRESS_BYTES_MAX;
        match source.into_iter().chain(target).any(|address| address.len() > most) {
            true => refused(format!("an address has at most {most} bytes")),
            false => Ok(()),
        }
    }

    pub(crate) fn refuse(&mut self, link: LinkId, refusal: AmqpRefusal) {
        tracing::debug!(%refusal, "refuse a link");
        self.amqp.refuse_link(link, refusal.into());
        self.remove_link(link);
    }

    /// Whether a link still waits for an answer.
    pub(crate) fn is_pending(&self, link: LinkId) -> bool {
        matches!(self.links.get(&link), Some(EndpointLink::Pending(_)))
    }

    /// The client sends.
    fn attach_sender(&mut self, link: LinkId, attach: Attach) {
        let target = attach.target.as_ref();
        if target.is_some_and(|target| target.coordinator) {
            self.links.insert(link, EndpointLink::Coordinator);
            return self.amqp.accept_link(link, small_requests(&attach));
        }
        // What is sent by way of another entity is sent at once: nothing comes between the two.
        let destination = lookup(&attach.properties, DESTINATION).and_then(Value::as_str);
        let Some(address) = destination.or(target.and_then(|target| target.address.as_deref())) else {
            return self
                .refuse(link, AmqpRefusal::new(condition::NOT_IMPLEMENTED, "a sender names its queue"));
        };
        match EntityAddress::read(address) {
            EntityAddress::Tokens => self.accept_requests(link, &attach, Node::Tokens),
            EntityAddress::Management(path) => {
                self.resolve(
                    link,
                    (path, (Right::Listen, rights::MANAGEMENT)),
                    move |connection_task, entity| match connection_task.may_attach_management(&entity) {
                        Ok(()) => {
                            connection_task.accept_requests(link, &attach, Node::Management(Box::new(entity)))
                        }
                        Err(refusal) => connection_task.refuse(link, refusal),
                    },
                );
            }
            EntityAddress::Entity(path) if path.is_dead_letters => {
                let refusal = AmqpRefusal::new(condition::NOT_ALLOWED, "nobody sends to dead letters");
                self.refuse(link, refusal);
            }
            EntityAddress::Entity(path) => {
                self.resolve(link, (path, (Right::Send, "")), move |connection_task, entity| {
                    connection_task.accept_sender(link, &attach, entity);
                })
            }
        }
    }

    /// Looks for an entity, and goes on when it is found and the link is still wanted.
    fn resolve(
        &mut self,
        link: LinkId,
        (path, wanted): (EntityPath, rights::RequiredGrant),
        found: impl FnOnce(&mut ConnectionTask, Entity) + Send + 'static,
    ) {
        let shared = self.shared.clone();
        self.start(async move {
            let entity = shared.entity(&path).await;
            move |connection_task: &mut ConnectionTask| match entity {
                _ if !connection_task.is_pending(link) => {}
                Ok(entity) => found(connection_task, entity),
                Err(refusal) => connection_task.refuse(link, connection_task.unfound(&path, wanted, refusal)),
            }
        });
    }

    fn accept_requests(&mut self, link: LinkId, attach: &Attach, node: Node) {
        let answer = match node {
            Node::Tokens => small_requests(attach),
            Node::Management(_) => LinkAnswer::to(attach).credit(limits::SERVICE_BUS_REQUEST_CREDIT),
        };
        self.links.insert(link, EndpointLink::Requests(Requests { node, unanswered: 0 }));
        self.amqp.accept_link(link, answer);
    }

    fn accept_sender(&mut self, link: LinkId, attach: &Attach, entity: Entity) {
        let capabilities = attach.target.as_ref().map_or(&[][..], |target| &target.capabilities);
        if entity.topic.is_none() && capabilities.iter().any(selection::is_of_topics) {
            return self.refuse(link, selection::no_topic(entity.name().as_str()));
        }
        let sends = entity.check_takes_messages().and_then(|()| self.may(&entity, Right::Send));
        let sends = sends.and_then(|()| {
            self.shared.descriptions.check_status((entity.name(), entity.created_at), EntityStatus::may_send)
        });
        if let Err(refusal) = sends {
            return self.refuse(link, refusal);
        }
        let bytes_max = entity.message_bytes_max().min(limits::SERVICE_BUS_MESSAGE_BYTES_MAX);
        let mut answer = LinkAnswer {
            message_bytes_max: Some(bytes_max),
            message_bytes_beyond: limits::SERVICE_BUS_BATCH_BYTES_BEYOND,
            ..LinkAnswer::to(attach).credit(limits::SERVICE_BUS_SEND_CREDIT)
        };
        answer.properties.push((Value::symbol(BATCH_BYTES_MAX), Value::Ulong(bytes_max)));
        self.links.insert(link, EndpointLink::Sender(Sender::new(entity)));
        self.amqp.accept_link(link, answer);
    }

    /// The client receives.
    fn attach_receiver(&mut self, link: LinkId, mut attach: Attach) {
        let source = attach.source.as_ref();
        let Some(address) = source.and_then(|source| source.address.as_deref()) else {
            return self
                .refuse(link, AmqpRefusal::new(condition::NOT_IMPLEMENTED, "a receiver names its queue"));
        };
        match EntityAddress::read(address) {
            node @ (EntityAddress::Tokens | EntityAddress::Management(_)) => {
                let target = attach.target.as_ref().and_then(|target| target.address.clone());
                self.links.insert(link, EndpointLink::Replies(Replies::new(node, target)));
                self.amqp.accept_link(link, LinkAnswer::to(&attach));
            }
            EntityAddress::Entity(path) => match selection::judge(&mut attach) {
                Err(refusal) => self.refuse(link, refusal),
                Ok(()) => self.resolve(link, (path, (Right::Listen, "")), move |connection_task, entity| {
                    connection_task.attach_to_messages(link, attach, entity);
                }),
            },
        }
    }

    fn attach_to_messages(&mut self, link: LinkId, attach: Attach, entity: Entity) {
        if let Err(refusal) = self.may_receive(&entity) {
            return self.refuse(link, refusal);
        }
        if selection::browses(&attach) {
            return self.attach_browser(link, &attach, entity);
        }
        let filter = attach.source.as_ref().map_or(&[][..], |source| &source.filter);
        let Some(wanted) = lookup(filter, SESSION_FILTER) else {
            if entity.requires_session() && !entity.is_dead_letters {
                let refusal = "the queue requires sessions: take one, or the next";
                return self.refuse(link, AmqpRefusal::new(condition::NOT_ALLOWED, refusal));
            }
            return self.accept_receiver(link, &attach, entity);
        };
        if !entity.has_sessions() {
            let refusal = AmqpRefusal::new(condition::NOT_ALLOWED, "the queue has no sessions");
            return self.refuse(link, refusal);
        }
        let wait_ms = lookup(&attach.properties, TIMEOUT).and_then(Value::as_u64);
        let wait = wait_ms.map_or(limits::SERVICE_BUS_SESSION_WAIT, Duration::from_millis);
        let wanted = match wanted.undescribed().as_str() {
            Some(id) => SessionChoice::Named(id.to_owned()),
            None => SessionChoice::Next(wait.min(limits::SERVICE_BUS_SESSION_WAIT_MAX)),
        };
        // What waits for long is what is answered, and no more of what was asked.
        let answer = LinkAnswer::to(&attach);
        drop(attach);
        let (shared, unwanted) = (self.shared.clone(), CancellationToken::new());
        let wait = SessionWait { entity: entity.clone(), _unwanted: unwanted.clone().drop_guard() };
        self.links.insert(link, EndpointLink::Pending(Some(Box::new(wait))));
        self.wait_for(async move {
            let session = accept(&shared, &entity, wanted, &unwanted).await;
            move |connection_task: &mut ConnectionTask| match session {
                // Dropped, it is given back.
                _ if !connection_task.is_pending(link) => {}
                // Whoever has waited for long may not be allowed any more what it was when it began.
                Ok(session) => match connection_task.may_receive(&entity) {
                    Ok(()) => connection_task.accept_session(link, answer, entity, session),
                    Err(refusal) => connection_task.refuse(link, refusal),
                },
                Err(refusal) => connection_task.refuse(link, refusal),
            }
        });
    }

    /// Refuses a receiver that has no right, or where nobody receives now.
    fn may_receive(&self, entity: &Entity) -> Result<(), AmqpRefusal> {
        self.may(entity, Right::Listen)?;
        let (descriptions, named) = (&self.shared.descriptions, (entity.name(), entity.created_at));
        descriptions.check_status(named, EntityStatus::may_receive)?;
        let refusal = if entity.topic.is_some() {
            "nobody receives from a topic: receive from one of its subscriptions"
        } else if !entity.is_dead_letters && descriptions.of(named.0, named.1).forward_to.is_some() {
            "nobody receives from an entity that forwards: receive where its messages go"
        } else {
            return Ok(());
        };
        Err(AmqpRefusal::new(condition::NOT_ALLOWED, refusal))
    }

    fn accept_receiver(&mut self, link: LinkId, attach: &Attach, entity: Entity) {
        let deletes = attach.sender_settles == SenderSettles::Settled;
        let window = (!deletes).then(|| Arc::new(self.shared.window(&entity)));
        let answer = LinkAnswer::to(attach);
        let mut receiver = Receiver::new(entity, deletes, None, self.backlogs.backlog());
        receiver.window = window;
        self.links.insert(link, EndpointLink::Receiver(Box::new(receiver)));
        self.amqp.accept_link(link, answer);
    }
}

/// The answer to a link over which short requests come, perhaps of nobody who has a right.
fn small_requests(attach: &Attach) -> LinkAnswer {
    LinkAnswer {
        message_bytes_max: Some(limits::SERVICE_BUS_SMALL_REQUEST_BYTES_MAX),
        ..LinkAnswer::to(attach).credit(limits::SERVICE_BUS_REQUEST_CREDIT)
    }
}
