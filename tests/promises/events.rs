//! What listeners to events are promised: an end, and what is kept for those who are slow.

use seriatim::QueueOptions;
use seriatim::event::EventKind;

use crate::promises::fixture::Fixture;

#[tokio::test]
async fn events_end_with_the_engine_whatever_handles_there_are_and_not_before_all_were_read() {
    let Fixture { engine, clock: _clock, queue } = Fixture::new(QueueOptions::default()).await;
    let mut events = engine.events();
    queue.workflow("w").unwrap().hold("closed").await.unwrap();
    engine.close().await;
    let event = events.next().await.expect("it happened before the end").expect("one event is kept");
    assert!(matches!(event.kind, EventKind::Held { .. }), "{event:?}");
    assert!(events.next().await.is_none());
    assert!(queue.view().await.is_err(), "a handle lives on, and nothing answers it");
}

#[tokio::test]
async fn who_looks_for_events_too_late_finds_those_that_are_kept() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let mut events = fixture.engine.events();
    let workflow = fixture.queue.workflow("w").unwrap();
    for _ in 0..=seriatim::limits::EVENTS_KEPT / 2 {
        workflow.hold("again").await.unwrap();
        workflow.resume().await.unwrap();
    }
    assert!(events.try_next().is_some());
    assert!(events.try_next().is_some());
}
