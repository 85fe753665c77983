//! What a connection may do: what the tokens allow that it has shown, each until it ends.

use tokio_util::sync::CancellationToken;

use crate::amqp::LinkId;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::inbound::live_value::ValueChanges;
use crate::limits;
use crate::sas::Keys;
use crate::sas::Right;
use crate::service_bus::address::EntityAddress;
use crate::service_bus::address::EntityPath;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::entity::Entity;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::links::Node;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::slashed::entity_name;

/// The mechanism by which a client says the name of a key, and its text.
pub(crate) const PLAIN: &str = "PLAIN";

/// Below which path of an entity its management is.
pub(crate) const MANAGEMENT: &str = "/$management";

/// What a link is for: the right that it needs, and below which path of its entity.
pub(crate) type RequiredGrant = (Right, &'static str);

impl ConnectionTask {
    /// Answers who a client says it is. Where there are keys, one that names a key and says its text may what the key
    /// allows; one that says another is sent away. The other mechanisms say nothing: tokens come later.
    pub(crate) fn take_sasl(&mut self, mechanism: &str, response: &[u8]) {
        let Some(signatures) = self.shared.signatures().filter(|_| mechanism == PLAIN) else {
            return self.amqp.answer_sasl(true);
        };
        let mut parts = response.splitn(3, |byte| *byte == 0).skip(1);
        let (name, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let rights = std::str::from_utf8(name).ok().and_then(|name| signatures.check_text(name, text));
        self.amqp.answer_sasl(rights.is_some());
        self.grants.of_key = rights;
    }

    /// Takes a token. Without keys, whoever reaches the endpoint may do everything.
    pub(crate) fn take_token(&mut self, request: &ManagementRequest) -> Result<(), AmqpRefusal> {
        let Some(signatures) = self.shared.signatures() else { return Ok(()) };
        let unauthorized = |why: String| AmqpRefusal::new(condition::UNAUTHORIZED, why);
        let resource = lookup(&request.application, "name").and_then(Value::as_str).unwrap_or_default();
        let token = request.text("value").ok().flatten();
        let token = token.ok_or_else(|| unauthorized("the body is no token".to_owned()))?;
        let now = self.shared.clock.now();
        let rights =
            signatures.check(token, resource, now).map_err(|refusal| unauthorized(refusal.to_string()))?;
        let (by_path, path) = (&mut self.grants.by_path, EntityAddress::path(resource));
        // One that takes the place of another needs no room.
        if by_path.len() >= limits::SERVICE_BUS_TOKENS_MAX && !by_path.contains_key(&path) {
            by_path.retain(|_, rights| rights.until > now);
            if by_path.len() >= limits::SERVICE_BUS_TOKENS_MAX {
                return Err(unauthorized("the connection has shown too many tokens".to_owned()));
            }
        }
        by_path.insert(path, rights);
        self.watch_grants();
        Ok(())
    }

    /// Sees to it that somebody looks when the first of the tokens ends. One sleep is enough for all of them: clients show new
    /// ones again and again, long before the old ones end.
    fn watch_grants(&mut self) {
        let now = self.shared.clock.now();
        let Some(first) = self.grants.first_end(now) else { return };
        if self.grants.watched_until.as_ref().is_some_and(|(until, _)| *until <= first) {
            return;
        }
        let (client, replaced) = (self.shared.client.clone(), CancellationToken::new());
        // The guard of the sleep before ends it.
        self.grants.watched_until = Some((first, replaced.clone().drop_guard()));
        self.wait_for(async move {
            let woken = replaced.run_until_cancelled(client.sleep(first.since(now))).await;
            move |connection_task: &mut ConnectionTask| {
                // Neither when an earlier end is waited for instead, nor when the engine has ended.
                if matches!(woken, Some(Ok(()))) {
                    connection_task.grants.watched_until = None;
                    connection_task.end_unauthorized();
                    connection_task.watch_grants();
                }
            }
        });
    }

    /// Sees to it that what the connection was granted is judged again whenever there are other keys.
    pub(crate) fn watch_keys(&mut self, mut changes: ValueChanges<Keys>) {
        self.wait_for(async move {
            let changed = changes.changed().await;
            move |connection_task: &mut ConnectionTask| {
                if changed.is_err() {
                    return;
                }
                if let Some(keys) = connection_task.shared.keys.load() {
                    connection_task.grants.judge_by(&keys);
                }
                connection_task.stranger_since_ms = elapsed_ms(&*connection_task.shared.clock);
                connection_task.end_unauthorized();
                connection_task.watch_keys(changes);
            }
        });
    }

    /// Whether the connection may do something with an entity.
    pub(crate) fn may(&self, entity: &Entity, right: Right) -> Result<(), AmqpRefusal> {
        self.may_at(entity, right, "")
    }

    /// Whether it may do something over the management links of an entity: clients show tokens for these alone.
    fn may_over_management(&self, entity: &Entity, right: Right) -> Result<(), AmqpRefusal> {
        self.may_at(entity, right, MANAGEMENT)
    }

    fn may_at(&self, entity: &Entity, right: Right, below: &str) -> Result<(), AmqpRefusal> {
        if self.shared.keys.load().is_none() {
            return Ok(());
        }
        let queue = entity.name().as_str();
        let path = path_of(queue, (entity.is_dead_letters, entity.is_transfer), below);
        match self.grants.allows(right, &path, queue, self.shared.clock.now()) {
            true => Ok(()),
            false => Err(no_right(right, &path)),
        }
    }

    /// Refuses the management links of an entity to whom nothing there is allowed.
    pub(crate) fn may_attach_management(&self, entity: &Entity) -> Result<(), AmqpRefusal> {
        let listens = self.may_over_management(entity, Right::Listen);
        listens.or_else(|refusal| self.may_over_management(entity, Right::Send).map_err(|_| refusal))
    }

    /// Whether there are keys, and nobody has shown yet that he knows one.
    pub(crate) fn is_stranger(&self) -> bool {
        self.grants.is_empty() && self.shared.keys.load().is_some()
    }

    /// Whether it may learn that there is no queue of a name: who has no right for it is refused as if there were one.
    pub(crate) fn may_know(&self, queue: &str) -> bool {
        self.shared.keys.load().is_none() || self.grants.reaches(queue, self.shared.clock.now())
    }

    /// The refusal for an entity that cannot be found.
    pub(crate) fn unfound(
        &self,
        path: &EntityPath,
        (right, below): RequiredGrant,
        refusal: AmqpRefusal,
    ) -> AmqpRefusal {
        match refusal.condition == condition::NOT_FOUND && !self.may_know(&path.queue) {
            true => no_right(right, &path_of(&path.queue, (path.is_dead_letters, path.is_transfer), below)),
            false => refusal,
        }
    }

    /// What an operation of the management asks for.
    pub(crate) fn may_manage(&self, entity: &Entity, request: &ManagementRequest) -> Result<(), AmqpRefusal> {
        match request.operation() {
            "schedule-message" | "cancel-scheduled-message" => self.may_over_management(entity, Right::Send),
            // Rules too: who receives from a subscription says which messages it is for, as in Service Bus.
            _ => self.may_over_management(entity, Right::Listen),
        }
    }

    /// Ends links whose tokens have ended, or whose keys allow them no more.
    fn end_unauthorized(&mut self) {
        let is_over = |link: &EndpointLink| match link {
            EndpointLink::Sender(sender) => self.may(&sender.entity, Right::Send).err(),
            EndpointLink::Receiver(receiver) => self.may(&receiver.entity, Right::Listen).err(),
            EndpointLink::Browser(browser) => self.may(&browser.entity, Right::Listen).err(),
            EndpointLink::Requests(requests) => match &requests.node {
                Node::Tokens => None,
                Node::Management(entity) => self.may_attach_management(entity).err(),
            },
            EndpointLink::Pending(Some(wait)) => self.may(&wait.entity, Right::Listen).err(),
            EndpointLink::Pending(None) | EndpointLink::Coordinator | EndpointLink::Replies(_) => None,
        };
        let over: Vec<(LinkId, AmqpRefusal)> =
            self.links.iter().filter_map(|(id, link)| Some((*id, is_over(link)?))).collect();
        for (link, refusal) in over {
            match self.is_pending(link) {
                true => self.refuse(link, refusal),
                false => self.detach(link, refusal),
            }
        }
    }
}

fn no_right(right: Right, path: &str) -> AmqpRefusal {
    let why = format!("nothing this connection has shown allows to {} on {path}", right.as_str());
    AmqpRefusal::new(condition::UNAUTHORIZED, why)
}

/// The path of an entity, or of what is below it, as tokens name it.
fn path_of(queue: &str, (is_dead_letters, is_transfer): (bool, bool), below: &str) -> String {
    let dead_letters = match (is_dead_letters, is_transfer) {
        (_, true) => "/$transfer/$deadletterqueue",
        (true, false) => "/$deadletterqueue",
        (false, false) => "",
    };
    format!("{}{dead_letters}{below}", entity_name(queue).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use bytes::BytesMut;
    use futures_util::FutureExt;
    use futures_util::StreamExt;

    use super::*;
    use crate::amqp::Connection;
    use crate::amqp::ConnectionOptions;
    use crate::amqp::message::encode_application_properties;
    use crate::amqp::message::encode_value;
    use crate::inbound::live_value::LiveValue;
    use crate::intake::Intake;
    use crate::sas::Keys;
    use crate::sas::signatures::tests::KEY;
    use crate::sas::signatures::tests::token;
    use crate::service_bus::meters::Meters;
    use crate::service_bus::shared::EndpointState;
    use crate::service_bus::shared::Owners;

    const LATER: u64 = 10_000_000_000;

    /// A request that shows a token for an entity until then, in seconds.
    fn shows(entity: &str, until: u64) -> ManagementRequest {
        let resource = format!("amqp://localhost/{entity}");
        let application = [
            (Value::from("operation"), Value::from("put-token")),
            (Value::from("name"), Value::from(resource.as_str())),
        ];
        let mut out = BytesMut::new();
        encode_application_properties(&mut out, &application);
        encode_value(&mut out, &Value::from(token(KEY, "shop", &resource, until).as_str()));
        ManagementRequest::read(&out.freeze()).unwrap()
    }

    #[tokio::test]
    async fn a_connection_that_shows_token_after_token_sleeps_until_the_first_ends_and_no_other() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "[[key]]\nname = \"shop\"\nkey_env = \"K\"\nrights = [\"send\"]\n").unwrap();
        let keys = LiveValue::new(Some(Keys::read(file.path(), |_| Some(KEY.to_owned())).unwrap()));
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let (intake, clock) = (Intake::new(engine.client().clone()), Arc::new(clock));
        let owners = Owners::nobody();
        let shared = EndpointState::new(intake, owners, clock, Meters::default(), keys, false);
        let amqp = Connection::new(ConnectionOptions::default(), 0);
        let mut connection_task = ConnectionTask::new(amqp, Arc::new(shared));
        for second in 0..50 {
            connection_task.take_token(&shows("q", LATER + second)).unwrap();
            assert_eq!(connection_task.work.len(), 1, "a token in place of another");
        }
        for second in 1..50 {
            connection_task.take_token(&shows(&format!("q{second}"), LATER - second)).unwrap();
            while let Some(Some(then)) = connection_task.work.next().now_or_never() {
                then(&mut connection_task);
            }
            assert_eq!(connection_task.work.len(), 1, "a token that ends before the others");
        }
    }
}
