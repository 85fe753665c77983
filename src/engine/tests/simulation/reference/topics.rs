//! Topics: who wants what, judged rule by rule, and what becomes of the copies.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::SubscriptionRecord;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::transact::StepCommand;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::reference::Reference;
use crate::engine::tests::simulation::reference::answer::same;
use crate::engine::tests::simulation::reference::send::Sender;
use crate::engine::tests::simulation::reference::send::Unsent;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::error::SendRefusal;
use crate::header::FORWARDED;
use crate::header::Headers;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// Whether a message is wanted, by its property `p`, its subject, and whether it has a property `q`.
type Condition = fn(Option<i64>, Option<&str>, bool) -> bool;

/// Conditions, as they are written and as they are meant: what is not known is not true.
pub(crate) const CONDITIONS: [(&str, Condition); 5] = [
    ("p > 0", |p, _, _| p.is_some_and(|p| p > 0)),
    ("p = 1 OR sys.Subject = 's0'", |p, subject, _| p == Some(1) || subject == Some("s0")),
    ("p IS NULL", |p, _, _| p.is_none()),
    ("NOT (p < 2)", |p, _, _| p.is_some_and(|p| p >= 2)),
    ("sys.Label IN ('s1') AND NOT EXISTS (q)", |_, subject, has_q| subject == Some("s1") && !has_q),
];

/// What becomes of a copy.
type Change = fn(&mut Headers);

/// Actions, in the same way.
pub(crate) const ACTIONS: [(&str, Change); 4] = [
    ("SET q = 7", |headers| drop(headers.properties.insert("q".to_owned(), PropertyValue::Integer(7)))),
    ("SET p = p + 1", |headers| {
        if let Some(PropertyValue::Integer(p)) = headers.properties.get_mut("p") {
            *p += 1;
        }
    }),
    ("REMOVE p", |headers| drop(headers.properties.remove("p"))),
    ("SET sys.Label = 's1'", |headers| headers.subject = Some("s1".to_owned())),
];

/// A topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NaiveTopic {
    number: u64,
    revision: u64,
    subscriptions: BTreeMap<SubscriptionName, Vec<crate::topic::Rule>>,
}

/// An answer under an idempotency key: the request's digest, what was answered, and until when that is kept.
pub(crate) type Published = (u64, Vec<(QueueName, Receipt)>, Timestamp);

fn is_wanted(rule: &crate::topic::Rule, message: &NewMessage) -> bool {
    use crate::topic::Filter;
    let headers = &message.headers;
    let p = match headers.properties.get("p") {
        Some(PropertyValue::Integer(p)) => Some(*p),
        _ => None,
    };
    match rule.filter() {
        Filter::True => true,
        Filter::False => false,
        Filter::Correlation(correlation) => {
            let mut properties = correlation.properties.iter();
            (correlation.subject.is_none() || correlation.subject == headers.subject)
                && properties.all(|(name, value)| headers.properties.get(name) == Some(value))
        }
        Filter::Sql { expression, .. } => {
            let condition = CONDITIONS.iter().find(|(text, _)| text == expression);
            let has_q = headers.properties.contains_key("q");
            condition.is_some_and(|(_, means)| means(p, headers.subject.as_deref(), has_q))
        }
    }
}

fn copies_of(rules: &[crate::topic::Rule], message: &NewMessage) -> Vec<NewMessage> {
    let mut copies = Vec::new();
    let mut has_plain = false;
    for rule in rules.iter().filter(|rule| is_wanted(rule, message)) {
        let Some(action) = rule.changes() else {
            if !std::mem::replace(&mut has_plain, true) {
                copies.push(message.clone());
            }
            continue;
        };
        let mut copy = message.clone();
        let name = PropertyValue::Text(rule.name().to_owned());
        copy.headers.properties.insert("RuleName".to_owned(), name);
        let (_, change) = ACTIONS.iter().find(|(text, _)| *text == action).expect("a known action");
        change(&mut copy.headers);
        copies.push(copy);
    }
    copies
}

/// The copies of messages, subscription by subscription.
pub(crate) fn copies(topic: &TopicRecord, messages: &[NewMessage]) -> Vec<(QueueName, Vec<NewMessage>)> {
    let of = |subscription: &SubscriptionRecord| {
        let queue = QueueName::of_subscription(&topic.name, &subscription.name).expect("a plain name");
        (queue, messages.iter().flat_map(|message| copies_of(&subscription.rules, message)).collect())
    };
    let all = topic.subscriptions.iter().map(of);
    all.filter(|(_, copies): &(_, Vec<_>)| !copies.is_empty()).collect()
}

/// Copies as their queue takes them: one whose order has no places forgets them.
pub(crate) fn as_taken(options: Option<&QueueOptions>, copies: &[NewMessage]) -> Vec<NewMessage> {
    let mut copies = copies.to_vec();
    if options.is_some_and(|options| matches!(options.order, Order::None | Order::Arrival)) {
        copies.iter_mut().for_each(|copy| copy.place = Place::Arrival);
    }
    copies
}

/// Parts receipts by the queues that gave them; a send that was refused has none.
pub(crate) fn shared_out<'a>(
    fanout: &'a Fanout,
    mut receipts: &'a [Receipt],
) -> Vec<(&'a QueueName, &'a [NewMessage], &'a [Receipt])> {
    let mut shares = Vec::new();
    for (queue, copies) in fanout.copies.iter().filter(|_| !receipts.is_empty()) {
        let (own, rest) = receipts.split_at(copies.len());
        shares.push((queue, copies.as_slice(), own));
        receipts = rest;
    }
    shares
}

fn hops(properties: Option<&Properties>) -> i64 {
    match properties.and_then(|properties| properties.get(FORWARDED)) {
        Some(PropertyValue::Integer(hops)) => *hops,
        _ => 0,
    }
}

impl Reference {
    fn raise_revision(&mut self, topic: &QueueName) {
        self.last += 1;
        self.topics.get_mut(topic).expect("it is there").revision = self.last;
    }

    /// A subscription whose queue is gone is gone.
    pub(crate) fn unsubscribe(&mut self, queue: &QueueName) {
        let Some((topic, name)) = queue.subscription() else { return };
        let known = self.topics.get_mut(&topic);
        if known.is_some_and(|known| known.subscriptions.remove(&name).is_some()) {
            self.raise_revision(&topic);
        }
    }

    /// Whether something was changed; `None` when it is refused.
    pub(crate) fn change_topic(&mut self, name: &QueueName, change: &TopicChange) -> Option<bool> {
        let known = self.topics.get(name).cloned();
        match (change, known) {
            (TopicChange::Create, Some(_)) => Some(false),
            (TopicChange::Create, None) if self.queues.contains_key(name) => None,
            (TopicChange::Create, None) => {
                let topic = NaiveTopic { number: self.last + 1, ..NaiveTopic::default() };
                self.topics.insert(name.clone(), topic);
                self.raise_revision(name);
                Some(true)
            }
            // Only a cluster asks so.
            (TopicChange::Put { .. }, _) | (_, None) => None,
            (TopicChange::Delete, Some(known)) => {
                self.topics.remove(name);
                self.published.retain(|(of, _), _| of != name);
                for subscription in known.subscriptions.keys() {
                    let queue = QueueName::of_subscription(name, subscription).expect("a plain name");
                    self.delete(&queue);
                }
                Some(true)
            }
            (TopicChange::Subscribe { name: own, options, rules }, Some(known)) => {
                let queue = QueueName::of_subscription(name, own).expect("a plain name");
                if let Some(before) = known.subscriptions.get(own) {
                    let has_same = self.queues.get(&queue).is_some_and(|queue| queue.options == **options);
                    return (before == rules && has_same).then_some(false);
                }
                self.create_any(&queue, options);
                self.topics.get_mut(name)?.subscriptions.insert(own.clone(), rules.clone());
                self.raise_revision(name);
                Some(true)
            }
            (TopicChange::SetRules { name: own, revision, rules }, Some(known)) => {
                let before = known.subscriptions.get(own).filter(|_| known.revision == *revision)?;
                if before == rules {
                    return Some(false);
                }
                self.topics.get_mut(name)?.subscriptions.insert(own.clone(), rules.clone());
                self.raise_revision(name);
                Some(true)
            }
        }
    }

    /// What is answered to a send to a topic. All copies are judged before the first is accepted.
    fn judge_published(&self, topic: &QueueName, fanout: &Fanout) -> Result<Vec<Receipt>, Unsent> {
        let known = self.topics.get(topic).ok_or(Unsent::NoTopic)?;
        if known.revision != fanout.revision {
            return Err(Unsent::TopicChanged);
        }
        let (mut next, mut receipts) = (self.last + 1, Vec::new());
        for (queue, copies) in &fanout.copies {
            let naive = self.queues.get(queue).ok_or(Unsent::NoQueue)?;
            let own = naive.judge(&as_taken(Some(&naive.options), copies), next, Sender::Anybody)?;
            let is_new =
                |receipt: &&Receipt| !matches!(receipt, Receipt::Duplicate(_) | Receipt::AlreadySettled);
            next += own.iter().filter(is_new).count() as u64;
            receipts.extend(own);
        }
        Ok(receipts)
    }

    pub(crate) fn record_published(
        &mut self,
        topic: &QueueName,
        fanout: &Fanout,
        answer: &Result<Vec<Receipt>, SendRefusal>,
    ) -> Finding {
        let expected = self.judge_published(topic, fanout);
        same(&answer.as_ref().map_err(Unsent::of).cloned(), &expected)?;
        for (queue, copies, receipts) in shared_out(fanout, &expected.unwrap_or_default()) {
            let options = self.queues.get(queue).map(|naive| &naive.options);
            let copies = as_taken(options, copies);
            self.accept(queue, &copies, receipts);
        }
        Ok(())
    }

    pub(crate) fn record_published_once(
        &mut self,
        topic: &QueueName,
        (key, fanout): (&IdempotencyKey, &Fanout),
        answer: &Result<Vec<(QueueName, Receipt)>, SendRefusal>,
    ) -> Finding {
        let of = (topic.clone(), key.as_str().to_owned());
        let known = self.published.get(&of).filter(|(_, _, until)| self.now < *until);
        if let Some((digest, copies, _)) = known {
            let is_same = *digest == key.digest();
            let expected = if is_same { Ok(copies.clone()) } else { Err(Unsent::KeyReused) };
            return same(&answer.as_ref().map_err(Unsent::of).cloned(), &expected);
        }
        let mut told = Ok(Vec::new());
        match answer {
            Ok(copies) => {
                let queues = fanout.copies.iter().flat_map(|(queue, all)| all.iter().map(move |_| queue));
                let told_of: Vec<&QueueName> = copies.iter().map(|(queue, _)| queue).collect();
                same(&told_of, &queues.collect())?;
                told = Ok(copies.iter().map(|(_, receipt)| *receipt).collect());
                let until = self.now + limits::IDEMPOTENCY_WINDOW;
                self.published.insert(of, (key.digest(), copies.clone(), until));
            }
            Err(refusal) => told = told.and(Err(refusal.clone())),
        }
        self.record_published(topic, fanout, &told)
    }

    /// What a transaction lets go on was forwarded once more than what it completes, and never too often.
    pub(crate) fn check_hops(&self, steps: &[StepCommand]) -> Finding {
        for pair in steps.windows(2) {
            let sent = match &pair[0] {
                StepCommand::Send(verbs::Send { messages, .. }) => messages.first(),
                StepCommand::Publish(verbs::Publish { fanout, .. }) => {
                    fanout.copies.first().and_then(|(_, copies)| copies.first())
                }
                _ => None,
            };
            let (
                Some(sent),
                StepCommand::Settle(verbs::Settle { sequence, settlement: Settlement::Complete(_), .. }),
            ) = (sent, &pair[1])
            else {
                continue;
            };
            let after = hops(Some(&sent.headers.properties));
            if after > 0 {
                same(&after, &(hops(self.properties.get(&sequence.get())) + 1))?;
                expect(after <= limits::SERVICE_BUS_FORWARDS_MAX, || format!("R {after} hops"))?;
            }
        }
        Ok(())
    }

    /// Every topic is what was made of it, and every message says what was sent.
    pub(crate) fn compare_topics(&self, rows: &Rows) -> Finding {
        let naive = |topic: &Arc<TopicRecord>| {
            let rules = |known: &SubscriptionRecord| (known.name.clone(), known.rules.clone());
            let subscriptions = topic.subscriptions.iter().map(rules).collect();
            NaiveTopic { number: topic.number, revision: topic.revision, subscriptions }
        };
        let found: BTreeMap<QueueName, NaiveTopic> =
            rows.topics.iter().map(|(name, topic)| (name.clone(), naive(topic))).collect();
        expect(found == self.topics, || format!("R topics are {found:?}, expected: {:?}", self.topics))?;
        for (key, content) in &rows.contents {
            let Some(expected) = self.properties.get(&key.sequence.get()) else { continue };
            expect(content.headers.properties == *expected, || {
                format!("R {} says {:?}, {expected:?} expected", key.sequence, content.headers.properties)
            })?;
        }
        Ok(())
    }
}

/// A send to a topic, with its answer.
impl Reference {
    pub(crate) fn record_of_topic(&mut self, command: &Command, reply: &Reply) -> Finding {
        match (command, reply) {
            (Command::ChangeTopic(verbs::ChangeTopic { name, change }), Reply::Topic(answer)) => {
                same(&answer.as_ref().ok().copied(), &self.change_topic(name, change))
            }
            (Command::Publish(verbs::Publish { topic, fanout }), Reply::Send(answer)) => {
                self.record_published(topic, fanout, answer)
            }
            (Command::PublishOnce(verbs::PublishOnce { topic, key, fanout }), Reply::PublishOnce(answer)) => {
                self.record_published_once(topic, (key, fanout), answer)
            }
            _ => Err(format!("R {command:?} was answered {reply:?}")),
        }
    }
}
