//! Who asks for work while the inbox is full waits for room, and may be told meanwhile that it is enough.

use std::future::Future;
use std::pin::pin;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::engine::inbox::Inbox;
use crate::engine::inbox::InboxReceiver;
use crate::engine::inbox::Request;
use crate::engine::inbox::inbox;
use crate::engine::letter::WorkWait;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::verbs::Receive;
use crate::error::ReceiveRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::token::LockToken;

type Answered = Result<Result<Vec<LockedMessage>, ReceiveRefusal>, Unavailable>;

/// An inbox whose only request takes all the room there is.
fn full_inbox() -> (Inbox, InboxReceiver) {
    let (inbox, receiver) = inbox();
    let bytes = limits::INBOX_MAX * limits::INBOX_PLACE_BYTES;
    let posted = poll_once(&mut pin!(inbox.post(Request::Wake, bytes)));
    assert!(matches!(posted, Poll::Ready(Ok(_))));
    (inbox, receiver)
}

async fn receive(inbox: Inbox, enough: oneshot::Receiver<()>) -> Answered {
    let token = LockToken::new(1, [7; 12]);
    let verb = Receive { queue: QueueName::new("q").unwrap(), max: 1, token };
    let work_wait = WorkWait::new(&verb, Duration::from_secs(60));
    inbox.ask_until(verb, token, work_wait, async { enough.await.unwrap_or_default() }).await
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_receiver_that_waits_for_room_is_let_in_when_there_is_some() {
    let (inbox, mut receiver) = full_inbox();
    let (_hurry, enough) = oneshot::channel();
    let mut receiving = pin!(receive(inbox, enough));
    assert!(poll_once(&mut receiving).is_pending());
    assert!(matches!(receiver.take(), Some(Request::Wake)));
    assert!(receiver.take().is_none(), "there was no room for it yet");
    receiver.make_room();
    assert!(matches!(receiver.take(), Some(Request::Ask(_))));
}

#[test]
fn a_receiver_that_waits_for_room_and_has_waited_enough_is_answered_at_once() {
    let (inbox, mut receiver) = full_inbox();
    let (hurry, enough) = oneshot::channel();
    let mut receiving = pin!(receive(inbox, enough));
    assert!(poll_once(&mut receiving).is_pending());
    hurry.send(()).unwrap();
    let Poll::Ready(Ok(Ok(handed))) = poll_once(&mut receiving) else { panic!("it waits for nothing") };
    assert!(handed.is_empty());
    assert!(matches!(receiver.take(), Some(Request::Wake)));
    receiver.make_room();
    assert!(receiver.take().is_none(), "nothing of it is left");
}
