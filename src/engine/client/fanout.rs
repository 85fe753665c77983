//! Which subscriptions of a topic want a message: its rules, read once and kept beside the client.

use std::collections::BTreeMap;
use std::collections::HashMap;
#[cfg(test)]
use std::task::Context;
#[cfg(test)]
use std::task::Poll;
#[cfg(test)]
use std::task::Waker;

use crate::engine::client::filter_key::FilterKey;
use crate::engine::client::topic_message::TopicMessage;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::MessageOrigin;
use crate::engine::rules::topic_record::TopicRecord;
use crate::error::Misuse;
use crate::filter::Action;
use crate::filter::FilterInput;
use crate::filter::FilterValue;
use crate::filter::Name;
use crate::filter::PropertyScope;
use crate::filter::SqlFilter;
use crate::header::Properties;
use crate::id::QueueName;
use crate::limits;
use crate::message::NewMessage;
use crate::topic::Filter;
use crate::topic::Rule;

/// Rules that are judged before others on the same thread have their turn.
const RULES_AT_ONCE: usize = 64;

/// A topic whose rules were read.
pub(crate) struct CompiledTopic {
    revision: u64,
    queues: Vec<QueueName>,
    /// In the order of their subscriptions.
    rules: Vec<CompiledRule>,
    /// Rules of correlation by one of their values: the one that the fewest rules ask for.
    by_value: HashMap<Name, HashMap<FilterKey, Vec<usize>>>,
    /// The other rules, judged for every message.
    judged: Vec<usize>,
}

struct CompiledRule {
    /// Which of the queues.
    subscription: usize,
    name: String,
    test: Test,
    action: Option<Action>,
}

enum Test {
    True,
    False,
    /// All of these values.
    Values(Vec<(Name, FilterKey)>),
    Sql(SqlFilter),
}

impl CompiledTopic {
    /// Reads the rules of a topic. What was accepted once is read again; a rule of which a later version of this program could
    /// make nothing matches nothing.
    pub(crate) fn of(topic: &TopicRecord) -> CompiledTopic {
        let queue = |subscription| QueueName::of_subscription(&topic.name, subscription);
        let queues = topic.subscriptions.iter().map(|subscription| queue(&subscription.name));
        let queues: Result<Vec<_>, Misuse> = queues.collect();
        let mut compiled = CompiledTopic {
            revision: topic.revision,
            queues: queues.expect("a topic has a plain name"),
            rules: Vec::new(),
            by_value: HashMap::new(),
            judged: Vec::new(),
        };
        for (at, subscription) in topic.subscriptions.iter().enumerate() {
            compiled.rules.extend(subscription.rules.iter().map(|rule| CompiledRule::of(at, rule)));
        }
        compiled.list();
        compiled
    }

    /// Lists each rule of correlation under its rarest value.
    fn list(&mut self) {
        let mut counts: HashMap<(Name, FilterKey), usize> = HashMap::new();
        for value in self.rules.iter().flat_map(CompiledRule::values) {
            *counts.entry(value.clone()).or_default() += 1;
        }
        for (at, rule) in self.rules.iter().enumerate() {
            match rule.values().iter().min_by_key(|value| counts[*value]) {
                Some((name, key)) => {
                    let values = self.by_value.entry(name.clone()).or_default();
                    values.entry(key.clone()).or_default().push(at);
                }
                None => self.judged.push(at),
            }
        }
    }

    /// The copies of messages, queue by queue, in the order of the messages.
    ///
    /// # Errors
    /// [`Misuse`] when there are too many, or an action makes a message too large.
    pub(crate) async fn choose(
        &self,
        messages: &[TopicMessage],
        new_id: &(dyn Fn() -> String + Sync),
    ) -> Result<Fanout, Misuse> {
        let mut chosen = ChosenCopies::default();
        for message in messages {
            self.copy(&FilterMessage { message, new_id }, &mut chosen).await?;
        }
        let copies = chosen.of_subscriptions.into_iter();
        let copies = copies.map(|(queue, copies)| (self.queues[queue].clone(), copies));
        Ok(Fanout { revision: self.revision, copies: copies.collect(), origins: origins_of(messages) })
    }

    async fn copy(&self, judged: &FilterMessage<'_>, chosen: &mut ChosenCopies) -> Result<(), Misuse> {
        let mut last_plain = None;
        for at in self.candidates(judged) {
            chosen.judged += 1;
            if chosen.judged.is_multiple_of(RULES_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            let rule = &self.rules[at];
            if !rule.matches(judged) {
                continue;
            }
            match &rule.action {
                // All rules without an action make one copy.
                None if last_plain == Some(rule.subscription) => {}
                None => {
                    last_plain = Some(rule.subscription);
                    chosen.add(rule.subscription, judged.message.message.clone())?;
                }
                Some(action) => {
                    let copy = judged.message.changed_by(action, &rule.name, judged.new_id)?;
                    chosen.add(rule.subscription, copy)?;
                }
            }
        }
        Ok(())
    }

    /// The rules that could match, in their order.
    fn candidates(&self, judged: &FilterMessage<'_>) -> Vec<usize> {
        let mut found = self.judged.clone();
        for (name, values) in &self.by_value {
            if let Some(listed) = FilterKey::of(judged.property(name)).and_then(|key| values.get(&key)) {
                found.extend(listed);
            }
        }
        found.sort_unstable();
        found
    }
}

/// Copies by the subscriptions that get them. No copy is made behind the first that is too many.
#[derive(Default)]
struct ChosenCopies {
    /// How many rules were judged.
    judged: usize,
    of_subscriptions: BTreeMap<usize, Vec<NewMessage>>,
    count: usize,
    bytes: usize,
}

impl ChosenCopies {
    fn add(&mut self, subscription: usize, copy: NewMessage) -> Result<(), Misuse> {
        self.count += 1;
        self.bytes += copy.len();
        check_copies("batch", (self.count, limits::TOPIC_COPIES_MAX), self.bytes)?;
        self.of_subscriptions.entry(subscription).or_default().push(copy);
        Ok(())
    }
}

/// Refuses more copies than so many, or than may have their bytes together.
pub(crate) fn check_copies(
    field: &'static str,
    (count, max): (usize, usize),
    bytes: usize,
) -> Result<(), Misuse> {
    if count > max {
        return Err(Misuse::new(field, format!("would make more than {max} copies")));
    }
    let max = limits::TOPIC_COPIES_BYTES_MAX;
    if bytes > max {
        let problem = format!("would make copies of more than {max} bytes of bodies and headers together");
        return Err(Misuse::new(field, problem));
    }
    Ok(())
}

/// By what each of some messages is known.
pub(crate) fn origins_of(messages: &[TopicMessage]) -> Vec<MessageOrigin> {
    let origin = |message: &TopicMessage| MessageOrigin {
        workflow_id: message.message.workflow_id.clone(),
        message_id: message.message.message_id.clone(),
    };
    messages.iter().map(origin).collect()
}

impl CompiledRule {
    fn of(subscription: usize, rule: &Rule) -> CompiledRule {
        let test = match rule.filter() {
            Filter::True => Test::True,
            Filter::False => Test::False,
            Filter::Correlation(correlation) => {
                let field = |(name, value): (&str, &str)| {
                    let value = FilterKey::Text(value.to_owned());
                    (Name { scope: PropertyScope::System, text: name.to_owned() }, value)
                };
                let property = |(name, value): (&String, &crate::header::PropertyValue)| {
                    let name = Name { scope: PropertyScope::User, text: name.clone() };
                    Some((name, FilterKey::of(FilterValue::from(value))?))
                };
                let properties = correlation.properties.iter().filter_map(property);
                Test::Values(correlation.fields().map(field).chain(properties).collect())
            }
            Filter::Sql { expression, parameters } => {
                SqlFilter::parse(expression, parameters).map_or(Test::False, Test::Sql)
            }
        };
        let action = rule.changes().and_then(|action| Action::parse(action, &Properties::new()).ok());
        CompiledRule { subscription, name: rule.name().to_owned(), test, action }
    }

    fn values(&self) -> &[(Name, FilterKey)] {
        match &self.test {
            Test::Values(values) => values,
            _ => &[],
        }
    }

    fn matches(&self, judged: &FilterMessage<'_>) -> bool {
        match &self.test {
            Test::True => true,
            Test::False => false,
            Test::Values(values) => values.iter().all(|(name, key)| key.is_of(judged.property(name))),
            Test::Sql(filter) => filter.matches(judged),
        }
    }
}

/// A message that filters look at.
struct FilterMessage<'a> {
    message: &'a TopicMessage,
    new_id: &'a (dyn Fn() -> String + Sync),
}

impl FilterInput for FilterMessage<'_> {
    fn property(&self, name: &Name) -> FilterValue<'_> {
        self.message.property(name)
    }

    fn new_id(&self) -> String {
        (self.new_id)()
    }
}

#[cfg(test)]
impl CompiledTopic {
    /// Chooses without letting others have their turn.
    pub(crate) fn choose_now(
        &self,
        messages: &[TopicMessage],
        new_id: &(dyn Fn() -> String + Sync),
    ) -> Result<Fanout, Misuse> {
        let mut choosing = std::pin::pin!(self.choose(messages, new_id));
        loop {
            if let Poll::Ready(chosen) = choosing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return chosen;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::clock::Timestamp;
    use crate::engine::rules::topic_record::SubscriptionRecord;
    use crate::header::PropertyValue;
    use crate::id::SubscriptionName;
    use crate::message::Message;
    use crate::topic::Correlation;

    fn topic(subscriptions: Vec<Vec<Rule>>) -> CompiledTopic {
        let record = |(at, rules)| SubscriptionRecord {
            name: SubscriptionName::new(format!("s{at:05}")).unwrap(),
            rules,
        };
        let subscriptions = subscriptions.into_iter().enumerate().map(record).collect();
        let (name, created_at) = (QueueName::new("t").unwrap(), Timestamp::default());
        CompiledTopic::of(&TopicRecord { name, number: 1, revision: 1, created_at, subscriptions })
    }

    fn message(message: Message) -> TopicMessage {
        message.check().unwrap().into()
    }

    #[test]
    fn of_ten_thousand_correlation_filters_only_those_that_may_match_are_judged() {
        let rule = |at: i64| {
            let correlation = Correlation::default().subject("order").property("tenant", at);
            vec![Rule::new("r", Filter::Correlation(correlation))]
        };
        let topic = topic((0..10_000).map(rule).collect());
        let message = message(Message::new("").subject("order").property("tenant", 17_i64));
        let judged = FilterMessage { message: &message, new_id: &String::new };
        assert_eq!(topic.candidates(&judged), [17]);
        let copies = topic.choose_now(std::slice::from_ref(&message), &String::new).unwrap().copies;
        assert_eq!(copies.len(), 1);
        assert_eq!(copies[0].0.as_str(), "t/subscriptions/s00017");
    }

    #[test]
    fn many_rules_let_others_have_their_turn() {
        let rules = |count| topic((0..count).map(|_| vec![Rule::new("r", Filter::sql("a = 1"))]).collect());
        let message = [message(Message::new(""))];
        for (count, is_ready) in [(RULES_AT_ONCE - 1, true), (RULES_AT_ONCE, false)] {
            let topic = rules(count);
            let choosing = std::pin::pin!(topic.choose(&message, &String::new));
            let polled = choosing.poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(polled.is_ready(), is_ready, "{count}");
        }
    }

    #[test]
    fn no_copy_is_made_behind_the_first_that_is_too_many() {
        let rule = || vec![Rule::everything().action("SET id = newid()")];
        let (topic, made) = (topic((0..20).map(|_| rule()).collect()), AtomicUsize::new(0));
        let new_id = || {
            made.fetch_add(1, Ordering::Relaxed);
            String::new()
        };
        let messages = vec![message(Message::new("")); limits::SEND_BATCH_MAX];
        let refused = topic.choose_now(&messages, &new_id).map(drop).unwrap_err().to_string();
        assert!(refused.contains("would make more than 16384 copies"), "{refused}");
        assert_eq!(made.into_inner(), limits::TOPIC_COPIES_MAX + 1);
    }

    #[test]
    fn copies_have_no_more_bytes_together_than_the_inbox_holds() {
        let message = message(Message::new(vec![7; 1024 * 1024]).property("p", "x".repeat(1_000)));
        let most = limits::TOPIC_COPIES_BYTES_MAX / message.message.len();
        let topic = |count| topic((0..count).map(|_| vec![Rule::everything()]).collect());
        let messages = std::slice::from_ref(&message);
        assert_eq!(topic(most).choose_now(messages, &String::new).unwrap().copy_count(), most);
        let refused = topic(most + 1).choose_now(messages, &String::new).map(drop).unwrap_err().to_string();
        assert!(refused.contains("would make copies of more than 268435456 bytes"), "{refused}");
    }

    #[test]
    fn an_action_that_makes_a_message_too_large_refuses_it() {
        let long = format!("SET a = '{}'", "x".repeat(2_000));
        let topic = topic(vec![vec![Rule::everything().action(format!(
            "{long}; SET a = a + a; SET a = a + a; SET a = a + a; SET a = a + a; SET a = a + a; SET a = a + a"
        ))]]);
        let refused = topic.choose_now(&[message(Message::new(""))], &String::new).unwrap_err().to_string();
        assert!(refused.contains("$Default"), "{refused}");
    }

    #[test]
    fn an_action_that_doubles_a_text_as_often_as_it_may_refuses_the_message_and_takes_no_memory() {
        let doubled = "; SET a = a + a".repeat(limits::ACTION_STATEMENTS_MAX - 1);
        let action = format!("SET a = '{}'{doubled}", "x".repeat(3_000));
        let topic = topic(vec![vec![Rule::everything().action(action)]]);
        let refused = topic.choose_now(&[message(Message::new(""))], &String::new).unwrap_err().to_string();
        assert!(refused.contains("$Default"), "{refused}");
    }

    #[test]
    fn an_action_that_sets_a_workflow_id_that_is_too_long_refuses_the_message() {
        let choose = |action: String| {
            let topic = topic(vec![vec![Rule::everything().action(action)]]);
            topic.choose_now(&[message(Message::new("").workflow("w"))], &String::new)
        };
        let set = |length: usize| format!("SET sys.SessionId = '{}'", "x".repeat(length));
        let longest = limits::WORKFLOW_ID_CHARS_MAX;
        let refused = choose(set(longest + 1)).map(drop).unwrap_err().to_string();
        assert!(refused.contains("$Default") && refused.contains("workflow ID"), "{refused}");
        for (action, length) in [
            (set(longest), Some(longest)),
            (format!("{}; {}", set(longest + 1), set(1)), Some(1)),
            (set(0), None),
        ] {
            let chosen = choose(action).unwrap();
            let set = chosen.copies[0].1[0].workflow_id.as_ref().map(|id| id.as_str().len());
            assert_eq!(set, length);
        }
    }

    #[test]
    fn a_field_that_an_action_clears_is_cleared_for_the_statements_behind_it() {
        for field in ["To", "ReplyToSessionId", "ReplyTo", "Label", "CorrelationId", "ContentType"] {
            let action = format!(
                "SET sys.{field} = 'x'; SET a = sys.{field}; SET sys.{field} = NULL; SET b = sys.{field}"
            );
            let topic = topic(vec![vec![Rule::everything().action(action)]]);
            let chosen = topic.choose_now(&[message(Message::new(""))], &String::new).unwrap();
            let properties = &chosen.copies[0].1[0].headers.properties;
            assert_eq!(properties.get("a"), Some(&PropertyValue::Text("x".to_owned())), "{field}");
            assert_eq!(properties.get("b"), None, "{field}");
        }
    }

    /// Rules and messages over few names and values, so that many match.
    fn values() -> impl Strategy<Value = PropertyValue> {
        prop_oneof![
            (0_i64..3).prop_map(PropertyValue::Integer),
            (0_u8..6).prop_map(|half| PropertyValue::Float(f64::from(half) / 2.0)),
            "[ab]{0,1}".prop_map(PropertyValue::Text),
            any::<bool>().prop_map(PropertyValue::Boolean),
        ]
    }

    fn properties() -> impl Strategy<Value = Properties> {
        prop::collection::btree_map("[pqr]", values(), 0..4)
    }

    fn rules() -> impl Strategy<Value = Vec<Rule>> {
        let correlation = (properties(), prop::option::of("[ab]")).prop_map(|(properties, subject)| {
            Filter::Correlation(Correlation { properties, subject, ..Correlation::default() })
        });
        let filter = prop_oneof![
            6 => correlation,
            1 => Just(Filter::False),
            1 => Just(Filter::sql("p = 1 OR sys.Subject = 'a'")),
        ];
        let rule = (filter, any::<bool>()).prop_map(|(filter, has_action)| match has_action {
            true => Rule::new("r", filter).action("SET z = 1"),
            false => Rule::new("r", filter),
        });
        prop::collection::vec(rule, 0..4)
    }

    /// Judged rule by rule, by the filter as it is written.
    fn naive(rule: &Rule, message: &TopicMessage) -> bool {
        let headers = &message.message.headers;
        let same = |one: &PropertyValue, other: &PropertyValue| {
            FilterValue::from(one).compare(crate::filter::FilterComparison::Equal, &FilterValue::from(other))
                == Some(true)
        };
        match rule.filter() {
            Filter::True => true,
            Filter::False => false,
            Filter::Correlation(correlation) => {
                let mut properties = correlation.properties.iter();
                (correlation.subject.is_none() || correlation.subject == headers.subject)
                    && properties.all(|(name, value)| {
                        headers.properties.get(name).is_some_and(|known| same(known, value))
                    })
            }
            Filter::Sql { .. } => {
                headers.subject.as_deref() == Some("a")
                    || headers.properties.get("p").is_some_and(|p| same(p, &PropertyValue::Integer(1)))
            }
        }
    }

    proptest! {
        #[test]
        fn a_topic_chooses_the_copies_that_its_rules_say_one_by_one(
            subscriptions in prop::collection::vec(rules(), 0..5),
            properties in properties(),
            subject in prop::option::of("[ab]"),
        ) {
            let mut sent = Message::new("");
            sent.headers.properties = properties;
            sent.headers.subject = subject;
            let sent = message(sent);
            let mut expected = Vec::new();
            for (at, rules) in subscriptions.iter().enumerate() {
                let matching: Vec<_> = rules.iter().filter(|rule| naive(rule, &sent)).collect();
                let plain = usize::from(matching.iter().any(|rule| rule.changes().is_none()));
                let changed = matching.iter().filter(|rule| rule.changes().is_some()).count();
                if plain + changed > 0 {
                    expected.push((format!("t/subscriptions/s{at:05}"), plain + changed));
                }
            }
            let fanout = topic(subscriptions).choose_now(&[sent], &String::new).unwrap();
            let chosen: Vec<_> =
                fanout.copies.iter().map(|(queue, copies)| (queue.to_string(), copies.len())).collect();
            prop_assert_eq!(chosen, expected);
        }
    }
}
