//! Samples of what is asked and stored of topics, for the golden bytes.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::MessageOrigin;
use crate::engine::rules::topic_record::SubscriptionPlan;
use crate::engine::rules::topic_record::SubscriptionRecord;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicPlan;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::id::WorkflowId;
use crate::message::NewMessage;
use crate::queue::QueueOptions;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

fn topic() -> QueueName {
    QueueName::new("t").unwrap()
}

fn subscription() -> SubscriptionName {
    SubscriptionName::new("s").unwrap()
}

fn rules() -> Vec<Rule> {
    let mut correlation = Correlation::default().property("p", 300_i64).subject("s").workflow("w");
    correlation.to = Some("t".to_owned());
    let parameters = Properties::from([("@p".to_owned(), PropertyValue::Float(0.5))]);
    let filters = [
        Filter::True,
        Filter::False,
        Filter::Correlation(correlation),
        Filter::Sql { expression: "a = @p".to_owned(), parameters },
    ];
    let rule = |(at, filter)| Rule::new(format!("r{at}"), filter);
    let mut rules: Vec<Rule> = filters.into_iter().enumerate().map(rule).collect();
    rules.push(Rule::everything().action("SET a = 1"));
    rules
}

fn plan() -> TopicPlan {
    let options = Box::new(QueueOptions::default());
    let subscription = SubscriptionPlan { name: subscription(), rules: rules(), options, paused: true };
    TopicPlan { number: 299, created_at: Timestamp::from_millis(300), subscriptions: vec![subscription] }
}

pub(crate) fn commands(messages: Vec<NewMessage>) -> Vec<Command> {
    let options = Box::new(QueueOptions::default());
    let changes = [
        TopicChange::Create,
        TopicChange::Delete,
        TopicChange::Subscribe { name: subscription(), options, rules: rules() },
        TopicChange::SetRules { name: subscription(), revision: 300, rules: rules() },
        TopicChange::Put { revision: 301, plan: Box::new(plan()) },
    ];
    let change = |change| Command::ChangeTopic(verbs::ChangeTopic { name: topic(), change });
    let mut commands: Vec<Command> = changes.into_iter().map(change).collect();
    let queue = QueueName::of_subscription(&topic(), &subscription()).unwrap();
    let origin = MessageOrigin { workflow_id: WorkflowId::new("w").ok(), message_id: None };
    let fanout = Fanout { revision: 300, copies: vec![(queue, messages)], origins: vec![origin] };
    commands.push(Command::Publish(verbs::Publish { topic: topic(), fanout: fanout.clone() }));
    let key = IdempotencyKey::new("k", 300).unwrap();
    commands.push(Command::PublishOnce(verbs::PublishOnce { topic: topic(), key, fanout }));
    commands
}

pub(crate) fn record() -> TopicRecord {
    let subscriptions = vec![SubscriptionRecord { name: subscription(), rules: rules() }];
    let created_at = Timestamp::from_millis(300);
    TopicRecord { name: topic(), number: 299, revision: 301, created_at, subscriptions }
}

pub(crate) fn change() -> Change {
    Change::Topic(topic(), Some(Arc::new(record())))
}
