//! What holds for what is known of workflows in trouble.

use std::time::Duration;

use crate::api::views::BlockedCause;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::daemon::blocked_monitor::BlockedMonitor;
use crate::daemon::blocked_monitor::Moment;
use crate::daemon::membership::Membership;
use crate::engine::Abandon;
use crate::engine::Delivery;
use crate::engine::Engine;
use crate::engine::Event;
use crate::engine::EventKind;
use crate::engine::Events;
use crate::engine::Queue;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::message::Message;
use crate::queue::ExhaustedPolicy;
use crate::queue::QueueOptions;
use crate::testing::ManualClock;

/// The causes of all troubles.
fn causes(monitor: &BlockedMonitor) -> Vec<BlockedCause> {
    monitor.count(Duration::ZERO).by_cause.into_keys().map(|(_, cause)| cause).collect()
}

#[tokio::test]
async fn what_a_consumer_set_aside_is_no_trouble_whatever_was_before_and_waits_behind() {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let (client, here, monitor) = (engine.client(), Membership::default(), BlockedMonitor::default());
    let options = QueueOptions { hold_on_defer: true, ..QueueOptions::by_position() };
    let queue = client.create_queue("orders", options).await.unwrap();
    let send = async |position| {
        queue.send(Message::new("x").workflow("order-17").position(position)).await.unwrap();
    };
    let receive = async || queue.receive(Duration::ZERO).await.unwrap().expect("it is ready");
    let look = async || {
        monitor.walk(client, &here, Moment::of(client)).await.unwrap();
        monitor.look_again(client, &here, Moment::of(client)).await.unwrap();
        causes(&monitor)
    };
    send(1).await;
    let hour = Duration::from_secs(3600);
    receive().await.abandon_with(Abandon::after(hour)).await.unwrap();
    assert_eq!(look().await, [BlockedCause::Retry]);
    clock.advance(hour);
    receive().await.defer().await.unwrap();
    assert_eq!(look().await, [], "whoever tried it again wants it to wait");
    send(3).await;
    assert_eq!(look().await, [], "the second is missing, but not what is waited for");
}

/// Since when troubles are there that were not notified yet; and how many are over that were.
fn notices(monitor: &BlockedMonitor, elapsed: Duration) -> (Vec<Timestamp>, usize) {
    let queue = QueueName::new("orders").unwrap();
    let unreported = monitor.take_unreported(&queue, Duration::ZERO, elapsed);
    for (workflow, trouble) in &unreported {
        monitor.end_notice(&queue, workflow, trouble.since, true);
    }
    (unreported.into_iter().map(|(_, trouble)| trouble.since).collect(), monitor.take_recovered().len())
}

const MINUTE: Duration = Duration::from_secs(60);

/// A workflow, and what is known of its troubles: by events or by walks, and by looks.
struct LookedAtWorkflow {
    engine: Engine,
    clock: ManualClock,
    queue: Queue,
    /// `None` if its troubles are found by walks only.
    events: Option<Events>,
    monitor: BlockedMonitor,
}

impl LookedAtWorkflow {
    async fn new(options: QueueOptions, by_event: bool) -> LookedAtWorkflow {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("orders", options).await.unwrap();
        let events = by_event.then(|| engine.client().events());
        LookedAtWorkflow { engine, clock, queue, events, monitor: BlockedMonitor::default() }
    }

    /// One whose first message has just failed, and since when.
    async fn failing(by_event: bool) -> (LookedAtWorkflow, Timestamp) {
        let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), by_event).await;
        let began = workflow.clock.now();
        workflow.send(1).await;
        workflow.fail().await;
        assert_eq!(workflow.look().await, (vec![began], 0));
        (workflow, began)
    }

    async fn send(&self, position: u64) {
        self.queue.send(Message::new("x").workflow("order-17").position(position)).await.unwrap();
    }

    async fn receive(&self) -> Delivery {
        self.queue.receive(Duration::ZERO).await.unwrap().expect("it is ready")
    }

    /// Lets its next message fail, which is tried again in a minute.
    async fn fail(&self) {
        self.receive().await.abandon_with(Abandon::after(MINUTE)).await.unwrap();
    }

    async fn look(&mut self) -> (Vec<Timestamp>, usize) {
        self.see().await;
        notices(&self.monitor, self.engine.client().elapsed())
    }

    async fn walk(&self) {
        let client = self.engine.client();
        self.monitor.walk(client, &Membership::default(), Moment::of(client)).await.unwrap();
    }

    async fn see(&mut self) {
        let (client, here) = (self.engine.client(), Membership::default());
        match &mut self.events {
            Some(events) => std::iter::from_fn(|| events.try_next())
                .for_each(|event| self.monitor.note(&event, Moment::of(client))),
            None => self.walk().await,
        }
        self.monitor.look_again(client, &here, Moment::of(client)).await.unwrap();
    }

    /// Since when the troubles are there whose notices are to be sent now.
    fn send_notices(&self) -> Vec<Timestamp> {
        let elapsed = self.engine.client().elapsed();
        let unreported = self.monitor.take_unreported(self.queue.name(), Duration::ZERO, elapsed);
        unreported.into_iter().map(|(_, trouble)| trouble.since).collect()
    }

    fn end_notice(&self, since: Timestamp, has_arrived: bool) {
        let order = WorkflowId::new("order-17").unwrap();
        self.monitor.end_notice(self.queue.name(), &order, since, has_arrived);
    }

    fn age(&self) -> Duration {
        self.monitor.count(self.engine.client().elapsed()).age_max
    }
}

#[tokio::test]
async fn a_gap_behind_a_message_that_failed_is_another_trouble() {
    for by_event in [false, true] {
        let (mut workflow, began) = LookedAtWorkflow::failing(by_event).await;
        workflow.clock.advance(MINUTE);
        workflow.send(3).await;
        assert_eq!(workflow.look().await, (vec![], 0), "it is still the message");
        workflow.receive().await.complete().await.unwrap();
        assert_eq!(workflow.look().await, (vec![began + MINUTE], 1));
        assert_eq!(workflow.age(), Duration::ZERO);
    }
}

#[tokio::test]
async fn an_event_of_a_gap_ends_the_trouble_of_the_message_before_it() {
    let (workflow, began) = LookedAtWorkflow::failing(true).await;
    let (queue, order) = (workflow.queue.name().clone(), WorkflowId::new("order-17").unwrap());
    let (at, kind) = (began + HOUR, EventKind::Gap { since: began + MINUTE });
    let event = Event { at, queue, workflow: Some(order), sequence_number: None, kind };
    let client = workflow.engine.client();
    workflow.monitor.note(&event, Moment::of(client));
    assert_eq!(notices(&workflow.monitor, client.elapsed()), (vec![began + MINUTE], 1));
}

#[tokio::test]
async fn a_message_that_fills_a_gap_and_fails_at_once_is_another_trouble() {
    for by_event in [false, true] {
        let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), by_event).await;
        let began = workflow.clock.now();
        workflow.send(2).await;
        // No event says of a gap before its wait is over.
        workflow.walk().await;
        assert_eq!(workflow.look().await, (vec![began], 0));
        workflow.clock.advance(MINUTE);
        workflow.send(1).await;
        workflow.fail().await;
        assert_eq!(workflow.look().await, (vec![began + MINUTE], 1));
    }
}

#[tokio::test]
async fn a_gap_is_one_trouble_whatever_fails_before_it() {
    for by_event in [false, true] {
        let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), by_event).await;
        let began = workflow.clock.now();
        for position in [1, 3] {
            workflow.send(position).await;
        }
        workflow.walk().await;
        assert_eq!(workflow.look().await, (vec![began], 0));
        workflow.fail().await;
        assert_eq!(workflow.look().await, (vec![], 0), "a message fails before it");
        workflow.clock.advance(MINUTE);
        workflow.receive().await.complete().await.unwrap();
        assert_eq!(workflow.look().await, (vec![], 0), "that message is done");
        assert_eq!(workflow.age(), MINUTE);
    }
}

#[tokio::test]
async fn a_message_that_fails_is_one_trouble_whatever_gaps_come_and_go_behind_it() {
    for by_event in [false, true] {
        let (mut workflow, _) = LookedAtWorkflow::failing(by_event).await;
        workflow.send(3).await;
        workflow.clock.advance(MINUTE);
        let mut delivery = workflow.receive().await;
        assert_eq!(workflow.look().await, (vec![], 0), "it is tried, and a gap is behind it");
        for position in [2, 5] {
            workflow.send(position).await;
        }
        assert_eq!(workflow.look().await, (vec![], 0), "another gap is behind it");
        delivery.abandon_with(Abandon::after(MINUTE)).await.unwrap();
        assert_eq!(workflow.look().await, (vec![], 0), "it has failed again");
        assert_eq!(workflow.age(), MINUTE);
    }
}

#[tokio::test]
async fn a_message_that_fails_at_once_after_a_hold_is_another_trouble() {
    for by_event in [false, true] {
        let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), by_event).await;
        let began = workflow.clock.now();
        workflow.send(1).await;
        let order = workflow.queue.workflow("order-17").unwrap();
        order.hold("why").await.unwrap();
        assert_eq!(workflow.look().await, (vec![began], 0));
        workflow.clock.advance(MINUTE);
        order.resume().await.unwrap();
        workflow.fail().await;
        assert_eq!(workflow.look().await, (vec![began + MINUTE], 1));
    }
}

#[tokio::test]
async fn a_workflow_that_is_held_for_the_message_that_failed_has_not_recovered() {
    for exhausted in [ExhaustedPolicy::Hold, ExhaustedPolicy::Quarantine] {
        for by_event in [false, true] {
            let options = QueueOptions::by_position().delivery_count_max(2).exhausted(exhausted);
            let mut workflow = LookedAtWorkflow::new(options, by_event).await;
            let began = workflow.clock.now();
            for position in [1, 2] {
                workflow.send(position).await;
            }
            workflow.fail().await;
            assert_eq!(workflow.look().await, (vec![began], 0));
            workflow.clock.advance(MINUTE);
            workflow.fail().await;
            assert_eq!(workflow.look().await, (vec![], 0), "{exhausted:?}");
            assert_eq!(causes(&workflow.monitor), [BlockedCause::Held]);
        }
    }
}

#[tokio::test]
async fn a_recovery_is_told_after_the_notice_of_its_trouble_has_arrived_and_never_without() {
    for has_arrived in [false, true] {
        let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), true).await;
        let began = workflow.clock.now();
        workflow.send(1).await;
        workflow.fail().await;
        workflow.see().await;
        assert_eq!(workflow.send_notices(), [began]);
        workflow.clock.advance(MINUTE);
        workflow.receive().await.complete().await.unwrap();
        workflow.see().await;
        assert_eq!(workflow.monitor.take_recovered().len(), 0, "its notice is under way");
        workflow.end_notice(began, has_arrived);
        assert_eq!(workflow.monitor.take_recovered().len(), usize::from(has_arrived));
    }
}

#[tokio::test]
async fn a_notice_that_fails_says_nothing_of_the_trouble_that_came_after() {
    let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), true).await;
    let began = workflow.clock.now();
    for position in [1, 2] {
        workflow.send(position).await;
    }
    workflow.fail().await;
    workflow.see().await;
    assert_eq!(workflow.send_notices(), [began]);
    workflow.clock.advance(MINUTE);
    workflow.receive().await.complete().await.unwrap();
    workflow.fail().await;
    workflow.see().await;
    assert_eq!(workflow.send_notices(), [], "the first notice is under way");
    workflow.end_notice(began, false);
    assert_eq!(workflow.send_notices(), [began + MINUTE]);
    workflow.end_notice(began + MINUTE, true);
    workflow.end_notice(began, false);
    assert_eq!(workflow.send_notices(), [], "the second has arrived");
    assert_eq!(workflow.monitor.take_recovered().len(), 0, "the first has not");
}

#[tokio::test]
async fn a_notice_that_fails_is_sent_again() {
    let mut workflow = LookedAtWorkflow::new(QueueOptions::by_position(), true).await;
    let began = workflow.clock.now();
    workflow.send(1).await;
    workflow.fail().await;
    workflow.see().await;
    assert_eq!(workflow.send_notices(), [began]);
    assert_eq!(workflow.send_notices(), [], "it is under way");
    workflow.end_notice(began, false);
    assert_eq!(workflow.send_notices(), [began]);
}

#[tokio::test]
async fn when_the_next_message_fails_at_once_one_trouble_is_over_and_another_begins() {
    for by_event in [false, true] {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let (client, here, monitor) = (engine.client(), Membership::default(), BlockedMonitor::default());
        let queue = client.create_queue("orders", QueueOptions::default()).await.unwrap();
        let mut events = client.events();
        let hour = Duration::from_secs(3600);
        let fail = async || {
            let mut delivery = queue.receive(Duration::ZERO).await.unwrap().expect("it is ready");
            delivery.abandon_with(Abandon::after(hour)).await.unwrap();
        };
        let mut look = async || {
            match by_event {
                true => std::iter::from_fn(|| events.try_next())
                    .for_each(|event| monitor.note(&event, Moment::of(client))),
                false => monitor.walk(client, &here, Moment::of(client)).await.unwrap(),
            }
            monitor.look_again(client, &here, Moment::of(client)).await.unwrap();
            notices(&monitor, client.elapsed())
        };
        let began = clock.now();
        for body in ["1", "2"] {
            queue.send(Message::new(body).workflow("order-17")).await.unwrap();
        }
        fail().await;
        assert_eq!(look().await, (vec![began], 0));
        clock.advance(hour);
        fail().await;
        assert_eq!(look().await, (vec![], 0), "it is the same message");
        clock.advance(hour);
        queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
        fail().await;
        assert_eq!(look().await, (vec![began + hour * 2], 1));
    }
}

#[tokio::test]
async fn when_one_gap_is_filled_and_the_next_is_there_one_trouble_is_over_and_another_begins() {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let (client, here, monitor) = (engine.client(), Membership::default(), BlockedMonitor::default());
    let queue = client.create_queue("orders", QueueOptions::by_position()).await.unwrap();
    let send = async |position| {
        queue.send(Message::new("x").workflow("order-17").position(position)).await.unwrap();
    };
    let look = async || {
        monitor.walk(client, &here, Moment::of(client)).await.unwrap();
        monitor.look_again(client, &here, Moment::of(client)).await.unwrap();
        notices(&monitor, client.elapsed())
    };
    let began = clock.now();
    send(2).await;
    send(4).await;
    assert_eq!(look().await, (vec![began], 0));
    clock.advance(Duration::from_secs(60));
    assert_eq!(look().await, (vec![], 0), "it is the same gap");
    send(1).await;
    for _ in 0..2 {
        queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    }
    assert_eq!(look().await, (vec![began + Duration::from_secs(60)], 1));
}

#[tokio::test]
async fn a_message_that_waits_for_its_predecessor_is_counted_once() {
    let (engine, _clock) = crate::testing::engine().await.unwrap();
    let (client, here, monitor) = (engine.client(), Membership::default(), BlockedMonitor::default());
    let queue = client.create_queue("orders", QueueOptions::by_position()).await.unwrap();
    for position in [2, 3] {
        queue.send(Message::new("x").workflow("order-17").position(position)).await.unwrap();
    }
    monitor.walk(client, &here, Moment::of(client)).await.unwrap();
    monitor.look_again(client, &here, Moment::of(client)).await.unwrap();
    assert_eq!(monitor.count(client.elapsed()).waiting_max, 2);
}

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Sets the wall clock of a workflow that is held, and says after how many more hours it has stood still for one.
async fn hours_until_reported(set: impl FnOnce(&ManualClock)) -> u32 {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let (client, here, monitor) = (engine.client(), Membership::default(), BlockedMonitor::default());
    let queue = client.create_queue("orders", QueueOptions::default()).await.unwrap();
    queue.workflow("order-17").unwrap().hold("why").await.unwrap();
    monitor.walk(client, &here, Moment::of(client)).await.unwrap();
    set(&clock);
    for hours in 0..9 {
        // A step forward is believed once it has lasted for half a minute, in which the engine has seen it.
        for passes in [0, 31] {
            clock.advance(Duration::from_secs(passes));
            queue.send(Message::new("x")).await.unwrap();
        }
        monitor.look_again(client, &here, Moment::of(client)).await.unwrap();
        let age_max = monitor.count(client.elapsed()).age_max;
        let is_reported = !monitor.take_unreported(queue.name(), HOUR, client.elapsed()).is_empty();
        assert_eq!(is_reported, age_max >= HOUR);
        if is_reported {
            return hours;
        }
        clock.advance(HOUR);
    }
    panic!("it was never reported");
}

#[tokio::test]
async fn a_workflow_is_reported_after_its_time_when_the_clock_was_set_back() {
    let back = |clock: &ManualClock| {
        clock.step(Timestamp::default() + clock.now().since(Timestamp::default() + DAY))
    };
    assert_eq!(hours_until_reported(back).await, 1);
}

#[tokio::test]
async fn a_clock_that_is_set_forward_reports_no_workflow_before_its_time() {
    assert_eq!(hours_until_reported(|clock| clock.step(clock.now() + DAY)).await, 1);
}
