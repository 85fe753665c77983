//! Topics: their subscriptions and rules, and sends that were fanned out.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::judge::Judge;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::Stop;
use crate::engine::rules::step::refuse;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::SubscriptionRecord;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicRecord;
use crate::error::QueueRefusal;
use crate::error::SendRefusal;
use crate::error::TopicRefusal;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::topic::Rule;

impl Step<'_> {
    pub(crate) fn change_topic(
        &mut self,
        name: &QueueName,
        change: TopicChange,
    ) -> Ruling<bool, TopicRefusal> {
        match (change, self.records.topic(name)?) {
            (TopicChange::Put { revision, plan }, _) => self.put_topic(name, revision, &plan),
            (TopicChange::Create, Some(_)) => Ok(false),
            (TopicChange::Create, None) => self.create_topic(name),
            (TopicChange::Delete, Some(topic)) => self.delete_topic(&topic),
            (TopicChange::Subscribe { name, options, rules }, Some(topic)) => {
                self.subscribe(&topic, name, *options, rules)
            }
            (TopicChange::SetRules { name, revision, rules }, Some(topic)) => {
                self.set_rules(&topic, name, revision, rules)
            }
            (TopicChange::Delete | TopicChange::Subscribe { .. } | TopicChange::SetRules { .. }, None) => {
                refuse(TopicRefusal::TopicNotFound(name.clone()))
            }
        }
    }

    fn create_topic(&mut self, name: &QueueName) -> Ruling<bool, TopicRefusal> {
        if self.queue_named(name)?.is_some() {
            return refuse(TopicRefusal::NameIsQueue(name.clone()));
        }
        let count = self.records.topics(None, limits::TOPICS_MAX)?.len();
        if count == limits::TOPICS_MAX {
            return refuse(TopicRefusal::TooManyTopics(count));
        }
        // A sequence number is never given twice, not even to another topic of this name.
        let number = self.next_sequence()?.get();
        let topic = TopicRecord {
            name: name.clone(),
            number,
            revision: number,
            created_at: self.wall,
            subscriptions: Vec::new(),
        };
        self.write(Change::Topic(name.clone(), Some(Arc::new(topic))))?;
        Ok(true)
    }

    fn delete_topic(&mut self, topic: &TopicRecord) -> Ruling<bool, TopicRefusal> {
        self.write(Change::Topic(topic.name.clone(), None))?;
        for subscription in &topic.subscriptions {
            let name = queue_of(topic, &subscription.name);
            if let Some(queue) = self.queue_named(&name)? {
                self.remove_queue(&queue)?;
            }
        }
        Ok(true)
    }

    fn subscribe(
        &mut self,
        topic: &TopicRecord,
        name: SubscriptionName,
        options: QueueOptions,
        rules: Vec<Rule>,
    ) -> Ruling<bool, TopicRefusal> {
        let queue = queue_of(topic, &name);
        if topic.subscription(&name).is_some() {
            return match is_subscribed(&*self.records, topic, &name, (&options, &rules))? {
                true => Ok(false),
                false => refuse(TopicRefusal::SubscriptionExists(topic.name.clone(), name)),
            };
        }
        let mut changed = topic.clone();
        let at = changed.subscriptions.partition_point(|subscription| subscription.name < name);
        changed.subscriptions.insert(at, SubscriptionRecord { name, rules });
        check_size(&changed).map_err(Stop::Refused)?;
        let refusal = |refusal| match refusal {
            QueueRefusal::TooManyQueues(count) => TopicRefusal::TooManyQueues(count),
            other => unreachable!("nobody else creates the queue of a subscription: {other}"),
        };
        self.create_queue_of_any_name(&queue, options).map_err(|stop| stop.map(refusal))?;
        self.write_topic(changed)?;
        Ok(true)
    }

    fn set_rules(
        &mut self,
        topic: &TopicRecord,
        name: SubscriptionName,
        revision: u64,
        rules: Vec<Rule>,
    ) -> Ruling<bool, TopicRefusal> {
        if topic.revision != revision {
            return refuse(TopicRefusal::TopicChanged(topic.name.clone()));
        }
        let mut changed = topic.clone();
        let Some(known) = changed.subscriptions.iter_mut().find(|known| known.name == name) else {
            return refuse(TopicRefusal::SubscriptionNotFound(topic.name.clone(), name));
        };
        if known.rules == rules {
            return Ok(false);
        }
        known.rules = rules;
        check_size(&changed).map_err(Stop::Refused)?;
        self.write_topic(changed)?;
        Ok(true)
    }

    fn write_topic(&mut self, mut topic: TopicRecord) -> Read<()> {
        topic.revision = self.next_sequence()?.get();
        self.write(Change::Topic(topic.name.clone(), Some(Arc::new(topic))))
    }

    /// A subscription whose queue goes is gone.
    pub(crate) fn unsubscribe(&mut self, queue: &QueueName) -> Read<()> {
        let Some((topic, name)) = queue.subscription() else { return Ok(()) };
        let Some(topic) = self.records.topic(&topic)? else { return Ok(()) };
        let mut changed = (*topic).clone();
        changed.subscriptions.retain(|subscription| subscription.name != name);
        self.write_topic(changed)
    }

    /// Accepts all copies of all messages, or refuses all; also when the topic has other rules by which they were chosen.
    pub(crate) fn publish(&mut self, name: &QueueName, fanout: Fanout) -> Ruling<Vec<Receipt>, SendRefusal> {
        let Some(topic) = self.records.topic(name)? else {
            return refuse(SendRefusal::TopicNotFound(name.clone()));
        };
        if topic.revision != fanout.revision {
            return refuse(SendRefusal::TopicChanged(name.clone()));
        }
        let mut judge = Judge::default();
        let mut judged = Vec::with_capacity(fanout.copies.len());
        for (queue, mut messages) in fanout.copies {
            self.forget_places(&queue, &mut messages)?;
            judged.push(self.judge(&mut judge, &queue, messages)?);
        }
        Ok(self.accept_all(judged)?)
    }

    /// A place is for those subscriptions whose order has places; the others take the message as it comes.
    fn forget_places(&self, queue: &QueueName, messages: &mut [NewMessage]) -> Read<()> {
        let order = self.queue_named(queue)?.map(|queue| queue.options.order);
        if matches!(order, Some(Order::None | Order::Arrival)) {
            messages.iter_mut().for_each(|message| message.place = Place::Arrival);
        }
        Ok(())
    }
}

/// Whether a topic has a subscription of this name, with these options and rules.
pub(crate) fn is_subscribed(
    records: &dyn Records,
    topic: &TopicRecord,
    name: &SubscriptionName,
    (options, rules): (&QueueOptions, &[Rule]),
) -> Read<bool> {
    let queue = records.queue_named(&queue_of(topic, name))?;
    Ok(topic.subscription(name).is_some_and(|known| known.rules == rules)
        && queue.is_some_and(|queue| queue.options == *options))
}

/// The queue of a subscription.
pub(crate) fn queue_of(topic: &TopicRecord, name: &SubscriptionName) -> QueueName {
    QueueName::of_subscription(&topic.name, name).expect("a topic has a plain name")
}

pub(crate) fn check_size(topic: &TopicRecord) -> Result<(), TopicRefusal> {
    let count = topic.subscriptions.len();
    if count > limits::SUBSCRIPTIONS_MAX {
        return Err(TopicRefusal::TooManySubscriptions(topic.name.clone(), count - 1));
    }
    let rules = topic.subscriptions.iter().map(|subscription| subscription.rules.len()).sum();
    let bytes = topic.bytes();
    if rules > limits::TOPIC_RULES_MAX || bytes > limits::TOPIC_BYTES_MAX {
        return Err(TopicRefusal::TooManyRules(topic.name.clone(), rules, bytes));
    }
    Ok(())
}
