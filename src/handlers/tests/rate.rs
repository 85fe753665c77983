//! How many messages a second go through a persistent handler, beside a handler in the process.
//!
//! `cargo test --release --lib handlers::tests::rate -- --ignored --nocapture`

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::Engine;
use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::site::Site;
use crate::handlers::tests::stage::has_python;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::queue::QueueOptions;

const MESSAGES: u64 = 60_000;
const WORKFLOWS: u64 = 1_000;
const CONCURRENCY: usize = 256;

/// Reads a message and completes it, as a careful program would.
const ECHO: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    sys.stdout.write('{"id":%d}\n' % request["id"])
    sys.stdout.flush()
"#;

/// Counts what its handler has done.
struct Counted<H> {
    handler: H,
    left: Arc<AtomicU64>,
    done: Arc<Notify>,
}

impl<H: Handler<Raw>> Handler<Raw> for Counted<H> {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        let result = self.handler.handle(context, body).await?;
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
        Ok(result)
    }
}

/// User and system time of this process so far: on a busy machine it says more than a rate.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Messages a second through a handler, from a backlog on disk; and what each costs this process.
async fn rate<H: Handler<Raw>>(handler: H) -> (f64, Duration) {
    let folder = TempDir::new().unwrap();
    let engine = Engine::builder(folder.path().join("rate.redb")).open().await.unwrap();
    let queue = engine.client().create_queue("rate", QueueOptions::default()).await.unwrap();
    for batch in 0..MESSAGES / 1_000 {
        let message = |number: u64| {
            let body = format!("{{\"order\":{number},\"cents\":1999,\"text\":\"{}\"}}", "x".repeat(150));
            Message::new(body).content_type("application/json").workflow(format!("w{}", number % WORKFLOWS))
        };
        queue.send_batch((batch * 1_000..(batch + 1) * 1_000).map(message)).await.unwrap();
    }
    let (left, done) = (Arc::new(AtomicU64::new(MESSAGES)), Arc::new(Notify::new()));
    let (clock, cpu) = (SystemClock::default(), cpu_time());
    let handler = Counted { handler, left, done: done.clone() };
    let running = Processor::new(queue).concurrency(CONCURRENCY).start(handler);
    done.notified().await;
    running.stop().await.unwrap();
    (MESSAGES as f64 / clock.elapsed().as_secs_f64(), (cpu_time() - cpu) / MESSAGES as u32)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures"]
async fn a_persistent_handler_keeps_half_the_rate() {
    if !has_python() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let site = Site {
        store_id: format!("rate-{}", std::process::id()),
        by_position: false,
        place: Arc::new(|_, message| Ok(message)),
        clock: Arc::new(SystemClock::default()),
    };
    for _ in 0..3 {
        let (within, cpu) =
            rate(|_context: Context, _body: Raw| async { Ok::<_, Failure>(Outcome::Complete) }).await;
        println!("in the process: {within:.0} messages/s, {cpu:?} of CPU each");
        for (processes, in_flight_max) in [(1, 64), (1, 256), (2, 64), (2, 256)] {
            let options = PersistentOptions {
                argv: ["python3", "-c", ECHO].map(str::to_owned).to_vec(),
                cwd: folder.path().to_owned(),
                env: Default::default(),
                pass_env: Vec::new(),
                processes,
                in_flight_max,
                timeout: Duration::from_secs(30),
            };
            let (without, cpu) = rate(Persistent::start(options, site.clone())).await;
            let ratio = without / within;
            println!(
                "{processes} x python3, {in_flight_max} at once: {without:.0} messages/s, {ratio:.2} of it, {cpu:?} each"
            );
        }
    }
}
