//! Schedules over restarts, changes and long absences, with a clock that is moved by hand.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use crate::api::WireTime;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::daemon::membership::Membership;
use crate::daemon::ticker::Ticker;
use crate::daemon::ticker::Ticking;
use crate::definition::ScheduleDefinition;
use crate::engine::Engine;
use crate::engine::EngineBuilder;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::intake::Intake;
use crate::limits;
use crate::own_queues::SCHEDULES_QUEUE;
use crate::queue::QueueOptions;
use crate::schedule::Cron;
use crate::schedule::MissedTicks;
use crate::testing::ManualClock;
use crate::testing::drain;

const START: &str = "2027-01-01T00:30:00Z";

fn ticking(line: &str, missed: MissedTicks) -> Ticking {
    let schedule = ScheduleDefinition {
        name: "report".to_owned(),
        cron: Cron::parse(line, "UTC").unwrap(),
        missed,
        workflow_id: Some(WorkflowId::new("reports").unwrap()),
        subject: None,
        body: Bytes::new(),
    };
    Ticking { queue: QueueName::new("jobs").unwrap(), schedule }
}

struct Stage {
    engine: Engine,
    ticker: Ticker,
    clock: ManualClock,
}

impl Stage {
    async fn open(file: &Path, clock: &ManualClock, schedules: Vec<Ticking>) -> Stage {
        Stage::begin(Engine::builder(file), clock, schedules).await
    }

    async fn begin(builder: EngineBuilder, clock: &ManualClock, schedules: Vec<Ticking>) -> Stage {
        let engine = builder.clock(clock.clone()).open().await.unwrap();
        engine.client().create_queue("jobs", QueueOptions::default()).await.unwrap();
        let intake = Intake::new(engine.client().clone());
        let ticker = Ticker::open(engine.client(), intake, Membership::default()).await.unwrap();
        ticker.replace(schedules).await.unwrap();
        Stage { engine, ticker, clock: clock.clone() }
    }

    /// Lets the schedules look at the clock.
    async fn look(&self) {
        drain(&self.ticker.queue(), &self.clock, self.ticker.clone(), Duration::ZERO).await.unwrap();
    }

    /// The IDs of all ticks that were sent.
    async fn sent(&self) -> Vec<String> {
        let jobs = self.engine.client().queue("jobs").unwrap();
        let messages = jobs.peek(SequenceNumber::new(0), 1_000).await.unwrap();
        messages.iter().map(|message| message.message_id.as_ref().unwrap().to_string()).collect()
    }

    /// How many messages wait for a tick.
    async fn waiting(&self) -> u64 {
        self.ticker.queue().view().await.unwrap().counts.scheduled
    }
}

/// A folder, the file of a store in it, and the time it is.
fn place() -> (TempDir, PathBuf, ManualClock) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.redb");
    (folder, file, ManualClock::new(START.parse::<WireTime>().unwrap().0))
}

#[tokio::test]
async fn schedules_live_in_their_queue_as_it_is() {
    let (engine, _) = crate::testing::engine().await.unwrap();
    let changed = QueueOptions { delivery_count_max: 7, ..QueueOptions::default() };
    engine.client().create_queue(SCHEDULES_QUEUE, changed).await.unwrap();
    let intake = Intake::new(engine.client().clone());
    assert!(Ticker::open(engine.client(), intake, Membership::default()).await.is_ok());
    engine.close().await;
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_tick_waits_while_the_disk_is_full_and_is_sent_once_there_is_room() {
    let (_folder, file, clock) = place();
    let hourly = || vec![ticking("0 * * * *", MissedTicks::All)];
    let stage = Stage::open(&file, &clock, hourly()).await;
    stage.engine.close().await;
    clock.advance(HOUR);
    // More head room than any disk has: every one is too full.
    let stage = Stage::begin(Engine::builder(&file).head_room(1 << 60), &clock, hourly()).await;
    stage.look().await;
    assert_eq!(stage.sent().await, Vec::<String>::new());
    stage.engine.close().await;
    clock.advance(limits::TICK_WAITS_FOR_ROOM);
    let stage = Stage::open(&file, &clock, hourly()).await;
    stage.look().await;
    assert_eq!(stage.sent().await.len(), 1);
}

#[tokio::test]
async fn a_schedule_that_changes_while_the_disk_is_full_goes_on_as_it_is_and_ticks_by_its_new_line_later() {
    let (_folder, file, clock) = place();
    let changed = || vec![ticking("45 * * * *", MissedTicks::Once)];
    let stage = Stage::open(&file, &clock, vec![ticking("0 * * * *", MissedTicks::Once)]).await;
    stage.engine.close().await;
    let stage = Stage::begin(Engine::builder(&file).head_room(1 << 60), &clock, changed()).await;
    assert_eq!(stage.waiting().await, 1);
    stage.engine.close().await;
    let stage = Stage::open(&file, &clock, changed()).await;
    assert_eq!(stage.waiting().await, 1);
    clock.advance(HOUR);
    stage.look().await;
    assert_eq!(stage.sent().await, ["report/2027-01-01T00:45:00.000Z"]);
}

#[tokio::test]
async fn a_tick_is_sent_at_its_instant_and_named_by_it() {
    let (_folder, file, clock) = place();
    let stage = Stage::open(&file, &clock, vec![ticking("0 * * * *", MissedTicks::Once)]).await;
    stage.look().await;
    assert_eq!(stage.sent().await, [""; 0], "a new schedule has handled everything before it was made");
    clock.advance(HOUR / 2 - Duration::from_millis(1));
    stage.look().await;
    assert_eq!(stage.sent().await, [""; 0], "never early");
    clock.advance(Duration::from_millis(1));
    stage.look().await;
    assert_eq!(stage.sent().await, ["report/2027-01-01T01:00:00.000Z"]);
}

#[tokio::test]
async fn a_restart_neither_doubles_nor_loses_a_tick() {
    let (_folder, file, clock) = place();
    for _ in 0..5 {
        let stage = Stage::open(&file, &clock, vec![ticking("0 * * * *", MissedTicks::Once)]).await;
        stage.look().await;
        assert_eq!(stage.waiting().await, 1, "one message waits, whatever was there before");
        clock.advance(HOUR / 2);
        stage.look().await;
        stage.engine.close().await;
    }
    let stage = Stage::open(&file, &clock, vec![ticking("0 * * * *", MissedTicks::Once)]).await;
    stage.look().await;
    let hours = ["01", "02", "03"].map(|hour| format!("report/2027-01-01T{hour}:00:00.000Z"));
    assert_eq!(stage.sent().await, hours);
}

#[tokio::test]
async fn ticks_missed_while_the_daemon_was_down_are_sent_as_the_definition_says() {
    for (missed, count) in [(MissedTicks::Skip, 0), (MissedTicks::Once, 1), (MissedTicks::All, 600)] {
        let (_folder, file, clock) = place();
        Stage::open(&file, &clock, vec![ticking("0 * * * *", missed)]).await.engine.close().await;
        clock.advance(HOUR * 600);
        let stage = Stage::open(&file, &clock, vec![ticking("0 * * * *", missed)]).await;
        stage.look().await;
        assert_eq!(stage.sent().await.len(), count, "{missed:?}");
        assert_eq!(stage.waiting().await, 1);
    }
}

#[tokio::test]
async fn missed_ticks_come_in_order_through_a_queue_that_never_has_room_for_all_of_them() {
    let (_folder, file, clock) = place();
    let each_minute = ticking("* * * * *", MissedTicks::All);
    let stage = Stage::open(&file, &clock, vec![each_minute.clone()]).await;
    let options = QueueOptions { messages_max: 100, ..QueueOptions::default() };
    let jobs = stage.engine.client().put_queue("jobs", options).await.unwrap();
    let (began, mut handled, mut looked_at) = (clock.now(), Vec::new(), clock.now());
    clock.advance(5 * HOUR);
    for _ in 0..4 {
        looked_at = clock.now();
        stage.look().await;
        while let Some(mut delivery) = jobs.receive(Duration::ZERO).await.unwrap() {
            handled.push(delivery.message().message_id.as_ref().unwrap().to_string());
            delivery.complete().await.unwrap();
        }
        // What found no room is tried again.
        clock.advance(HOUR / 60);
    }
    let missed = each_minute.schedule.cron.ticks_between(began, looked_at, 1_000);
    assert_eq!(missed.len(), 303);
    let missed: Vec<String> = missed.into_iter().map(|tick| format!("report/{}", WireTime(tick))).collect();
    assert_eq!(handled, missed);
}

#[tokio::test]
async fn a_schedule_that_changes_ticks_by_its_new_line_and_one_that_is_gone_ticks_no_more() {
    let (_folder, file, clock) = place();
    let stage = Stage::open(&file, &clock, vec![ticking("0 * * * *", MissedTicks::Once)]).await;
    stage.ticker.replace(vec![ticking("45 * * * *", MissedTicks::Once)]).await.unwrap();
    stage.ticker.replace(vec![ticking("45 * * * *", MissedTicks::Once)]).await.unwrap();
    assert_eq!(stage.waiting().await, 1);
    clock.advance(HOUR);
    stage.look().await;
    assert_eq!(stage.sent().await, ["report/2027-01-01T00:45:00.000Z"]);
    stage.ticker.replace(Vec::new()).await.unwrap();
    assert_eq!(stage.waiting().await, 0);
    clock.advance(HOUR * 24);
    stage.look().await;
    assert_eq!(stage.sent().await.len(), 1);
}

#[tokio::test]
async fn the_last_tick_that_was_sent_is_known_also_after_a_restart() {
    let (_folder, file, clock) = place();
    let hourly = ticking("0 * * * *", MissedTicks::Once);
    let stage = Stage::open(&file, &clock, vec![hourly.clone()]).await;
    stage.look().await;
    assert_eq!(stage.ticker.last_tick(&hourly).await.unwrap(), None, "none was sent yet");
    clock.advance(HOUR);
    stage.look().await;
    stage.engine.close().await;
    let stage = Stage::open(&file, &clock, vec![hourly.clone()]).await;
    let last = stage.ticker.last_tick(&hourly).await.unwrap().map(|tick| WireTime(tick).to_string());
    assert_eq!(last.as_deref(), Some("2027-01-01T01:00:00.000Z"));
}

#[tokio::test]
async fn the_next_ticks_are_known_in_advance() {
    let (_folder, file, clock) = place();
    let stage = Stage::open(&file, &clock, vec![ticking("@daily", MissedTicks::Once)]).await;
    let next = stage.ticker.next_ticks(2);
    let shown: Vec<String> = next[0].1.iter().map(|tick: &Timestamp| WireTime(*tick).to_string()).collect();
    assert_eq!(shown, ["2027-01-02T00:00:00.000Z", "2027-01-03T00:00:00.000Z"]);
    assert!(clock.now() < next[0].1[0]);
}

#[tokio::test]
async fn a_schedule_that_is_changed_or_comes_back_has_missed_nothing() {
    let (_folder, file, clock) = place();
    let stage = Stage::open(&file, &clock, vec![ticking("0 0 1 * *", MissedTicks::Once)]).await;
    let of_the_fifth = || vec![ticking("0 0 5 * *", MissedTicks::Once)];
    clock.advance(10 * 24 * HOUR);
    stage.ticker.replace(of_the_fifth()).await.unwrap();
    stage.look().await;
    assert_eq!(stage.sent().await, [""; 0], "there was no tick by this line on the fifth");
    stage.ticker.replace(Vec::new()).await.unwrap();
    clock.advance(40 * 24 * HOUR);
    stage.ticker.replace(of_the_fifth()).await.unwrap();
    stage.look().await;
    assert_eq!(stage.sent().await, [""; 0], "on the fifth of February there was no such schedule");
    stage.engine.close().await;
    clock.advance(13 * 24 * HOUR);
    let stage = Stage::open(&file, &clock, of_the_fifth()).await;
    stage.look().await;
    assert_eq!(stage.sent().await, ["report/2027-03-05T00:00:00.000Z"], "only the daemon did not run");
}

#[tokio::test]
async fn a_schedule_goes_on_when_a_clock_that_was_years_ahead_is_set_right() {
    for restarts in [false, true] {
        let (_folder, file, clock) = place();
        let hourly = || vec![ticking("0 * * * *", MissedTicks::Once)];
        Stage::open(&file, &clock, hourly()).await.engine.close().await;
        let right = clock.now();
        clock.step("2031-06-01T00:30:00Z".parse::<WireTime>().unwrap().0);
        let mut stage = Stage::open(&file, &clock, hourly()).await;
        stage.look().await;
        assert_eq!(stage.sent().await, ["report/2031-06-01T00:00:00.000Z"], "it is believed at opening");
        clock.set(right);
        match restarts {
            false => stage.ticker.see_to().await.unwrap(),
            true => {
                stage.engine.close().await;
                stage = Stage::open(&file, &clock, hourly()).await;
            }
        }
        stage.look().await;
        assert_eq!(stage.sent().await.len(), 1, "nothing is due before its instant");
        clock.advance(HOUR / 2);
        stage.look().await;
        assert_eq!(stage.sent().await[1..], ["report/2027-01-01T01:00:00.000Z"], "restarts: {restarts}");
        assert_eq!(stage.waiting().await, 1);
    }
}
