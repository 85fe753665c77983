//! One workflow with 100,000 early messages: what it costs the others.
//!
//! Run it with `cargo run --release --example stuck_workflow`. Two engines, one with the stuck workflow and one
//! without, take turns in sending and handling messages of 100 other workflows; it prints both rates each time, and
//! the median of their ratios.

use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use seriatim::Engine;
use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;

const MESSAGES: u64 = 20_000;
const WORKFLOWS: u64 = 100;
const STUCK: u64 = 100_000;
const BATCH: usize = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("seriatim-stuck-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (free, free_queue) = open(&folder.join("free.redb")).await?;
    let (stuck, stuck_queue) = open(&folder.join("stuck.redb")).await?;
    let positions: Vec<u64> = (2..STUCK + 2).collect();
    for positions in positions.chunks(BATCH) {
        let batch = positions.iter().map(|position| message("stuck", *position));
        stuck_queue.send_batch(batch).await?;
    }
    let mut ratios = Vec::new();
    for round in 0..5 {
        let (without, with) = (rate(&free_queue, round).await?, rate(&stuck_queue, round).await?);
        println!("{without:.0} messages a second without, {with:.0} with {STUCK} early messages");
        ratios.push(with / without);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[2]);
    free.close().await;
    stuck.close().await;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

async fn open(path: &Path) -> Result<(Engine, Queue), seriatim::Error> {
    let engine = Engine::open(path).await?;
    let queue = engine.client().create_queue("q", QueueOptions::by_position()).await?;
    Ok((engine, queue))
}

fn message(workflow: &str, position: u64) -> Message {
    Message::new(vec![0; 256]).workflow(workflow).position(position)
}

#[expect(clippy::disallowed_methods, reason = "this measures real time")]
async fn rate(queue: &Queue, round: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let all: Vec<u64> = (0..MESSAGES).collect();
    for numbers in all.chunks(BATCH) {
        let one = |number: &u64| message(&format!("{round}-{}", number % WORKFLOWS), number / WORKFLOWS + 1);
        queue.send_batch(numbers.iter().map(one)).await?;
    }
    loop {
        let deliveries = queue.receive_many(100, Duration::ZERO).await?;
        if deliveries.is_empty() {
            return Ok(MESSAGES as f64 / start.elapsed().as_secs_f64());
        }
        let mut settling = tokio::task::JoinSet::new();
        for mut delivery in deliveries {
            settling.spawn(async move { delivery.complete().await });
        }
        while let Some(settled) = settling.join_next().await {
            settled??;
        }
    }
}
