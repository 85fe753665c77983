//! Transactions that miss a part whose client waits for no answer.

use crate::amqp::Value;
use crate::limits;
use crate::service_bus::tests::transactions::ROLLED_BACK;
use crate::service_bus::tests::transactions::SENDER;
use crate::service_bus::tests::transactions::Transacting;
use crate::service_bus::tests::transactions::accepted;
use crate::service_bus::tests::transactions::host_with_queue;
use crate::service_bus::tests::transactions::in_transaction;
use crate::service_bus::tests::transactions::stored;
use crate::service_bus::tests::transactions::unordered;
use crate::service_bus::tests::wire::DETACH;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::NONE;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::data;

#[tokio::test]
async fn a_transaction_without_a_part_that_its_client_has_settled_does_nothing() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let (_, mut transacting, transaction) = Transacting::holding_one(&host, "to").await;
    for _ in 0..limits::TRANSACTION_STEPS_MAX {
        transacting.send(&transaction, b"y").await;
    }
    // It is one more than a transaction has: what its client settles at once is refused without an answer.
    let settled = Value::Boolean(true);
    let state = in_transaction(&transaction, accepted());
    let fields = vec![settled.clone(), Value::Uint(0), Value::Uint(0), settled, state];
    transacting.client.say(DISPOSITION, fields).await;
    let ended = transacting.client.another_answer().await;
    assert_eq!((ended.code, ended.error(2).0.as_str()), (DETACH, "amqp:resource-limit-exceeded"));
    assert_eq!(transacting.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    assert_eq!(stored(&to).await, (0, 0, 0));
}

#[tokio::test]
async fn a_transaction_without_a_message_that_was_too_large_for_its_link_does_nothing() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let (_, mut transacting, transaction) = Transacting::holding_one(&host, "to").await;
    transacting.send(&transaction, b"y").await;
    let large = data(&vec![0; usize::try_from(limits::SERVICE_BUS_MESSAGE_BYTES_MAX).unwrap() + 1]);
    transacting.client.transfer_as(SENDER, (true, in_transaction(&transaction, NONE)), 0, &large).await;
    assert_eq!(transacting.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    assert_eq!(stored(&to).await, (0, 0, 0));
}

#[tokio::test]
async fn a_transaction_without_a_request_that_no_transaction_can_have_does_nothing() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let (_, mut transacting, transaction) = Transacting::holding_one(&host, "to").await;
    transacting.send(&transaction, b"y").await;
    transacting.client.manage("q").await;
    transacting.client.transfer_as(101, (true, in_transaction(&transaction, NONE)), 0, &data(b"x")).await;
    let ended = transacting.client.another_answer().await;
    assert_eq!((ended.code, ended.error(2).0.as_str()), (DETACH, "amqp:not-implemented"));
    assert_eq!(transacting.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    assert_eq!(stored(&to).await, (0, 0, 0));
}

#[tokio::test]
async fn a_transaction_without_the_end_of_a_delivery_that_had_ended_does_nothing() {
    let host = host_with_queue().await;
    let to = host.queue("to", unordered()).await;
    let (_, mut transacting, transaction) = Transacting::holding_one(&host, "to").await;
    transacting.send(&transaction, b"y").await;
    let (settled, never_sent) = (Value::Boolean(true), Value::Uint(5));
    let state = in_transaction(&transaction, accepted());
    let fields = vec![settled.clone(), never_sent.clone(), never_sent, settled, state];
    transacting.client.say(DISPOSITION, fields).await;
    assert_eq!(transacting.discharge(&transaction, false).await, (REJECTED, ROLLED_BACK.to_owned()));
    assert_eq!(stored(&to).await, (0, 0, 0));
}
