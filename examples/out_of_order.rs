//! Messages that arrive shuffled are handled by position, and a gap is never silent.
//!
//! Run it with `cargo run --example out_of_order`. The clock is moved by hand, so nothing here sleeps.

use std::time::Duration;

use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), seriatim::Error> {
    let (engine, clock) = seriatim::testing::engine().await?;
    let gap = GapPolicy { wait: Duration::from_secs(600), then: GapAction::Skip };
    let options = QueueOptions::by_position().gap(gap);
    let events = engine.client().create_queue("events", options).await?;

    for position in [3, 1, 2, 6] {
        events.send(Message::new(format!("event {position}")).workflow("cart-1").position(position)).await?;
    }
    handle_all(&events).await?;

    // 4 and 5 have not come; 6 waits for them, and the queue says so.
    let cart = events.workflow("cart-1")?.view().await?.expect("something of it is stored");
    println!("{:?}, {:?}", cart.status, cart.gap);

    clock.advance(Duration::from_secs(600));
    println!("ten minutes later the gap policy gives them up:");
    handle_all(&events).await?;

    // A position that was given up was never handled, so it is kept aside, not ignored.
    let late = events.send(Message::new("event 5").workflow("cart-1").position(5)).await?;
    println!("5 comes at last: {late:?}");
    Ok(())
}

async fn handle_all(queue: &Queue) -> Result<(), seriatim::Error> {
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await? {
        println!("handled {}", String::from_utf8_lossy(&delivery.message().body));
        delivery.complete().await?;
    }
    Ok(())
}
