//! Queues: sent, received, settled in each way, scheduled, looked at.

use azservicebus::CreateMessageBatchOptions;
use azservicebus::ServiceBusMessage;
use azservicebus::ServiceBusMessageState;
use azservicebus::ServiceBusReceiveMode;
use azservicebus::ServiceBusReceiverOptions;
use azservicebus::SubQueue;
use azservicebus::receiver::DeadLetterOptions;
use fe2o3_amqp_types::primitives::SimpleValue;
use time::Duration;
use time::OffsetDateTime;

use crate::same;
use crate::stage::Kept;
use crate::stage::SHORTLY;
use crate::stage::WAIT;
use crate::stage::body;
use crate::stage::client;
use crate::stage::drain;
use crate::stage::messages;
use crate::stage::promise;
use crate::stage::receiver;
use crate::stage::send;

pub(crate) async fn play() {
    promise("a_message_arrives_as_it_was_sent", a_message_arrives_as_it_was_sent()).await;
    promise("a_batch_arrives_whole_and_in_order", a_batch_arrives_whole_and_in_order()).await;
    promise(
        "an_abandoned_message_comes_again_and_is_counted",
        an_abandoned_message_comes_again_and_is_counted(),
    )
    .await;
    promise(
        "a_message_is_dead_lettered_after_its_last_delivery",
        a_message_is_dead_lettered_after_its_last_delivery(),
    )
    .await;
    promise("a_dead_letter_says_why_it_is_one", a_dead_letter_says_why_it_is_one()).await;
    promise("a_deferred_message_is_received_by_number_only", a_deferred_message_is_received_by_number_only())
        .await;
    promise("a_scheduled_message_comes_when_it_is_due", a_scheduled_message_comes_when_it_is_due()).await;
    promise("a_cancelled_message_never_comes", a_cancelled_message_never_comes()).await;
    promise("a_peek_takes_nothing", a_peek_takes_nothing()).await;
    promise("what_is_received_and_deleted_is_gone", what_is_received_and_deleted_is_gone()).await;
    promise("a_renewed_lock_lasts_longer", a_renewed_lock_lasts_longer()).await;
    promise("an_expired_message_does_not_come", an_expired_message_does_not_come()).await;
}

async fn a_message_arrives_as_it_was_sent() -> Kept {
    let mut client = client().await?;
    let mut message = ServiceBusMessage::new("order");
    message.set_message_id("m-1")?;
    message.set_subject("subject".to_owned());
    message.set_correlation_id("c-1".to_owned());
    message.set_content_type("text/plain".to_owned());
    message.set_reply_to("answers".to_owned());
    message.set_to("somebody".to_owned());
    let properties = message.application_properties_mut().get_or_insert_default();
    properties.insert("number".to_owned(), 7_i64.into());
    properties.insert("text".to_owned(), "seven".to_owned().into());
    send(&mut client, "queue", vec![message]).await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    same!(body(&message), "order");
    same!(message.message_id().as_deref(), Some("m-1"));
    same!(message.subject(), Some("subject"));
    same!(message.correlation_id().as_deref(), Some("c-1"));
    same!(message.content_type(), Some("text/plain"));
    same!((message.reply_to(), message.to()), (Some("answers"), Some("somebody")));
    let properties = message.application_properties().ok_or("it has no properties")?;
    same!(properties.0.get("number"), Some(&SimpleValue::Long(7)));
    // This client counts the delivery under way.
    same!(message.delivery_count(), Some(1));
    receiver.complete_message(&message).await?;
    same!(drain(&mut receiver).await?.len(), 0);
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_batch_arrives_whole_and_in_order() -> Kept {
    let mut client = client().await?;
    let mut sender = client.create_sender("queue", Default::default()).await?;
    let mut batch = sender.create_message_batch(CreateMessageBatchOptions::default())?;
    for number in 0..50 {
        batch.try_add_message(ServiceBusMessage::new(number.to_string())).map_err(|_| "the batch is full")?;
    }
    sender.send_message_batch(batch).await?;
    sender.dispose().await?;
    let options = ServiceBusReceiverOptions { prefetch_count: 20, ..ServiceBusReceiverOptions::default() };
    let mut receiver = client.create_receiver_for_queue("queue", options).await?;
    let received: Vec<String> = drain(&mut receiver).await?.iter().map(body).collect();
    same!(received, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn an_abandoned_message_comes_again_and_is_counted() -> Kept {
    let mut client = client().await?;
    send(&mut client, "queue", messages(["again"])).await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    let first = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.abandon_message(&first, None).await?;
    let second = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("it did not come again")?;
    same!((body(&second), second.delivery_count()), ("again".to_owned(), Some(2)));
    same!(second.sequence_number(), first.sequence_number());
    receiver.complete_message(&second).await?;
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_message_is_dead_lettered_after_its_last_delivery() -> Kept {
    let mut client = client().await?;
    send(&mut client, "twice", messages(["wrong"])).await?;
    let mut receiver = receiver(&mut client, "twice").await?;
    for _ in 0..2 {
        let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
        receiver.abandon_message(&message, None).await?;
    }
    same!(drain(&mut receiver).await?.len(), 0);
    let options = ServiceBusReceiverOptions { sub_queue: SubQueue::DeadLetter, ..Default::default() };
    let mut letters = client.create_receiver_for_queue("twice", options).await?;
    let letter = letters.receive_message_with_max_wait_time(WAIT).await?.ok_or("no dead letter")?;
    same!(letter.dead_letter_reason(), Some("MaxDeliveryCountExceeded"));
    letters.complete_message(&letter).await?;
    letters.dispose().await?;
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_dead_letter_says_why_it_is_one() -> Kept {
    let mut client = client().await?;
    send(&mut client, "queue", messages(["unread"])).await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    let options = DeadLetterOptions {
        dead_letter_reason: Some("unreadable".to_owned()),
        dead_letter_error_description: Some("it is no JSON".to_owned()),
        properties_to_modify: None,
    };
    receiver.dead_letter_message(&message, options).await?;
    let options = ServiceBusReceiverOptions { sub_queue: SubQueue::DeadLetter, ..Default::default() };
    let mut letters = client.create_receiver_for_queue("queue", options).await?;
    let letter = letters.receive_message_with_max_wait_time(WAIT).await?.ok_or("no dead letter")?;
    same!(body(&letter), "unread");
    same!(letter.dead_letter_reason(), Some("unreadable"));
    same!(letter.dead_letter_error_description(), Some("it is no JSON"));
    letters.complete_message(&letter).await?;
    same!(drain(&mut letters).await?.len(), 0);
    letters.dispose().await?;
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_deferred_message_is_received_by_number_only() -> Kept {
    let mut client = client().await?;
    send(&mut client, "queue", messages(["later"])).await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.defer_message(&message, None).await?;
    same!(drain(&mut receiver).await?.len(), 0);
    let deferred =
        receiver.receive_deferred_message(message.sequence_number()).await?.ok_or("it is not there")?;
    same!((body(&deferred), deferred.state()), ("later".to_owned(), ServiceBusMessageState::Deferred));
    receiver.complete_message(&deferred).await?;
    if receiver.receive_deferred_message(message.sequence_number()).await.is_ok_and(|found| found.is_some()) {
        return Err("it is there after it was completed".into());
    }
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_scheduled_message_comes_when_it_is_due() -> Kept {
    let mut client = client().await?;
    let mut sender = client.create_sender("queue", Default::default()).await?;
    let due = OffsetDateTime::now_utc() + Duration::milliseconds(1_500);
    let number = sender.schedule_message(ServiceBusMessage::new("due"), due).await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    same!(receiver.receive_message_with_max_wait_time(SHORTLY).await?.is_none(), true);
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    same!((body(&message), message.sequence_number()), ("due".to_owned(), number));
    same!(OffsetDateTime::now_utc() >= due, true);
    receiver.complete_message(&message).await?;
    receiver.dispose().await?;
    sender.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_cancelled_message_never_comes() -> Kept {
    let mut client = client().await?;
    let mut sender = client.create_sender("queue", Default::default()).await?;
    let due = OffsetDateTime::now_utc() + Duration::milliseconds(700);
    let numbers = sender.schedule_messages(messages(["one", "two", "three"]), due).await?;
    same!(numbers.len(), 3);
    sender.cancel_scheduled_message(numbers[0]).await?;
    sender.cancel_scheduled_messages([numbers[2]]).await?;
    same!(sender.cancel_scheduled_message(numbers[0]).await.is_err(), true);
    let mut receiver = receiver(&mut client, "queue").await?;
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.complete_message(&message).await?;
    same!((body(&message), drain(&mut receiver).await?.len()), ("two".to_owned(), 0));
    receiver.dispose().await?;
    sender.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_peek_takes_nothing() -> Kept {
    let mut client = client().await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    same!(receiver.peek_message(None).await?.is_none(), true);
    send(&mut client, "queue", messages(["one", "two", "three"])).await?;
    let first = receiver.peek_message(None).await?.ok_or("nothing is there")?;
    let seen = receiver.peek_messages(10, Some(first.sequence_number() + 1)).await?;
    let seen: Vec<&[u8]> = seen.iter().map(|message| message.body().unwrap_or_default()).collect();
    same!(seen, [b"two".as_slice(), b"three"]);
    let received: Vec<String> = drain(&mut receiver).await?.iter().map(body).collect();
    same!(received, ["one", "two", "three"]);
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn what_is_received_and_deleted_is_gone() -> Kept {
    let mut client = client().await?;
    send(&mut client, "queue", messages(["one", "two"])).await?;
    let options = ServiceBusReceiverOptions {
        receive_mode: ServiceBusReceiveMode::ReceiveAndDelete,
        ..ServiceBusReceiverOptions::default()
    };
    let mut deleting = client.create_receiver_for_queue("queue", options).await?;
    let mut received = Vec::new();
    while let Some(message) = deleting.receive_message_with_max_wait_time(SHORTLY).await? {
        received.push(body(&message));
    }
    same!(received, ["one", "two"]);
    deleting.dispose().await?;
    let mut receiver = receiver(&mut client, "queue").await?;
    same!(drain(&mut receiver).await?.len(), 0);
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_renewed_lock_lasts_longer() -> Kept {
    let mut client = client().await?;
    send(&mut client, "brief", messages(["slow"])).await?;
    let mut receiver = receiver(&mut client, "brief").await?;
    let mut message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    let before = message.locked_until().ok_or("it is not locked")?;
    for _ in 0..3 {
        // Longer than the lock, all in all.
        tokio::time::sleep(std::time::Duration::from_millis(800)).await;
        receiver.renew_message_lock(&mut message).await?;
    }
    same!(message.locked_until() > Some(before), true);
    receiver.complete_message(&message).await?;
    same!(drain(&mut receiver).await?.len(), 0);
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn an_expired_message_does_not_come() -> Kept {
    let mut client = client().await?;
    let mut message = ServiceBusMessage::new("brief");
    message.set_time_to_live(std::time::Duration::from_millis(200))?;
    send(&mut client, "queue", vec![message]).await?;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let mut receiver = receiver(&mut client, "queue").await?;
    same!(drain(&mut receiver).await?.len(), 0);
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}
