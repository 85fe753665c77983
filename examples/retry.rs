//! A message that fails is tried again later, in its place: nothing behind it overtakes.
//!
//! Run it with `cargo run --example retry`. The clock is moved by hand, so nothing here sleeps.

use std::time::Duration;

use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::view::WorkflowStatus;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), seriatim::Error> {
    let (engine, clock) = seriatim::testing::engine().await?;
    let options = QueueOptions::default().delivery_count_max(2);
    let payments = engine.client().create_queue("payments", options).await?;
    for body in ["charge", "receipt"] {
        payments.send(Message::new(body).workflow("order-17")).await?;
    }
    payments.send(Message::new("charge").workflow("order-18")).await?;

    let mut charge = payments.receive(Duration::ZERO).await?.expect("order-17 is ready");
    charge.abandon_after(Duration::from_secs(300), "the bank is down").await?;

    // The receipt of order-17 waits for its charge; order-18 does not.
    let mut other = payments.receive(Duration::ZERO).await?.expect("order-18 is ready");
    println!("meanwhile: {:?}", other.message().workflow_id);
    other.complete().await?;
    assert!(payments.receive(Duration::ZERO).await?.is_none());

    clock.advance(Duration::from_secs(300));
    let mut charge = payments.receive(Duration::ZERO).await?.expect("its reminder is due");
    println!("attempt {}, before it: {:?}", charge.message().delivery_count, charge.message().attempts);
    charge.abandon_after(Duration::from_secs(300), "still down").await?;

    // It has failed as often as it may: the workflow is held, visibly, until somebody decides.
    let order = payments.workflow("order-17")?;
    if let Some(WorkflowStatus::Held(hold)) = order.view().await?.map(|view| view.status) {
        println!("held: {:?}, {}", hold.cause, hold.reason);
    }
    order.resume().await?;
    while let Some(mut delivery) = payments.receive(Duration::ZERO).await? {
        println!("handled {}", String::from_utf8_lossy(&delivery.message().body));
        delivery.complete().await?;
    }
    Ok(())
}
