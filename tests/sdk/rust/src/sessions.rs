//! Sessions: one holder each, in order, with a state.

use azservicebus::ServiceBusMessage;
use azservicebus::ServiceBusSessionReceiver;
use azservicebus::ServiceBusSessionReceiverOptions;

use crate::same;
use crate::stage::Client;
use crate::stage::Kept;
use crate::stage::SHORTLY;
use crate::stage::WAIT;
use crate::stage::body;
use crate::stage::client;
use crate::stage::promise;
use crate::stage::send;

pub(crate) async fn play() {
    promise("a_session_is_received_in_order_by_its_holder", a_session_is_received_in_order_by_its_holder())
        .await;
    promise("the_next_session_is_one_that_nobody_holds", the_next_session_is_one_that_nobody_holds()).await;
    promise("the_state_of_a_session_outlives_its_messages", the_state_of_a_session_outlives_its_messages())
        .await;
    promise("a_message_without_a_session_is_refused", a_message_without_a_session_is_refused()).await;
    promise("a_message_is_deferred_in_its_session", a_message_is_deferred_in_its_session()).await;
}

fn of_session(
    session: &str,
    body: &str,
) -> Result<ServiceBusMessage, Box<dyn std::error::Error + Send + Sync>> {
    let mut message = ServiceBusMessage::new(body);
    message.set_session_id(session.to_owned())?;
    Ok(message)
}

async fn take(
    client: &mut Client,
    session: &str,
) -> Result<ServiceBusSessionReceiver, Box<dyn std::error::Error + Send + Sync>> {
    let options = ServiceBusSessionReceiverOptions::default();
    Ok(client.accept_session_for_queue("sessions", session, options).await?)
}

async fn a_session_is_received_in_order_by_its_holder() -> Kept {
    let mut client = client().await?;
    let mut sent = Vec::new();
    for number in 0..10 {
        sent.push(of_session("odd", &(2 * number + 1).to_string())?);
        sent.push(of_session("even", &(2 * number).to_string())?);
    }
    // A batch is of one session, so each goes alone.
    let mut sender = client.create_sender("sessions", Default::default()).await?;
    for message in sent {
        sender.send_message(message).await?;
    }
    sender.dispose().await?;
    for (session, first) in [("odd", 1), ("even", 0)] {
        let mut receiver = take(&mut client, session).await?;
        same!(receiver.session_id(), session);
        same!(take(&mut client, session).await.is_err(), true);
        let mut received = Vec::new();
        while let Some(message) = receiver.receive_message_with_max_wait_time(SHORTLY).await? {
            received.push(body(&message));
            receiver.complete_message(&message).await?;
        }
        same!(received, (0..10).map(|number| (2 * number + first).to_string()).collect::<Vec<_>>());
        receiver.dispose().await?;
    }
    Ok(client.dispose().await?)
}

async fn the_next_session_is_one_that_nobody_holds() -> Kept {
    let mut client = client().await?;
    for session in ["a", "b"] {
        send(&mut client, "sessions", vec![of_session(session, session)?]).await?;
    }
    let mut first = client.accept_next_session_for_queue("sessions", Default::default()).await?;
    let mut second = client.accept_next_session_for_queue("sessions", Default::default()).await?;
    same!((first.session_id(), second.session_id()), ("a", "b"));
    for receiver in [&mut first, &mut second] {
        let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
        same!(message.session_id(), Some(receiver.session_id()));
        receiver.complete_message(&message).await?;
    }
    first.dispose().await?;
    second.dispose().await?;
    Ok(client.dispose().await?)
}

async fn the_state_of_a_session_outlives_its_messages() -> Kept {
    let mut client = client().await?;
    send(&mut client, "sessions", vec![of_session("kept", "x")?]).await?;
    let mut receiver = take(&mut client, "kept").await?;
    let message = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.set_session_state(b"step 3".to_vec()).await?;
    receiver.complete_message(&message).await?;
    let before = receiver.session_locked_until();
    receiver.renew_session_lock().await?;
    same!(receiver.session_locked_until() >= before, true);
    receiver.dispose().await?;
    let mut receiver = take(&mut client, "kept").await?;
    same!(receiver.session_state().await?, b"step 3".to_vec());
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_message_without_a_session_is_refused() -> Kept {
    let mut client = client().await?;
    let mut sender = client.create_sender("sessions", Default::default()).await?;
    same!(sender.send_message(ServiceBusMessage::new("x")).await.is_err(), true);
    sender.dispose().await?;
    Ok(client.dispose().await?)
}

async fn a_message_is_deferred_in_its_session() -> Kept {
    let mut client = client().await?;
    send(&mut client, "sessions", vec![of_session("later", "1")?, of_session("later", "2")?]).await?;
    let mut receiver = take(&mut client, "later").await?;
    let first = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.defer_message(&first, None).await?;
    let second = receiver.receive_message_with_max_wait_time(WAIT).await?.ok_or("nothing came")?;
    receiver.complete_message(&second).await?;
    same!((body(&first), body(&second)), ("1".to_owned(), "2".to_owned()));
    let deferred =
        receiver.receive_deferred_message(first.sequence_number()).await?.ok_or("it is not there")?;
    same!(body(&deferred), "1");
    receiver.complete_message(&deferred).await?;
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}
