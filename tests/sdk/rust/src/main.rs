//! Scenarios with `azservicebus`, the client of Rust programs, unmodified. Each prints one line of JSON for its promise.

mod queues;
mod sessions;
mod stage;
mod topics;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    queues::play().await;
    sessions::play().await;
    topics::play().await;
}
