//! What holds for what is known of workflows in trouble.

use std::time::Duration;

use crate::api::views::BlockedCause;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::daemon::blocked_monitor::BlockedMonitor;
use crate::daemon::blocked_monitor::Moment;
use crate::daemon::membership::Membership;
use crate::engine::Abandon;
use crate::id::QueueName;
use crate::message::Message;
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
    let unreported = monitor.take_unreported(&QueueName::new("orders").unwrap(), Duration::ZERO, elapsed);
    (unreported.into_iter().map(|(_, trouble)| trouble.since).collect(), monitor.take_recovered().len())
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
