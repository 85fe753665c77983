//! A client with the buffers of the SDKs for .NET: it receives and completes as fast as any other.
//!
//! `SERIATIM_SMALL_BUFFER_MESSAGES=n` sets how many messages; from 10,000 on the rate is judged, in an optimised build:
//! `SERIATIM_SMALL_BUFFER_MESSAGES=100000 cargo test --release --lib -- a_client_with_small_buffers --nocapture`.

use std::time::Duration;

use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::Engine;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::sections;

/// What .NET sets once it has connected.
const BUFFER_BYTES: usize = 8 * 1_024;
/// Messages that are received, and then completed.
const TOGETHER: u32 = 100;
/// What such a client is to receive and complete in a second.
const RATE_MIN: f64 = 10_000.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_small_buffers_receives_and_completes_as_fast_as_any() {
    let asked =
        std::env::var("SERIATIM_SMALL_BUFFER_MESSAGES").ok().and_then(|text| text.parse::<u32>().ok());
    let count = asked.unwrap_or(1_000).next_multiple_of(TOGETHER);
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::on(Engine::open(folder.path().join("store.redb")).await.unwrap()).await;
    let options =
        QueueOptions { order: Order::None, lock: Duration::from_secs(300), ..QueueOptions::default() };
    let queue = fixture.client().create_queue("q", options).await.unwrap();
    for _ in 0..count / TOGETHER {
        let messages = (0..TOGETHER).map(|_| Message::new("x".repeat(200)));
        queue.send_batch(messages).await.unwrap();
    }
    let mut bare = Bare::connect_with_buffers(&fixture, BUFFER_BYTES).await;
    bare.attach_receiver(0, "q").await;
    bare.says([credit(0, 0, TOGETHER)]).await;
    let (clock, mut received, mut completed) = (SystemClock::default(), 0, 0);
    while completed < count {
        while received < completed + TOGETHER {
            let frames = bare.next_frame().await.expect("the endpoint sends");
            received += u32::from(sections(&frames).is_some());
        }
        let until = received;
        bare.says([
            ends(completed, until - 1, false, DeliveryOutcome::Accepted),
            credit(0, received, TOGETHER),
        ])
        .await;
        while completed < until {
            match bare.next_frame().await.expect("the endpoint answers") {
                Performative::Disposition(claims) => {
                    completed += claims.last.unwrap_or(claims.first) - claims.first + 1
                }
                frames => received += u32::from(sections(&frames).is_some()),
            }
        }
    }
    let rate = f64::from(count) / clock.elapsed().as_secs_f64();
    println!("{count} messages were received and completed, {rate:.0} in a second");
    assert_eq!(queue.view().await.unwrap().counts.completed, u64::from(count));
    let is_judged = asked.is_some_and(|asked| asked >= 10_000) && !cfg!(debug_assertions);
    assert!(!is_judged || rate >= RATE_MIN, "{rate:.0} in a second");
}
