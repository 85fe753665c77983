//! A handle of one topic: subscribe, send, change rules, look.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::queue::Queue;
use crate::engine::client::queue::check_messages;
use crate::engine::client::topic_message::TopicMessage;
use crate::engine::query::Query;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::SubscriptionRecord;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::verbs::ChangeTopic;
use crate::engine::rules::verbs::Publish;
use crate::error::Misuse;
use crate::error::QueueError;
use crate::error::SendError;
use crate::error::SendRefusal;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::RuleName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::shown::shown;
use crate::topic::Rule;

/// A handle of one topic. What is sent to it is accepted by every subscription one of whose rules matches, in one transaction;
/// each subscription is a queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seriatim::topic::{Filter, Rule};
/// use seriatim::{Engine, Message, QueueOptions};
///
/// let engine = Engine::in_memory().open().await?;
/// let orders = engine.client().create_topic("orders").await?;
/// let large = Rule::new("large", Filter::sql("amount > 100"));
/// let billing = orders.subscribe("billing", QueueOptions::default(), [Rule::everything()]).await?;
/// let review = orders.subscribe("review", QueueOptions::default(), [large]).await?;
///
/// orders.send(Message::new("small").workflow("order-17").property("amount", 7_i64)).await?;
/// orders.send(Message::new("large").workflow("order-18").property("amount", 700_i64)).await?;
/// assert_eq!(billing.view().await?.counts.accepted, 2);
/// assert_eq!(review.view().await?.counts.accepted, 1);
/// assert_eq!(review.name().as_str(), "orders/subscriptions/review");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Topic {
    client: Client,
    name: QueueName,
}

shown!(Topic { name });

/// A topic as it is looked at.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TopicView {
    /// Its name.
    pub name: QueueName,
    /// When it was created, by the wall clock.
    pub created_at: Timestamp,
    /// Its subscriptions, in order of name.
    pub subscriptions: Vec<SubscriptionView>,
}

/// A subscription as it is looked at. What it stores, its queue shows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionView {
    /// Its name.
    pub name: SubscriptionName,
    /// The name of its queue.
    pub queue: QueueName,
    /// Its rules, in the order in which they were added.
    pub rules: Vec<Rule>,
}

impl From<&TopicRecord> for TopicView {
    fn from(topic: &TopicRecord) -> TopicView {
        let view = |subscription: &SubscriptionRecord| SubscriptionView {
            name: subscription.name.clone(),
            queue: QueueName::of_subscription(&topic.name, &subscription.name)
                .expect("a topic has a plain name"),
            rules: subscription.rules.clone(),
        };
        let subscriptions = topic.subscriptions.iter().map(view).collect();
        TopicView { name: topic.name.clone(), created_at: topic.created_at, subscriptions }
    }
}

impl Topic {
    pub(crate) fn new(client: Client, name: QueueName) -> Topic {
        Topic { client, name }
    }

    /// Its name.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// Sends a message to every subscription that wants it, all or none: it is stored when this returns. Nobody may want it,
    /// which is no error. Returns what became of each copy, with the queue of the subscription. One task's sends keep their
    /// order in each subscription, if it awaits each before the next.
    ///
    /// # Errors
    /// [`SendRefusal::TopicNotFound`], and whatever one subscription refuses it for, as [`Queue::send`].
    pub async fn send(&self, message: Message) -> Result<Vec<(QueueName, Receipt)>, SendError> {
        self.publish(vec![message.check()?.into()]).await
    }

    /// Sends up to 1,024 messages in one transaction. Returns what became of the copies, subscription by subscription.
    ///
    /// # Errors
    /// As [`Topic::send`]; the refusal says which message of those that the subscription wants it was.
    pub async fn send_batch(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<(QueueName, Receipt)>, SendError> {
        self.publish(self.checked(messages)?).await
    }

    pub(crate) fn checked(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<TopicMessage>, Misuse> {
        let checked = check_messages(messages, limits::SEND_BATCH_MAX)?;
        Ok(checked.into_iter().map(TopicMessage::from).collect())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn publish(
        &self,
        messages: Vec<TopicMessage>,
    ) -> Result<Vec<(QueueName, Receipt)>, SendError> {
        for _ in 0..limits::TOPIC_TRIES_MAX {
            let fanout = self.fanout(&messages).await?;
            let queues = fanout.copies.iter().map(|(queue, copies)| (queue.clone(), copies.len()));
            let queues: Vec<_> = queues.collect();
            let command = Publish { topic: self.name.clone(), fanout };
            let answer = self.client.answer(command).await;
            match answer.inspect_err(|why| self.note_unanswered(why))? {
                Ok(receipts) => {
                    let queues =
                        queues.into_iter().flat_map(|(queue, count)| std::iter::repeat_n(queue, count));
                    return Ok(queues.zip(receipts).collect());
                }
                Err(SendRefusal::TopicChanged(_) | SendRefusal::TopicNotFound(_)) => {
                    self.client.forget_topic(&self.name);
                }
                Err(refusal) => return Err(SendError::Refused(refusal)),
            }
        }
        Err(SendError::Refused(SendRefusal::TopicChanged(self.name.clone())))
    }

    /// Rules are looked up anew for the next messages: what these would have led to may lie in rules that are known from before.
    pub(crate) fn note_unanswered(&self, why: &Unavailable) {
        if !matches!(why, Unavailable::Busy) {
            self.client.forget_topic(&self.name);
        }
    }

    /// Which subscriptions get which of the messages, by their rules as they are known.
    pub(crate) async fn fanout(&self, messages: &[TopicMessage]) -> Result<Fanout, SendError> {
        let new_id = || self.client.token().map(|token| token.to_string()).unwrap_or_default();
        let Some(topic) = self.client.compiled_topic(&self.name).await? else {
            return Err(SendError::Refused(SendRefusal::TopicNotFound(self.name.clone())));
        };
        Ok(topic.choose(messages, &new_id).await?)
    }

    /// Adds a subscription, whose queue this returns, unless there is one of this name with the same options and rules. It gets
    /// what is sent from then on. Without any rule it gets nothing.
    ///
    /// # Errors
    /// [`TopicRefusal::SubscriptionExists`] when there is one with others, [`TopicRefusal::TopicNotFound`], and
    /// [`TopicRefusal::TooManyRules`]; [`Misuse`] for a bad name, option, filter or action.
    pub async fn subscribe(
        &self,
        name: impl AsRef<str>,
        options: QueueOptions,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Result<Queue, TopicError> {
        let name = SubscriptionName::new(name)?;
        let queue = QueueName::of_subscription(&self.name, &name)?;
        options.check()?;
        let rules = checked(rules)?;
        self.change(TopicChange::Subscribe { name, options: Box::new(options), rules }).await?;
        Ok(Queue::new(self.client.clone(), queue))
    }

    /// Adds a subscription, or gives the one of this name these options and rules. Returns its queue.
    #[cfg(feature = "daemon")]
    pub(crate) async fn put_subscription(
        &self,
        name: impl AsRef<str>,
        options: QueueOptions,
        rules: Vec<Rule>,
    ) -> Result<Queue, TopicError> {
        match self.subscribe(&name, options.clone(), rules.clone()).await {
            Err(TopicError::Refused(TopicRefusal::SubscriptionExists(..))) => {
                self.change_subscription(name, options, rules).await
            }
            answer => answer,
        }
    }

    /// Gives a subscription other options and rules, one after the other. Returns its queue.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only definitions ask so"))]
    pub(crate) async fn change_subscription(
        &self,
        name: impl AsRef<str>,
        options: QueueOptions,
        rules: Vec<Rule>,
    ) -> Result<Queue, TopicError> {
        let queue = self.subscription(&name)?;
        match self.client.change_queue(queue.name(), options).await {
            Ok(_) => {}
            Err(QueueError::Misuse(misuse)) => return Err(misuse.into()),
            Err(QueueError::Unavailable(unavailable)) => return Err(unavailable.into()),
            Err(QueueError::Refused(refusal)) => {
                let refusal = TopicRefusal::OptionsRefused(queue.name().clone(), refusal.to_string());
                return Err(refusal.into());
            }
        }
        self.set_rules(name, rules).await?;
        Ok(queue)
    }

    /// The queue of a subscription, whether it exists or not. [`Client::delete_queue`] of its name ends the subscription.
    ///
    /// # Errors
    /// [`Misuse`] for a name that no subscription can have.
    pub fn subscription(&self, name: impl AsRef<str>) -> Result<Queue, Misuse> {
        let queue = QueueName::of_subscription(&self.name, &SubscriptionName::new(name)?)?;
        Ok(Queue::new(self.client.clone(), queue))
    }

    /// The topic with its subscriptions and rules, if it exists.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine is closed.
    pub async fn view(&self) -> Result<Option<TopicView>, Unavailable> {
        Ok(self.client.topic_record(&self.name).await?.map(|topic| TopicView::from(&*topic)))
    }

    /// The rules of a subscription, in the order in which they were added.
    ///
    /// # Errors
    /// [`TopicRefusal::TopicNotFound`] and [`TopicRefusal::SubscriptionNotFound`].
    pub async fn rules(&self, subscription: impl AsRef<str>) -> Result<Vec<Rule>, TopicError> {
        let name = SubscriptionName::new(subscription)?;
        Ok(self.known(&name).await?.1)
    }

    /// Gives a subscription other rules. Returns whether they are others.
    ///
    /// # Errors
    /// As [`Topic::subscribe`], and [`TopicRefusal::SubscriptionNotFound`].
    pub async fn set_rules(
        &self,
        subscription: impl AsRef<str>,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Result<bool, TopicError> {
        let rules = checked(rules)?;
        self.change_rules(subscription.as_ref(), |_, known| {
            *known = rules.clone();
            Ok(())
        })
        .await
    }

    /// Adds a rule to a subscription, after the others.
    ///
    /// # Errors
    /// [`TopicRefusal::RuleExists`] when there is one of this name, and as [`Topic::set_rules`].
    pub async fn add_rule(&self, subscription: impl AsRef<str>, rule: Rule) -> Result<(), TopicError> {
        rule.check()?;
        let added = |subscription: &SubscriptionName, rules: &mut Vec<Rule>| {
            if rules.iter().any(|known| known.name() == rule.name()) {
                let (topic, name) = (self.name.clone(), RuleName::new(rule.name())?);
                return Err(TopicRefusal::RuleExists(topic, subscription.clone(), name).into());
            }
            rules.push(rule.clone());
            Ok(())
        };
        self.change_rules(subscription.as_ref(), added).await.map(drop)
    }

    /// Puts a rule in place of the one of its name.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the administration asks so"))]
    pub(crate) async fn replace_rule(
        &self,
        subscription: impl AsRef<str>,
        rule: Rule,
    ) -> Result<(), TopicError> {
        rule.check()?;
        let name = RuleName::new(rule.name())?;
        let replaced = |subscription: &SubscriptionName, rules: &mut Vec<Rule>| {
            let known = rules.iter_mut().find(|known| known.name() == rule.name());
            known.ok_or_else(|| self.no_rule(subscription, &name))?.clone_from(&rule);
            Ok(())
        };
        self.change_rules(subscription.as_ref(), replaced).await.map(drop)
    }

    /// Removes a rule from a subscription.
    ///
    /// # Errors
    /// [`TopicRefusal::RuleNotFound`], and as [`Topic::set_rules`].
    pub async fn remove_rule(
        &self,
        subscription: impl AsRef<str>,
        rule: impl AsRef<str>,
    ) -> Result<(), TopicError> {
        let rule = RuleName::new(rule)?;
        let removed = |subscription: &SubscriptionName, rules: &mut Vec<Rule>| {
            let before = rules.len();
            rules.retain(|known| known.name() != rule.as_str());
            match rules.len() == before {
                true => Err(self.no_rule(subscription, &rule)),
                false => Ok(()),
            }
        };
        self.change_rules(subscription.as_ref(), removed).await.map(drop)
    }

    fn no_rule(&self, subscription: &SubscriptionName, rule: &RuleName) -> TopicError {
        TopicRefusal::RuleNotFound(self.name.clone(), subscription.clone(), rule.clone()).into()
    }

    async fn change_rules(
        &self,
        subscription: &str,
        change: impl Fn(&SubscriptionName, &mut Vec<Rule>) -> Result<(), TopicError>,
    ) -> Result<bool, TopicError> {
        let name = SubscriptionName::new(subscription)?;
        for _ in 0..limits::TOPIC_TRIES_MAX {
            let (revision, mut rules) = self.known(&name).await?;
            change(&name, &mut rules)?;
            match self.change(TopicChange::SetRules { name: name.clone(), revision, rules }).await {
                Err(TopicError::Refused(TopicRefusal::TopicChanged(_))) => {}
                answer => return answer,
            }
        }
        Err(TopicRefusal::TopicChanged(self.name.clone()).into())
    }

    async fn known(&self, name: &SubscriptionName) -> Result<(u64, Vec<Rule>), TopicError> {
        let topic = self.client.topic_record(&self.name).await?;
        let topic = topic.ok_or_else(|| TopicRefusal::TopicNotFound(self.name.clone()))?;
        let known = topic.subscription(name);
        let known =
            known.ok_or_else(|| TopicRefusal::SubscriptionNotFound(self.name.clone(), name.clone()))?;
        Ok((topic.revision, known.rules.clone()))
    }

    pub(crate) async fn change(&self, change: TopicChange) -> Result<bool, TopicError> {
        self.client.operate(ChangeTopic { name: self.name.clone(), change }).await
    }
}

fn checked(rules: impl IntoIterator<Item = Rule>) -> Result<Vec<Rule>, Misuse> {
    let rules: Vec<Rule> = rules.into_iter().take(limits::TOPIC_RULES_MAX + 1).collect();
    let mut names = std::collections::BTreeSet::new();
    for rule in &rules {
        rule.check()?;
        if !names.insert(rule.name()) {
            return Err(Misuse::new("rules", format!("have the name {:?} twice", rule.name())));
        }
    }
    Ok(rules)
}

impl Client {
    pub(crate) async fn topic_record(
        &self,
        name: &QueueName,
    ) -> Result<Option<Arc<TopicRecord>>, Unavailable> {
        self.look_up(|slot| Query::Topic { name: name.clone(), slot }).await
    }
}
