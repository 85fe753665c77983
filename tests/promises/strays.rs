//! After-order: messages whose predecessor is unknown, and what is remembered of a chain.

use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::delivery::Redriven;
use seriatim::error::OperateRefusal;
use seriatim::error::SendRefusal;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::view::HoldCause;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

#[tokio::test]
async fn a_stray_never_becomes_the_head() {
    for begins in [true, false] {
        let fixture = Fixture::new(strays(GapAction::Skip)).await;
        if begins {
            fixture.send_after("w", "a", None).await;
            assert_eq!(fixture.drain().await, ["a"]);
        }
        fixture.send_after("w", "d", Some("c")).await;
        fixture.send_after("w", "c", Some("b")).await;
        fixture.clock.advance(millis(9_999));
        assert_eq!(fixture.counts().await.early, 2);
        fixture.clock.advance(millis(1));
        assert_eq!(fixture.drain().await, [""; 0], "whether or not the chain has begun");
        let dead_letters = fixture.queue.dead_letters(None, 10).await.unwrap();
        let reasons: Vec<&str> =
            dead_letters.iter().map(|dead_letter| dead_letter.dead_letter.reason.as_str()).collect();
        assert_eq!(reasons, ["unknown_predecessor", "unknown_predecessor"]);
        if begins {
            fixture.send_after("w", "b", Some("a")).await;
            assert_eq!(fixture.drain().await, ["b"], "the chain goes on with its own successor");
        }
    }
}

fn strays(then: GapAction) -> QueueOptions {
    let gap = GapPolicy { wait: seconds(10), then };
    QueueOptions::default().order(Order::After).exhausted(ExhaustedPolicy::Skip).gap(gap)
}

#[tokio::test]
async fn a_stray_waits_from_when_the_chain_before_it_is_settled() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "a", None).await;
    fixture.send_after("w", "z", Some("y")).await;
    fixture.must().await.abandon_after(seconds(60), "later").await.unwrap();
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.counts().await.dead_lettered, 0, "a message that is being retried stops the clock");
    assert_eq!(fixture.drain().await, ["a"]);
    fixture.clock.advance(millis(9_999));
    assert_eq!(fixture.counts().await.dead_lettered, 0);
    fixture.clock.advance(millis(1));
    assert_eq!(fixture.counts().await.dead_lettered, 1);
}

#[tokio::test]
async fn each_stray_has_a_wait_of_its_own() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "m", Some("l")).await;
    fixture.clock.advance(seconds(6));
    fixture.send_after("w", "z", Some("y")).await;
    fixture.clock.advance(seconds(4));
    assert_eq!(fixture.counts().await.dead_lettered, 1);
    fixture.clock.advance(millis(5_999));
    assert_eq!(fixture.counts().await.dead_lettered, 1);
    fixture.clock.advance(millis(1));
    assert_eq!(fixture.counts().await.dead_lettered, 2);
}

#[tokio::test]
async fn a_stray_is_shown_by_a_hold_and_the_chain_goes_on_with_its_own_successor() {
    let fixture = Fixture::new(strays(GapAction::Hold)).await;
    fixture.send_after("w", "a", None).await;
    fixture.send_after("w", "z", Some("y")).await;
    assert_eq!(fixture.drain().await, ["a"]);
    fixture.clock.advance(seconds(10));
    assert!(
        matches!(fixture.status("w").await, Some(WorkflowStatus::Held(hold)) if hold.cause == HoldCause::Gap)
    );
    fixture.send_after("w", "b", Some("a")).await;
    assert_eq!(fixture.drain().await, ["b"]);
    fixture.send_after("w", "y", Some("b")).await;
    assert_eq!(fixture.drain().await, ["y", "z"]);
}

#[tokio::test]
async fn a_resend_in_after_order_is_recognised_however_long_the_chain_has_become() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "0", None).await;
    for number in 1..1_100_u32 {
        fixture.send_after("w", &number.to_string(), Some(&(number - 1).to_string())).await;
    }
    assert_eq!(fixture.drain().await.len(), 1_100);
    for (id, after) in [("0", None), ("1", Some("0")), ("7", Some("6"))] {
        let again = Message::new(id).workflow("w").message_id(id);
        let again = after.map_or(again.clone().first(), |after| again.after(after));
        assert_eq!(fixture.queue.send(again).await.unwrap(), Receipt::AlreadySettled, "{id}");
    }
    let second = Message::new("x").workflow("w").message_id("x").first();
    let refused = fixture.queue.send(second).await.unwrap_err();
    assert!(
        matches!(refused.refusal(), Some(SendRefusal::PlaceTaken { .. })),
        "a workflow has one first message"
    );
}

#[tokio::test]
async fn what_waits_for_a_predecessor_is_listed_and_the_missing_one_is_named() {
    let fixture = Fixture::new(strays(GapAction::Hold)).await;
    fixture.send_after("w", "a", None).await;
    for (id, after) in [("f", "e"), ("d", "c"), ("c", "b"), ("g", "f")] {
        fixture.send_after("w", id, Some(after)).await;
    }
    assert_eq!(listed(&fixture).await, ["a", "f", "g", "c", "d"], "chain by chain behind the live one");
    assert_eq!(fixture.drain().await, ["a"]);
    let view = fixture.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    let missing = view.gap.and_then(|gap| gap.missing_predecessor);
    assert_eq!(missing.map(|id| id.to_string()).as_deref(), Some("e"), "that of the first that came");
    fixture.clock.advance(seconds(10));
    let view = fixture.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    assert!(matches!(view.status, WorkflowStatus::Held(_)));
    assert!(view.gap.is_some_and(|gap| gap.missing_predecessor.is_some()), "also while it is held for that");
}

#[tokio::test]
async fn messages_that_name_each_other_in_a_circle_are_listed_once() {
    let fixture = Fixture::new(strays(GapAction::Wait)).await;
    fixture.send_after("w", "x", Some("y")).await;
    fixture.send_after("w", "y", Some("x")).await;
    let mut listed = listed(&fixture).await;
    listed.sort();
    assert_eq!(listed, ["x", "y"]);
}

#[tokio::test]
async fn an_id_stands_once_in_a_chain_that_ends_with_a_stray_of_the_same_id() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "b", Some("c")).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.counts().await.dead_lettered, 1, "nobody knows its predecessor");
    fixture.send_after("w", "a", None).await;
    let standing = fixture.queue.send(after("b", "a")).await.unwrap().sequence_number().unwrap();
    fixture.send_after("w", "c", Some("b")).await;
    let refused = fixture.queue.send(after("b", "d")).await.unwrap_err();
    let refusal = SendRefusal::PlaceTaken { index: 0, by: standing };
    assert_eq!(refused.to_string(), refusal.to_string());
    assert_eq!(fixture.drain().await, ["a", "b", "c"]);
}

fn after(id: &str, predecessor: &str) -> Message {
    Message::new(id.to_owned()).workflow("w").message_id(id).after(predecessor)
}

async fn listed(fixture: &Fixture) -> Vec<String> {
    let messages = fixture.queue.workflow("w").expect("a good ID").messages(0, 100).await.expect("listed");
    messages.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect()
}

#[tokio::test]
async fn a_stray_that_was_given_up_comes_back_once_its_predecessor_is_known() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "a", None).await;
    let stray = fixture.send_after("w", "c", Some("b")).await;
    assert_eq!(fixture.drain().await, ["a"]);
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.counts().await.dead_lettered, 1);

    let refused = fixture.queue.redrive(stray).await.unwrap_err();
    let expected = OperateRefusal::PredecessorUnknown(stray, seriatim::MessageId::new("b").unwrap());
    assert_eq!(refused.refusal(), Some(&expected), "{refused}");
    assert!(!refused.to_string().contains("--position"), "{refused}");

    fixture.send_after("w", "b", Some("a")).await;
    assert_eq!(fixture.queue.redrive(stray).await.unwrap(), Redriven::InPlace);
    fixture.send_after("w", "d", Some("c")).await;
    assert_eq!(fixture.drain().await, ["b", "c", "d"]);
}

#[tokio::test]
async fn a_stray_does_not_come_back_before_what_was_completed() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "a", None).await;
    let stray = fixture.send_after("w", "c", Some("b")).await;
    assert_eq!(fixture.drain().await, ["a"]);
    fixture.clock.advance(seconds(10));
    fixture.send_after("w", "b", Some("a")).await;
    fixture.send_after("w", "d", Some("c")).await;
    assert_eq!(fixture.drain().await, ["b", "d"], "the chain goes past what was given up");
    let refused = fixture.queue.redrive(stray).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&OperateRefusal::PlacePassed(stray)));
}

#[tokio::test]
async fn strays_that_follow_each_other_come_back_in_their_order() {
    let fixture = Fixture::new(strays(GapAction::Skip)).await;
    fixture.send_after("w", "a", None).await;
    let first = fixture.send_after("w", "c", Some("b")).await;
    let second = fixture.send_after("w", "d", Some("c")).await;
    assert_eq!(fixture.drain().await, ["a"]);
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.counts().await.dead_lettered, 2);
    let refused = fixture.queue.redrive(second).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(OperateRefusal::PredecessorUnknown(..))), "{refused}");
    fixture.send_after("w", "b", Some("a")).await;
    for stray in [first, second] {
        assert_eq!(fixture.queue.redrive(stray).await.unwrap(), Redriven::InPlace);
    }
    assert_eq!(fixture.drain().await, ["b", "c", "d"]);
}
