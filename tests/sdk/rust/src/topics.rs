//! Topics: rules that are made and removed, and who gets what.

use azservicebus::ServiceBusMessage;
use azservicebus::administration::CorrelationRuleFilter;
use azservicebus::administration::FalseRuleFilter;
use azservicebus::administration::SqlRuleAction;
use azservicebus::administration::SqlRuleFilter;
use azservicebus::administration::TrueRuleFilter;
use time::Duration;
use time::OffsetDateTime;

use crate::same;
use crate::stage::Client;
use crate::stage::Kept;
use crate::stage::WAIT;
use crate::stage::body;
use crate::stage::client;
use crate::stage::drain;
use crate::stage::messages;
use crate::stage::promise;
use crate::stage::send;

pub(crate) async fn play() {
    promise("a_message_goes_to_the_subscriptions_whose_rules_match", a_message_goes_to_whose_rules_match())
        .await;
    promise("rules_are_listed_removed_and_made", rules_are_listed_removed_and_made()).await;
    promise("what_is_scheduled_for_a_topic_comes_or_is_cancelled", what_is_scheduled_for_a_topic()).await;
}

async fn received(
    client: &mut Client,
    subscription: &str,
) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    let mut receiver =
        client.create_receiver_for_subscription("topic", subscription, Default::default()).await?;
    let received = drain(&mut receiver).await?.iter().map(body).collect();
    receiver.dispose().await?;
    Ok(received)
}

async fn a_message_goes_to_whose_rules_match() -> Kept {
    let mut client = client().await?;
    let mut blue = ServiceBusMessage::new("blue");
    blue.application_properties_mut()
        .get_or_insert_default()
        .insert("color".to_owned(), "blue".to_owned().into());
    send(&mut client, "topic", vec![ServiceBusMessage::new("plain"), blue]).await?;
    same!(received(&mut client, "all").await?, ["plain", "blue"]);
    same!(received(&mut client, "blue").await?, ["blue"]);
    Ok(client.dispose().await?)
}

async fn rules_are_listed_removed_and_made() -> Kept {
    let mut client = client().await?;
    let mut rules = client.create_rule_manager("topic", "ruled").await?;
    for subscription in ["ruled", "all"] {
        received(&mut client, subscription).await?;
    }
    for rule in rules.get_rules().await? {
        rules.delete_rule(rule.name).await?;
    }
    same!(rules.get_rules().await?.len(), 0);
    rules.create_rule("subject", CorrelationRuleFilter::builder().subject("order").build()).await?;
    let large = (SqlRuleFilter::new("amount > 100"), SqlRuleAction::new("SET size = 'large'"));
    rules.create_rule("large", large).await?;
    rules.create_rule("never", FalseRuleFilter::new()).await?;
    same!(rules.create_rule("never", TrueRuleFilter::new()).await.is_err(), true);
    let names: Vec<String> = rules.get_rules().await?.into_iter().map(|rule| rule.name).collect();
    same!(names, ["subject", "large", "never"]);
    let mut order = ServiceBusMessage::new("order");
    order.set_subject("order".to_owned());
    let mut large = ServiceBusMessage::new("large");
    large.application_properties_mut().get_or_insert_default().insert("amount".to_owned(), 700_i64.into());
    send(&mut client, "topic", vec![ServiceBusMessage::new("other"), order, large]).await?;
    same!(received(&mut client, "ruled").await?, ["order", "large"]);
    received(&mut client, "all").await?;
    rules.dispose().await?;
    Ok(client.dispose().await?)
}

async fn what_is_scheduled_for_a_topic() -> Kept {
    let mut client = client().await?;
    let mut sender = client.create_sender("topic", Default::default()).await?;
    received(&mut client, "all").await?;
    let due = OffsetDateTime::now_utc() + Duration::milliseconds(1_500);
    let numbers = sender.schedule_messages(messages(["goes", "stays"]), due).await?;
    same!(numbers.len(), 2);
    same!(received(&mut client, "all").await?.len(), 0);
    sender.cancel_scheduled_message(numbers[1]).await?;
    same!(sender.cancel_scheduled_message(numbers[1]).await.is_err(), true);
    let mut receiver = client.create_receiver_for_subscription("topic", "all", Default::default()).await?;
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.complete_message(&message).await?;
    same!((body(&message), drain(&mut receiver).await?.len()), ("goes".to_owned(), 0));
    receiver.dispose().await?;
    sender.dispose().await?;
    Ok(client.dispose().await?)
}
