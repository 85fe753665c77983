//! What a processor promises of messages that wait for who has taken them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Clock;
use crate::processor::Outcome;
use crate::processor::tests::Notice;
use crate::processor::tests::RENEW_FOR;
use crate::processor::tests::Stage;

/// How often the clock is moved at most.
const STEPS_MAX: usize = 10_000;

#[tokio::test]
async fn what_waits_for_its_taker_keeps_its_lock_and_has_its_whole_time_when_it_begins() {
    let mut stage = Stage::new(&["w"]).await;
    stage.waits.store(true, Ordering::SeqCst);
    let taken = stage.taken().await;
    nothing_is_said_for(&mut stage, RENEW_FOR * 5 / 6).await;
    stage.waits.store(false, Ordering::SeqCst);
    nothing_is_said_for(&mut stage, RENEW_FOR).await;
    while stage.signalled.is_empty() {
        stage.clock.advance(Duration::from_secs(1));
        stage.queue.view().await.unwrap();
    }
    // It may be handed out again before that is told.
    let mut told = vec![stage.signalled.recv().await.expect("something was told")];
    while let Some(Notice::Take(_)) = told.last() {
        told.push(stage.signalled.recv().await.expect("its time is over"));
    }
    assert!(matches!(told.last(), Some(Notice::Cancel(number)) if *number == taken[0].number()));
}

/// Moves the clock on, and checks that the taker is told nothing meanwhile.
async fn nothing_is_said_for(stage: &mut Stage, span: Duration) {
    let until = stage.clock.now() + span;
    for _ in 0..STEPS_MAX {
        if stage.clock.now() >= until {
            return;
        }
        stage.go_on().await;
        assert!(stage.signalled.is_empty(), "its lock is lost");
    }
    panic!("the clock stands before the end of a lock that nobody renews");
}

#[tokio::test]
async fn what_waits_as_long_as_a_handler_may_run_is_given_back_uncounted() {
    let mut stage = Stage::new(&["w"]).await;
    stage.waits.store(true, Ordering::SeqCst);
    let taken = stage.taken().await;
    let handed_out = stage.clock.now();
    let late = RENEW_FOR + Duration::from_secs(2);
    // The clock stands before it is late: whoever gives back may have to wait for a processor.
    let told = stage.notice_before(handed_out + (late - Duration::from_millis(250)));
    let notice = tokio::time::timeout(Duration::from_secs(60), told).await;
    let Ok(Notice::GiveBack(number)) = notice else { panic!("it is not given back") };
    assert_eq!(number, taken[0].number());
    let waited = stage.clock.now().since(handed_out);
    assert!((RENEW_FOR..late).contains(&waited), "after {waited:?}");
    taken.into_iter().for_each(|assignment| assignment.end(Ok(Outcome::Release)));
    let again = stage.taken().await;
    assert_eq!(again[0].context().attempt(), 1);
}
