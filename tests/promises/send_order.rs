//! Messages of one task are accepted in the order in which their sends were first polled.

use std::future::Future;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::SendError;
use seriatim::limits;

use crate::promises::fixture::Fixture;

type Send<'a> = Pin<Box<dyn Future<Output = Result<Receipt, SendError>> + 'a>>;

/// Polls all of them again and again, the first first, as long as one is not done.
async fn join(sends: Vec<Send<'_>>) -> Vec<u64> {
    let mut sends: Vec<(Send<'_>, Option<u64>)> = sends.into_iter().map(|send| (send, None)).collect();
    poll_fn(|context| {
        for (send, number) in sends.iter_mut().filter(|(_, number)| number.is_none()) {
            if let Poll::Ready(receipt) = send.as_mut().poll(context) {
                *number = receipt.expect("it is accepted").sequence_number().map(|number| number.get());
            }
        }
        if sends.iter().all(|(_, number)| number.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    sends.into_iter().filter_map(|(_, number)| number).collect()
}

async fn joined(count: usize, body: &[u8]) -> Vec<u64> {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let send = |_| Box::pin(fixture.queue.send(Message::new(body.to_vec()))) as Send<'_>;
    join((0..count).map(send).collect()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_joined_sends_keep_their_order() {
    assert!(joined(200, b"").await.is_sorted());
}

#[tokio::test(flavor = "multi_thread")]
async fn joined_sends_keep_their_order_when_the_inbox_is_full() {
    assert!(joined(limits::INBOX_MAX + 1_000, b"").await.is_sorted());
    let large = vec![0; 8 * limits::INBOX_PLACE_BYTES];
    assert!(joined(600, &large).await.is_sorted(), "each takes nine places");
}

#[tokio::test]
async fn a_send_that_is_dropped_while_it_waits_for_room_keeps_nobody_waiting() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let send = |_| Box::pin(fixture.queue.send(Message::new("x"))) as Send<'_>;
    let mut sends: Vec<Send<'_>> = (0..limits::INBOX_MAX + 500).map(send).collect();
    poll_fn(|context| {
        for send in &mut sends {
            let _ = send.as_mut().poll(context);
        }
        Poll::Ready(())
    })
    .await;
    drop(sends);
    fixture.send("w", "afterwards").await;
}
