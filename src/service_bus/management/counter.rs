//! Where requests are taken, and given to who answers them.

use std::sync::Arc;

use bytes::Bytes;

use crate::amqp::LinkId;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::service_bus::address::EntityAddress;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::entity::Entity;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Node;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::deleting;
use crate::service_bus::management::locks;
use crate::service_bus::management::looking;
use crate::service_bus::management::replies::ManagementReply;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::management::rules;
use crate::service_bus::management::scheduling;
use crate::service_bus::management::sessions;
use crate::service_bus::management::tokens;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;

/// Where a request came from, and where its answer goes.
#[derive(Clone, Copy)]
struct ReplyRoute {
    asked_over: LinkId,
    reply_link: LinkId,
}

impl ConnectionTask {
    /// Answers a request.
    pub(crate) fn take_request(&mut self, link: LinkId, node: &Node, payload: &Bytes) {
        if let Some(EndpointLink::Requests(requests)) = self.links.get_mut(&link) {
            requests.unanswered += 1;
        }
        let request = match ManagementRequest::read(payload) {
            Ok(request) => request,
            // What cannot be read cannot be answered: nobody knows whom.
            Err(malformed) => return self.detach(link, malformed.into()),
        };
        let Some(reply_link) = self.reply_link(link, node, &request) else {
            tracing::debug!(operation = request.operation, "a request has no link for its answer");
            return self.note_answered(link);
        };
        let route = ReplyRoute { asked_over: link, reply_link };
        match node {
            Node::Tokens => {
                let accepted = self.take_token(&request);
                self.answer_token(route, (request, payload.len()), accepted);
            }
            Node::Management(entity) => self.manage(route, Entity::clone(entity), request, payload.len()),
        }
    }

    /// The link over which a request is answered: called as the request says, or else of the same AMQP session and node.
    fn reply_link(&self, link: LinkId, node: &Node, request: &ManagementRequest) -> Option<LinkId> {
        let is_of_node = |address: &EntityAddress| match (node, address) {
            (Node::Tokens, EntityAddress::Tokens) => true,
            (Node::Management(entity), EntityAddress::Management(path)) => {
                (path.is_dead_letters, path.is_transfer) == (entity.is_dead_letters, entity.is_transfer)
                    && path.queue.eq_ignore_ascii_case(entity.name().as_str())
            }
            _ => false,
        };
        let mut found: Option<(bool, bool, bool, LinkId)> = None;
        for (id, candidate) in &self.links {
            let EndpointLink::Replies(replies) = candidate else { continue };
            let is_named = request.reply_to.is_some()
                && replies.target.as_ref().map(|target| target.as_str()) == request.reply_to.as_deref();
            let is_beside = id.channel() == link.channel();
            let is_of_node = is_of_node(&replies.node);
            if is_named || (is_of_node && is_beside) {
                // What is named is better than what is only of the same node: an SDK has its two links in two sessions.
                // The last is better than one before.
                found = found.max(Some((is_named, is_of_node, is_beside, *id)));
            }
        }
        found.map(|(_, _, _, id)| id)
    }

    /// Answers who has shown a token. One for an entity that does not exist is refused: its client would take the refusal of
    /// a link for a lost connection, and try for ever.
    fn answer_token(
        &mut self,
        route: ReplyRoute,
        (request, bytes): (ManagementRequest, usize),
        accepted: Result<(), AmqpRefusal>,
    ) {
        let name = lookup(&request.application, "name").and_then(Value::as_str).unwrap_or_default();
        let path = match (accepted, EntityAddress::read(name)) {
            (Ok(()), EntityAddress::Entity(path) | EntityAddress::Management(path))
                if !path.queue.is_empty() =>
            {
                path
            }
            (accepted, _) => return self.reply(route, tokens::answer(&request, accepted)),
        };
        let shared = self.shared.clone();
        self.sending_bytes += bytes;
        self.start(async move {
            let found = shared.entity(&path).await.map(drop);
            move |connection_task: &mut ConnectionTask| {
                connection_task.sending_bytes -= bytes;
                // Who has no right for a queue of that name does not hear whether there is one.
                let found = if connection_task.may_know(&path.queue) { found } else { Ok(()) };
                connection_task.reply(route, tokens::answer(&request, found));
            }
        });
    }

    fn manage(&mut self, route: ReplyRoute, entity: Entity, request: ManagementRequest, bytes: usize) {
        if let Err(refusal) = request.check().and_then(|()| self.may_manage(&entity, &request)) {
            return self.reply(route, ManagementAnswer::refused(&refusal).encode(&request));
        }
        let session = match &request.session_id {
            Some(id) if request.needs_session() => match self.session(&entity, id) {
                Ok(session) => Some(session),
                Err(refusal) => {
                    return self.reply(route, ManagementAnswer::refused(&refusal).encode(&request));
                }
            },
            _ => None,
        };
        let shared = self.shared.clone();
        self.sending_bytes += bytes;
        self.start(async move {
            let answer = operate(&shared, &entity, session.as_ref(), &request).await;
            let answer = answer.unwrap_or_else(|refusal| {
                tracing::debug!(%refusal, operation = request.operation, "refuse a request");
                ManagementAnswer::refused(&refusal)
            });
            let payload = answer.encode(&request);
            move |connection_task: &mut ConnectionTask| {
                connection_task.sending_bytes -= bytes;
                connection_task.give_answer(route, &request, answer, payload);
            }
        });
    }

    /// Sends an answer, or says why it cannot be sent: what it hands out is given back then.
    fn give_answer(
        &mut self,
        route: ReplyRoute,
        request: &ManagementRequest,
        answer: ManagementAnswer,
        payload: Bytes,
    ) {
        let ManagementAnswer { handed_out, deletes, .. } = answer;
        if request.operation() == "update-disposition" {
            self.feed_sessions();
        }
        if let Err(refusal) = self.check_answer(route.reply_link, payload.len()) {
            self.shared.give_back_all(&handed_out);
            return self.reply(route, ManagementAnswer::refused(&refusal).encode(request));
        }
        let (asked_over, deletes) = (route.asked_over, if deletes { handed_out } else { Vec::new() });
        let lock_lost = match deletes.is_empty() {
            true => Bytes::new(),
            false => ManagementAnswer::refused(&AmqpRefusal::lock_lost()).encode(request),
        };
        let reply = ManagementReply { asked_over, payload, deletes, lock_lost };
        self.reply_with(route.reply_link, reply);
    }

    /// Refuses an answer that is larger than its client takes, or for which there is no room.
    fn check_answer(&self, reply_link: LinkId, bytes: usize) -> Result<(), AmqpRefusal> {
        let bytes_max = self.amqp.message_bytes_max(reply_link);
        if bytes as u64 > bytes_max {
            let refusal =
                format!("the answer has {bytes} bytes, and its link takes at most {bytes_max}: ask for less");
            return Err(AmqpRefusal::new(condition::SIZE_EXCEEDED, refusal));
        }
        match self.has_room_for_reply(bytes) {
            true => Ok(()),
            false => Err(AmqpRefusal::new(condition::SERVER_BUSY, "too many answers wait to be taken")),
        }
    }

    /// Sends an answer in which there is nothing to delete.
    fn reply(&mut self, route: ReplyRoute, payload: Bytes) {
        let (asked_over, deletes, lock_lost) = (route.asked_over, Vec::new(), Bytes::new());
        let reply = ManagementReply { asked_over, payload, deletes, lock_lost };
        self.reply_with(route.reply_link, reply);
    }
}

/// Does what a request asks for.
async fn operate(
    shared: &EndpointState,
    entity: &Entity,
    held: Option<&Arc<HeldSession>>,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let session = held.map(|session| &**session);
    match request.operation() {
        "schedule-message" => scheduling::schedule(shared, entity, request).await,
        "cancel-scheduled-message" => scheduling::cancel(shared, entity, request).await,
        _ if entity.topic.is_some() => {
            let refusal = "over the management of a topic messages are scheduled and cancelled, and nothing else is done";
            Err(AmqpRefusal::new(condition::NOT_IMPLEMENTED, refusal))
        }
        "add-rule" => rules::add(shared, entity, request).await,
        "remove-rule" => rules::remove(shared, entity, request).await,
        "enumerate-rules" => rules::list(shared, entity, request).await,
        "renew-lock" => locks::renew(shared, entity, request).await,
        "update-disposition" => locks::update_disposition(shared, entity, request).await,
        "receive-by-sequence-number" => locks::receive_deferred(shared, entity, held, request).await,
        "batch-delete-messages" => deleting::delete(shared, entity, session, request).await,
        "peek-message" => looking::peek(entity, request).await,
        "get-message-sessions" => looking::sessions(entity, request).await,
        "renew-session-lock" => sessions::renew(session).await,
        "get-session-state" => sessions::state(entity, session).await,
        "set-session-state" => sessions::set_state(entity, session, request).await,
        other => {
            let description = format!("the operation {other:?} is not implemented");
            Err(AmqpRefusal::new(condition::NOT_IMPLEMENTED, description))
        }
    }
}
