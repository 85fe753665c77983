//! Handlers that are handed nothing for a while: because of their rate, or because they cannot be started.

use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::engine::Counts;
use crate::engine::Queue;
use crate::handlers::dispatch::AnyHandler;
use crate::handlers::dispatch::Dispatch;
use crate::handlers::dispatch::DispatchPause;
use crate::handlers::exec::Exec;
use crate::handlers::group::REFUSED;
use crate::handlers::site::Site;
use crate::handlers::tests::stage::script;
use crate::id::QueueName;
use crate::message::Message;
use crate::processor::Processor;
use crate::queue::QueueOptions;
use crate::rate::Rate;
use crate::testing::ManualClock;

const SECOND: Duration = Duration::from_secs(1);

/// Counts as soon as they are so.
async fn until(queue: &Queue, wanted: impl Fn(&Counts) -> bool) -> Counts {
    loop {
        let counts = queue.view().await.unwrap().counts;
        if wanted(&counts) {
            return counts;
        }
        tokio::task::yield_now().await;
    }
}

async fn with_five(clock: &ManualClock) -> (crate::engine::Engine, Queue, tempfile::TempDir, Site) {
    let engine = crate::engine::Engine::in_memory().clock(clock.clone()).open().await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for number in 0..5 {
        queue.send(Message::new("body").workflow(format!("w{number}"))).await.unwrap();
    }
    let site = Site {
        queue: QueueName::new("q").unwrap(),
        store_id: format!("gated-{}", std::process::id()),
        sender_id: "sender".to_owned(),
        by_position: false,
        place: Arc::new(|_, message| Ok(message)),
        clock: Arc::new(clock.clone()),
    };
    (engine, queue, tempfile::TempDir::new().unwrap(), site)
}

fn exec(folder: &tempfile::TempDir, site: &Site) -> AnyHandler {
    AnyHandler::Exec(Exec::new(script(folder.path(), "exit 0"), site.clone()))
}

#[tokio::test]
async fn a_handler_is_handed_no_more_than_its_rate_and_the_rest_is_not_even_locked() {
    let clock = ManualClock::default();
    let (_engine, queue, folder, site) = with_five(&clock).await;
    let rate = Rate { burst: Some(2), ..Rate::per_second(1) };
    let dispatch = Dispatch::default().with(None, exec(&folder, &site)).paced(rate, Duration::ZERO);
    let dispatch = Arc::new(dispatch);
    let processor = Processor::new(queue.clone()).gate(dispatch.clone());
    let running = processor.start(Shared(dispatch.clone()));
    let counts = until(&queue, |counts| counts.completed == 2).await;
    assert_eq!((counts.ready, counts.locked), (3, 0));
    assert_eq!(dispatch.held_back(Duration::ZERO), Some(DispatchPause::ByRate { until: SECOND }));
    for completed in 3..=5 {
        clock.advance(SECOND);
        let counts = until(&queue, |counts| counts.completed == completed).await;
        assert_eq!(counts.locked, 0);
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn messages_whose_handler_cannot_be_started_are_given_back_uncounted_until_it_can() {
    let clock = ManualClock::default();
    let (_engine, queue, folder, site) = with_five(&clock).await;
    let dispatch = Arc::new(Dispatch::default().with(None, exec(&folder, &site)));
    REFUSED.set(Some(Errno::MFILE.raw_os_error()));
    let processor = Processor::new(queue.clone()).gate(dispatch.clone());
    let running = processor.start(Shared(dispatch.clone()));
    for _ in 0..20 {
        while dispatch.held_back(crate::clock::Clock::elapsed(&clock)).is_none() {
            tokio::task::yield_now().await;
        }
        until(&queue, |counts| counts.ready == 5).await;
        clock.advance(crate::limits::START_PAUSE_MAX);
    }
    let messages = queue.peek(crate::id::SequenceNumber::new(0), 10).await.unwrap();
    assert!(messages.iter().all(|message| message.delivery_count <= 1 && message.attempts.is_empty()));
    REFUSED.set(None);
    clock.advance(crate::limits::START_PAUSE_MAX);
    until(&queue, |counts| counts.completed == 5).await;
    running.stop().await.unwrap();
}

/// A dispatch that is asked by two.
struct Shared(Arc<Dispatch>);

impl crate::processor::Handler<crate::processor::Raw> for Shared {
    async fn handle(
        &self,
        context: crate::processor::Context,
        body: crate::processor::Raw,
    ) -> Result<crate::processor::Outcome, crate::processor::Failure> {
        self.0.handle(context, body).await
    }
}
