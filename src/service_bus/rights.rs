//! What a connection may do: what the tokens allow that it has shown, each until it ends.

use std::collections::BTreeMap;

use crate::amqp::LinkId;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::clock::Timestamp;
use crate::limits;
use crate::sas::Right;
use crate::sas::Rights;
use crate::service_bus::address::Address;
use crate::service_bus::entity::Entity;
use crate::service_bus::links::Link;
use crate::service_bus::links::Node;
use crate::service_bus::management::request::Request;
use crate::service_bus::refusal::Refusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::talk::Talk;

/// The tokens of a connection, by the path each was shown for.
#[derive(Default)]
pub(crate) struct Grants {
    by_path: BTreeMap<String, Rights>,
}

impl Grants {
    /// Whether one of them allows something of a queue now.
    fn allows(&self, right: Right, path: &str, queue: &str, now: Timestamp) -> bool {
        self.by_path.iter().any(|(above, rights)| {
            let is_below = match path.strip_prefix(above.as_str()) {
                Some(rest) => above.is_empty() || rest.is_empty() || rest.starts_with('/'),
                None => false,
            };
            is_below && rights.until > now && rights.allows(right, queue)
        })
    }
}

impl Talk {
    /// Takes a token. Without keys, whoever reaches the endpoint may do everything.
    pub(crate) fn take_token(&mut self, request: &Request) -> Result<(), Refusal> {
        let Some(signatures) = &self.shared.signatures else { return Ok(()) };
        let unauthorized = |why: String| Refusal::new(condition::UNAUTHORIZED, why);
        let resource = lookup(&request.application, "name").and_then(Value::as_str).unwrap_or_default();
        let token = request.text("value").ok_or_else(|| unauthorized("the body is no token".to_owned()))?;
        let now = self.shared.clock.now();
        let rights =
            signatures.check(token, resource, now).map_err(|refusal| unauthorized(refusal.to_string()))?;
        if self.grants.by_path.len() >= limits::SERVICE_BUS_TOKENS_MAX {
            self.grants.by_path.retain(|_, rights| rights.until > now);
        }
        if self.grants.by_path.len() >= limits::SERVICE_BUS_TOKENS_MAX {
            return Err(unauthorized("the connection has shown too many tokens".to_owned()));
        }
        let lasts = rights.until.since(now);
        self.grants.by_path.insert(Address::path(resource), rights);
        let client = self.shared.client.clone();
        self.start(async move {
            let _ = client.sleep(lasts).await;
            |talk: &mut Talk| talk.end_unauthorized()
        });
        Ok(())
    }

    /// Whether the connection may do something with an entity.
    pub(crate) fn may(&self, entity: &Entity, right: Right) -> Result<(), Refusal> {
        if self.shared.signatures.is_none() {
            return Ok(());
        }
        let queue = entity.name().as_str();
        let mut path = queue.to_ascii_lowercase();
        if entity.is_dead_letters {
            path.push_str("/$deadletterqueue");
        }
        match self.grants.allows(right, &path, queue, self.shared.clock.now()) {
            true => Ok(()),
            false => {
                let why = format!("no token of this connection allows to {} on {path}", right.as_str());
                Err(Refusal::new(condition::UNAUTHORIZED, why))
            }
        }
    }

    /// What an operation of the management asks for.
    pub(crate) fn may_manage(&self, entity: &Entity, request: &Request) -> Result<(), Refusal> {
        match request.operation() {
            "schedule-message" | "cancel-scheduled-message" => self.may(entity, Right::Send),
            _ => self.may(entity, Right::Listen),
        }
    }

    /// Ends links whose tokens have ended.
    fn end_unauthorized(&mut self) {
        let is_over = |link: &Link| match link {
            Link::Sender(sender) => self.may(&sender.entity, Right::Send).err(),
            Link::Receiver(receiver) => self.may(&receiver.entity, Right::Listen).err(),
            Link::Requests(requests) => match &requests.node {
                Node::Tokens => None,
                Node::Management(entity) => {
                    self.may(entity, Right::Listen).or_else(|_| self.may(entity, Right::Send)).err()
                }
            },
            Link::Pending | Link::Replies(_) => None,
        };
        let over: Vec<(LinkId, Refusal)> =
            self.links.iter().filter_map(|(id, link)| Some((*id, is_over(link)?))).collect();
        over.into_iter().for_each(|(link, refusal)| self.detach(link, refusal));
    }
}
