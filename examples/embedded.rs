//! The shortest useful program: send, receive, complete, and find it done after a restart.
//!
//! Run it with `cargo run --example embedded`.

use std::time::Duration;

use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), seriatim::Error> {
    let path = std::env::temp_dir().join(format!("seriatim-embedded-{}.redb", std::process::id()));

    let engine = Engine::open(&path).await?;
    let orders = engine.client().create_queue("orders", QueueOptions::default()).await?;
    // When `send` returns, the message is on disk.
    orders.send(Message::new("created").workflow("order-17")).await?;
    orders.send(Message::new("paid").workflow("order-17")).await?;
    orders.send(Message::new("created").workflow("order-18")).await?;

    // order-17 has one holder at a time, so the second receive gives order-18.
    let mut first = orders.receive(Duration::ZERO).await?.expect("order-17 is ready");
    let mut other = orders.receive(Duration::ZERO).await?.expect("order-18 is ready");
    println!("{:?} and {:?} run in parallel", first.message().workflow_id, other.message().workflow_id);
    first.complete().await?;
    other.complete().await?;
    engine.close().await;
    drop((first, other, orders));

    // The file remembers: what is left is the second message of order-17.
    let engine = Engine::open(&path).await?;
    let orders = engine.client().queue("orders")?;
    let mut next = orders.receive(Duration::ZERO).await?.expect("one message is left");
    println!("after the restart: {}", String::from_utf8_lossy(&next.message().body));
    next.complete().await?;
    println!("{:?}", orders.view().await?.counts);
    engine.close().await;

    for file in [path.clone(), path.with_extension("redb.lock")] {
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}
