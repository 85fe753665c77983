//! Links that nobody uses for minutes, while the connection is kept alive.

use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::described;
use crate::service_bus::tests::wire::map;

/// The link over which a client shows that it is alive.
const ALIVE: u32 = 9;

async fn connect(host: &Host) -> Wire {
    let lock = Duration::from_secs(300);
    host.queue("q", QueueOptions { lock, ..QueueOptions::default() }).await;
    host.queue("other", QueueOptions::default()).await;
    let mut client = host.client().await;
    client.attach_receiver(ALIVE, Source::of("other")).await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client
}

/// Lets minutes pass in which nothing is said over any other link.
async fn idle(host: &Host, client: &mut Wire, minutes: u32) {
    for _ in 0..minutes {
        host.clock.advance(Duration::from_secs(60));
        assert!(client.drained(ALIVE, 1).await.is_empty());
    }
}

async fn send(client: &mut Wire, body: &[u8]) {
    client.transfer(0, 0, &data(body)).await;
    let answer = client.another_answer().await;
    assert_eq!((answer.code, answer.state(4)), (DISPOSITION, ACCEPTED));
}

#[tokio::test]
async fn a_receiver_that_was_idle_for_minutes_renews_completes_and_receives_over_the_same_links() {
    let host = Host::open().await;
    let mut client = connect(&host).await;
    client.attach_receiver(1, Source::of("q")).await;
    client.manage("q").await;
    for body in [b"1", b"2"] {
        send(&mut client, body).await;
    }
    client.credit(1, 0, 2, false).await;
    let received = [client.another_answer().await, client.another_answer().await];
    assert_eq!([received[0].body(), received[1].body()], ["1", "2"]);
    idle(&host, &mut client, 4).await;
    host.clock.advance(Duration::from_secs(5));
    let annotations = received[0].message().delivery_annotations().unwrap();
    let token = lookup(&annotations, "x-opt-lock-token").cloned().unwrap();
    let renewed = client.ask("renew-lock", &map(vec![("lock-tokens", Value::Array(vec![token]))])).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    for number in 0..2 {
        assert_eq!(client.settle(number, described(ACCEPTED, Vec::new())).await.state(4), ACCEPTED);
    }
    idle(&host, &mut client, 1).await;
    send(&mut client, b"3").await;
    client.credit(1, 2, 1, false).await;
    assert_eq!(client.another_answer().await.body(), "3");
}

#[tokio::test]
async fn a_sender_that_was_idle_for_minutes_sends_over_the_same_link() {
    let host = Host::open().await;
    let mut client = connect(&host).await;
    send(&mut client, b"0").await;
    idle(&host, &mut client, 12).await;
    send(&mut client, b"1").await;
    client.attach_receiver(1, Source::of("q")).await;
    client.credit(1, 0, 2, false).await;
    assert_eq!([client.another_answer().await.body(), client.another_answer().await.body()], ["0", "1"]);
}
