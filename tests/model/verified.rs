//! Whatever was asked, in every order: the file that is left behind is sound, however the engine ended.

use seriatim::Engine;
use seriatim::Timestamp;
use seriatim::testing::ManualClock;

use crate::model::chaos::Chaos;
use crate::model::seeds::play;

const STEPS: usize = 150;
const SEEDS: u64 = 40;

#[tokio::test]
async fn whatever_was_asked_the_file_is_sound() {
    play("every verb, then verified", SEEDS, story).await;
}

async fn story(seed: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
    // A small window, so that rows are in the journal and in their tables.
    let builder = Engine::builder(&path).clock(clock.clone()).window_bytes(4_096);
    let engine = builder.open().await.expect("a new file");
    let mut chaos = Chaos::on(engine, clock, seed).await;
    for _ in 0..STEPS {
        chaos.step().await;
    }
    chaos.taken.clear();
    chaos.client.next_due().await.expect("the engine goes on");
    // A copy of the file while it is open is what a kill leaves behind.
    std::fs::copy(&path, &copy).expect("room for a copy");
    let Chaos { engine, .. } = chaos;
    engine.close().await;
    for file in [path, copy] {
        let found = seriatim::store::verify(&file, |_| {}).expect("an engine's file");
        assert!(found.is_sound() && found.compared, "{}: {:#?}", file.display(), found.damages);
    }
}
