//! A typed handler: JSON bodies, workflow state, and messages sent in the same transaction as the completion.
//!
//! Run it with `cargo run --example typed_handler`.

use seriatim::Completion;
use seriatim::Context;
use seriatim::Engine;
use seriatim::Failure;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;

/// What happened to an account.
#[derive(serde::Serialize, serde::Deserialize)]
struct Booking {
    cents: i64,
}

/// Adds a booking to the account's balance, which is the workflow's state.
async fn book(context: Context, booking: Booking) -> Result<Outcome, Failure> {
    let balance: i64 = context.state_json().await?.unwrap_or(0);
    let balance = balance + booking.cents;
    if balance < 0 {
        let description = format!("the balance would be {balance}");
        return Ok(Outcome::DeadLetter { reason: "Overdrawn".to_owned(), description });
    }
    let notice = Message::new(format!("balance {balance}"));
    Ok(Outcome::CompleteWith(Completion::new().state(balance.to_string()).send("notices", notice)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), seriatim::Error> {
    let engine = Engine::in_memory().open().await?;
    let bookings = engine.client().create_queue("bookings", QueueOptions::by_position()).await?;
    let notices = engine.client().create_queue("notices", QueueOptions::default()).await?;
    // The second booking arrives first; it is handled second all the same.
    for (position, cents) in [(2, -500), (1, 2_000), (3, -9_999)] {
        bookings.send(Message::json(&Booking { cents })?.workflow("account-1").position(position)).await?;
    }

    let running = Processor::new(bookings.clone()).start(book);
    while bookings.view().await?.counts.dead_lettered == 0 {
        tokio::task::yield_now().await;
    }
    running.stop().await?;

    for notice in notices.peek(seriatim::SequenceNumber::new(0), 10).await? {
        println!("{}", String::from_utf8_lossy(&notice.body));
    }
    for letter in bookings.dead_letters(None, 10).await? {
        println!("dead letter: {}, {}", letter.dead_letter.reason, letter.dead_letter.description);
    }
    engine.close().await;
    Ok(())
}
