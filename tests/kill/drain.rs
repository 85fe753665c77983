//! The last process on a file: handles all that is there, and says what the engine has counted.

use std::time::Duration;

use seriatim::Unavailable;

use crate::kill::child::Load;
use crate::kill::name::Ordered;
use crate::kill::output_lines::say;
use crate::kill::receiver;
use crate::kill::report::Report;
use crate::kill::settler;
use crate::random::Random;

/// How long it waits for what is due soon.
const WAIT: Duration = Duration::from_millis(20);

/// Messages of one workflow that are completed together.
const RUN_MAX: usize = 50;

/// Completes everything but dead letters, and says the counts.
pub(crate) async fn drain(load: &Load) {
    let mut random = load.random(0);
    for ordered in Ordered::BOTH {
        while has_more(load, ordered).await {
            drain_some(load, ordered, &mut random).await.expect("the engine is open");
        }
    }
    for ordered in Ordered::BOTH {
        let view = load.queue(ordered).view().await.expect("the queue is there");
        say(&Report::Counted(ordered, view.counts));
    }
    say(&Report::Done);
}

async fn drain_some(load: &Load, ordered: Ordered, random: &mut Random) -> Result<(), Unavailable> {
    if let Some(mut run) = receiver::take_run(load, ordered, RUN_MAX, WAIT).await? {
        let count = run.messages().len();
        settler::complete_first(load, &mut run, count).await?;
    }
    match receiver::take_aside(load, random).await? {
        Some(mut delivery) => settler::settle(load, &mut delivery, random).await,
        None => Ok(()),
    }
}

async fn has_more(load: &Load, ordered: Ordered) -> bool {
    let counts = load.queue(ordered).view().await.expect("the queue is there").counts;
    counts.stored() > counts.dead_lettered
}
