//! What stands still is found without looking at what does not.

use std::collections::BTreeSet;
use std::time::Duration;

use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::WorkflowId;
use seriatim::limits;
use seriatim::view::WorkflowStatus;
use seriatim::view::WorkflowView;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

fn id(view: &WorkflowView) -> String {
    view.workflow_id.as_ref().expect("a named workflow").to_string()
}

/// Whether a workflow does not go on.
fn stands(view: &WorkflowView) -> bool {
    let is_stopped = matches!(
        view.status,
        WorkflowStatus::Held(_) | WorkflowStatus::Blocked { .. } | WorkflowStatus::WaitingForPredecessor
    );
    is_stopped || view.gap.is_some()
}

/// All that stands still, found by looking at everything.
async fn by_looking_at_all(queue: &Queue) -> BTreeSet<String> {
    let (mut found, mut after) = (BTreeSet::new(), None::<WorkflowId>);
    loop {
        let page = queue.workflows(after.as_ref(), limits::PAGE_MAX).await.expect("the queue exists");
        let Some(last) = page.last() else { return found };
        after.clone_from(&last.workflow_id);
        found.extend(page.iter().filter(|view| stands(view)).map(id));
    }
}

/// What may stand still, and how often was asked before all of it was known.
async fn known(queue: &Queue) -> (Vec<WorkflowView>, usize) {
    let mut asked = 0;
    loop {
        asked += 1;
        let page = queue.standing_workflows(None, limits::PAGE_MAX).await.expect("the queue exists");
        if let Some(page) = page {
            return (page, asked);
        }
    }
}

async fn agrees(queue: &Queue) {
    let (known, _) = known(queue).await;
    let standing: BTreeSet<String> = known.iter().filter(|view| stands(view)).map(id).collect();
    assert_eq!(standing, by_looking_at_all(queue).await);
}

#[tokio::test]
async fn few_of_very_many_are_found_by_looking_at_few() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for begin in (0..5_000).step_by(1_000) {
        let line = |number: u64| {
            let position = if number >= 4_990 { 2 } else { 1 };
            Message::new("x").workflow(format!("w{number:05}")).position(position)
        };
        fixture.queue.send_batch((begin..begin + 1_000).map(line)).await.unwrap();
    }
    let (found, asked) = known(&fixture.queue).await;
    assert_eq!((found.len(), asked), (10, 1), "what is sent while the engine runs is known at once");
    assert!(found.iter().all(stands));
}

#[tokio::test]
async fn every_way_to_stop_is_known_and_what_goes_on_is_not_looked_at() {
    let options = QueueOptions::by_position().hold_on_defer(true);
    let fixture = Fixture::new(options).await;
    let queue = &fixture.queue;
    for workflow in ["failed", "deferred", "held", "skipped"] {
        fixture.send_at(workflow, 1).await;
        fixture.send_at(workflow, 2).await;
    }
    fixture.send_at("gap", 7).await;
    queue.workflow("empty").unwrap().hold("look").await.unwrap();
    queue.workflow("held").unwrap().hold("look").await.unwrap();
    for _ in 0..3 {
        let mut delivery = fixture.must().await;
        let workflow = delivery.message().workflow_id.as_ref().map(ToString::to_string);
        match workflow.as_deref() {
            Some("failed") => delivery.abandon_after(seconds(60), "busy").await.unwrap(),
            Some("deferred") => delivery.defer().await.unwrap(),
            _ => delivery.complete().await.unwrap(),
        }
    }
    agrees(queue).await;
    let stopped = by_looking_at_all(queue).await;
    let expected = ["deferred", "empty", "failed", "gap", "held"].map(str::to_owned);
    assert_eq!(stopped, BTreeSet::from(expected));
    // A dry run is taken back, in either direction.
    let dry = fixture.engine.client().dry_run().queue("q").unwrap();
    dry.workflow("held").unwrap().resume().await.unwrap();
    dry.workflow("nobody").unwrap().hold("try").await.unwrap();
    agrees(queue).await;
    for workflow in ["held", "empty"] {
        queue.workflow(workflow).unwrap().resume().await.unwrap();
    }
    queue.workflow("gap").unwrap().skip_gap().await.unwrap();
    fixture.clock.advance(seconds(61));
    queue.workflow("deferred").unwrap().purge().await.unwrap();
    fixture.drain().await;
    agrees(queue).await;
    assert_eq!(known(queue).await.0.len(), 0, "nothing stands still, so nothing is looked at");
}

#[tokio::test]
async fn what_had_stopped_before_the_file_was_opened_is_found_a_slice_at_a_time() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let lines = (0..2_500).map(|number| Message::new("x").workflow(format!("w{number:05}")));
    let lines: Vec<Message> = lines.collect();
    for some in lines.chunks(1_000) {
        queue.send_batch(some.to_vec()).await.unwrap();
    }
    queue.workflow("w02400").unwrap().hold("look").await.unwrap();
    let mut failed = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    failed.abandon_after(seconds(60), "busy").await.unwrap();
    drop(failed);
    engine.close().await;
    let (engine, queue) = fixture.open().await;
    assert_eq!(queue.standing_workflows(None, 10).await.unwrap().map(|page| page.len()), None);
    queue.workflow("w00001").unwrap().hold("while it is looked for").await.unwrap();
    let (found, asked) = known(&queue).await;
    let ids: Vec<String> = found.iter().map(id).collect();
    assert_eq!((ids, asked), (["w00000", "w00001", "w02400"].map(str::to_owned).to_vec(), 2));
    engine.close().await;
}
