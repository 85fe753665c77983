//! Topics: who subscribes, changes rules, sends to them, and lets messages go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::client::fanout::CompiledTopic;
use crate::engine::client::topic_message::TopicMessage;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::transact::StepRefusal;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::crash::story;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::engine::tests::simulation::client::clients::Delivery;
use crate::engine::tests::simulation::reference::topics;
use crate::error::SendRefusal;
use crate::header::FORWARDED;
use crate::header::Headers;
use crate::header::PropertyValue;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::message::NewMessage;
use crate::queue::Order;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

/// One of so many simulations has topics.
pub(crate) const TOPICS_EVERY: u64 = 3;

/// What is known of topics.
#[derive(Default)]
pub(crate) struct Topics {
    pub(crate) names: Vec<QueueName>,
    /// Each as its senders have seen it last.
    known: BTreeMap<QueueName, Arc<TopicRecord>>,
    /// The last send under an idempotency key, to be sent again although it was answered.
    last_once: Option<Command>,
}

impl Topics {
    /// The topics of one simulation, and the queues of their subscriptions.
    pub(crate) fn new(has_some: bool, random: &mut Random) -> (Topics, Vec<(QueueName, Order)>) {
        let mut topics = Topics::default();
        let mut queues = Vec::new();
        if !has_some {
            return (topics, queues);
        }
        for number in 0..random.pick(&[1, 1, 2]) {
            let topic = QueueName::new(format!("t{number}")).expect("a good name");
            let placed =
                random.pick(&[Order::Position { first: Position::FIRST }, Order::Arrival, Order::After]);
            for own in 0..random.pick(&[1, 2, 3]) {
                // The first has the places that its senders give.
                let order =
                    if own == 0 { placed } else { random.pick(&[placed, Order::Arrival, Order::None]) };
                let own = SubscriptionName::new(format!("s{own}")).expect("a good name");
                queues.push((QueueName::of_subscription(&topic, &own).expect("a plain name"), order));
            }
            topics.names.push(topic);
        }
        (topics, queues)
    }
}

impl Clients {
    /// Makes every topic.
    pub(crate) fn open_topics(&self) -> Vec<Command> {
        let made = |name: &QueueName| {
            Command::ChangeTopic(verbs::ChangeTopic { name: name.clone(), change: TopicChange::Create })
        };
        self.topics.names.iter().map(made).collect()
    }

    /// Makes a queue, or the subscription that it is the queue of.
    pub(crate) fn make(&mut self, queue: usize) -> Command {
        let (name, order) = self.queues[queue].clone();
        let options = self.options(order);
        match name.subscription() {
            None => Command::CreateQueue(verbs::CreateQueue { name, options }),
            Some((topic, name)) => {
                let rules = self.rules();
                Command::ChangeTopic(verbs::ChangeTopic {
                    name: topic,
                    change: TopicChange::Subscribe { name, options, rules },
                })
            }
        }
    }

    /// Does something with a topic, if there are any.
    pub(crate) fn use_topics(&mut self, rows: &Rows, now: Timestamp) -> Option<Command> {
        if self.topics.names.is_empty() {
            return None;
        }
        let at = self.index(self.topics.names.len());
        let topic = self.topics.names[at].clone();
        Some(match self.random.below(100) {
            0..45 => {
                let fanout = self.fanout(rows, &topic, |clients, queue| clients.messages(queue, now));
                Command::Publish(verbs::Publish { topic, fanout })
            }
            45..68 => self.publish_once(rows, topic, now),
            68..84 => self.forward(rows, topic, now)?,
            _ => {
                let command = self.change_topic(rows, topic);
                self.put_on_record(command)
            }
        })
    }

    fn change_topic(&mut self, rows: &Rows, topic: QueueName) -> Command {
        let queue = self.subscription_of(&topic);
        let (_, own) = self.queues[queue].0.subscription().expect("it is one of a topic");
        let revision = rows.topics.get(&topic).map_or(0, |known| known.revision);
        let change = match self.random.below(40) {
            0..24 => {
                let revision = if self.random.chance(10) { revision + 1 } else { revision };
                TopicChange::SetRules { name: own, revision, rules: self.rules() }
            }
            24..30 => return self.make(queue),
            30..36 => TopicChange::Create,
            36 => TopicChange::Delete,
            // Their names are taken.
            37 => {
                return Command::CreateQueue(verbs::CreateQueue {
                    name: topic,
                    options: self.options(Order::Arrival),
                });
            }
            38 => {
                let name = self.queues[queue].0.clone();
                return Command::CreateQueue(verbs::CreateQueue {
                    name,
                    options: self.options(Order::Arrival),
                });
            }
            _ => {
                let name = QueueName::new("q0").expect("a good name");
                return Command::ChangeTopic(verbs::ChangeTopic { name, change: TopicChange::Create });
            }
        };
        Command::ChangeTopic(verbs::ChangeTopic { name: topic, change })
    }

    /// Any subscription of a topic.
    fn subscription_of(&mut self, topic: &QueueName) -> usize {
        let is_of = |(_, (name, _)): &(usize, &(QueueName, Order))| {
            name.subscription().is_some_and(|(of, _)| of == *topic)
        };
        let own: Vec<usize> = self.queues.iter().enumerate().filter(is_of).map(|(at, _)| at).collect();
        self.random.pick(&own)
    }

    fn first_subscription_of(&self, topic: &QueueName) -> usize {
        let is_of = |(name, _): &(QueueName, Order)| name.subscription().is_some_and(|(of, _)| of == *topic);
        self.queues.iter().position(is_of).expect("every topic has one")
    }

    fn rules(&mut self) -> Vec<Rule> {
        let count = self.random.pick(&[0, 1, 1, 1, 2, 3]);
        (0..count).map(|at| self.rule(at)).collect()
    }

    fn rule(&mut self, at: u64) -> Rule {
        let number = i64::try_from(self.random.below(3)).expect("a small number");
        let filter = match self.random.below(10) {
            0..3 => Filter::True,
            3 => Filter::False,
            4 | 5 => Filter::Correlation(Correlation::default().property("p", number)),
            6 => Filter::Correlation(Correlation::default().property("p", number).subject("s0")),
            _ => Filter::sql(self.random.pick(&topics::CONDITIONS).0),
        };
        let rule = Rule::new(format!("r{at}"), filter);
        match self.random.chance(35) {
            true => rule.action(self.random.pick(&topics::ACTIONS).0),
            false => rule,
        }
    }

    fn headers(&mut self) -> Headers {
        let mut headers = Headers::default();
        if self.random.chance(80) {
            let number = i64::try_from(self.random.below(3)).expect("a small number");
            headers.properties.insert("p".to_owned(), PropertyValue::Integer(number));
        }
        headers.subject = self.random.chance(50).then(|| self.random.pick(&["s0", "s1"]).to_owned());
        headers
    }

    /// Who gets which of some messages, as far as their sender knows.
    fn fanout(
        &mut self,
        rows: &Rows,
        topic: &QueueName,
        messages: impl FnOnce(&mut Clients, usize) -> Vec<NewMessage>,
    ) -> Fanout {
        let first = self.first_subscription_of(topic);
        let mut messages = messages(self, first);
        for message in messages.iter_mut().filter(|message| message.headers == Default::default()) {
            message.headers = self.headers().into();
        }
        if let (None, Some(seen)) = (self.topics.known.get(topic), rows.topics.get(topic)) {
            self.topics.known.insert(topic.clone(), seen.clone());
        }
        let Some(known) = self.topics.known.get(topic) else { return Fanout::default() };
        let published: Vec<TopicMessage> = messages.iter().cloned().map(TopicMessage::from).collect();
        let fanout = CompiledTopic::of(known).choose_now(&published, &String::new).expect("few small copies");
        assert_eq!(fanout.copies, topics::copies(known, &messages), "R the copies are those of {known:?}");
        assert_eq!(fanout.revision, known.revision);
        fanout
    }

    /// Under a key that is new, one that was used, or the last request again, perhaps by who knows newer rules.
    fn publish_once(&mut self, rows: &Rows, topic: QueueName, now: Timestamp) -> Command {
        if let Some(again) = self.topics.last_once.clone().filter(|_| self.random.chance(50)) {
            return again;
        }
        let key = story::key(self.random.below(story::KEYS), self.random.below(2));
        let fanout = self.fanout(rows, &topic, |clients, queue| clients.messages(queue, now));
        let command = Command::PublishOnce(verbs::PublishOnce { topic, key, fanout });
        self.topics.last_once = Some(command.clone());
        command
    }

    /// Lets a delivery go on to a topic or a queue, as an endpoint does, unless it went on too often.
    fn forward(&mut self, rows: &Rows, topic: QueueName, now: Timestamp) -> Option<Command> {
        if self.held.is_empty() {
            return None;
        }
        let at = self.index(self.held.len());
        let Delivery { queue, token, sequence, delivery_count } = self.held.remove(at);
        let id = rows.queues.values().find(|known| known.name == queue).map(|known| known.id)?;
        let content = rows.contents.get(&MessageKey { queue: id, sequence })?.clone();
        let hops = match content.headers.properties.get(FORWARDED) {
            Some(PropertyValue::Integer(hops)) => *hops,
            _ => 0,
        };
        let settle = |settlement| {
            Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement })
        };
        if hops >= limits::SERVICE_BUS_FORWARDS_MAX {
            let (reason, description) = ("MaxTransferHopCountExceeded".to_owned(), String::new());
            return Some(settle(Settlement::DeadLetter {
                reason,
                description,
                properties: Default::default(),
            }));
        }
        let go_on = |clients: &mut Clients, target: usize| {
            let mut message = clients.messages(target, now).swap_remove(0);
            (message.headers, message.body) = (content.headers.clone(), content.body.clone());
            message.headers.properties.insert(FORWARDED.to_owned(), PropertyValue::Integer(hops + 1));
            vec![message]
        };
        let send = match self.random.chance(50) {
            true => {
                let fanout = self.fanout(rows, &topic, go_on);
                Command::Publish(verbs::Publish { topic, fanout })
            }
            false => {
                let target = self.index(self.queues.len());
                let messages = go_on(self, target);
                Command::Send(verbs::Send { queue: self.queues[target].0.clone(), messages })
            }
        };
        Some(Command::Transact(verbs::Transact {
            steps: [send, settle(Settlement::Complete(CompletionCommand::default()))]
                .into_iter()
                .filter_map(Command::into_step)
                .collect(),
        }))
    }

    /// Takes note of an answer: who was refused for what a topic has become looks at it again.
    pub(crate) fn record_of_topics(&mut self, command: &Command, reply: &Reply) {
        let refusal = match (command, reply) {
            (Command::Publish(_), Reply::Send(Err(refusal))) => refusal,
            (Command::PublishOnce(_), Reply::PublishOnce(Err(refusal))) => refusal,
            (Command::Transact(_), Reply::Transact(Err(refused))) => match &refused.refusal {
                StepRefusal::Send(refusal) => refusal,
                StepRefusal::Settle(_) => return,
            },
            _ => return,
        };
        if let SendRefusal::TopicChanged(topic) | SendRefusal::TopicNotFound(topic) = refusal {
            self.topics.known.remove(topic);
            self.topics.last_once = None;
        }
    }
}
