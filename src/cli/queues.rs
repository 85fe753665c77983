//! `seriatim queues`.

use seriatim::api::views::CountsView;
use seriatim::api::views::QueueEnvelope;
use seriatim::remote::Remote;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::listing::listed;
use crate::cli::out::Stdout;
use crate::cli::table::TextTable;
use crate::cli::word::word;

/// Prints every queue with its counts.
pub(crate) async fn run(arguments: DaemonArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments)?;
    let out = Stdout::new(arguments.json);
    let queues = all(&remote).await?;
    for queue in &queues {
        out.json(queue)?;
    }
    match queues.is_empty() {
        true => out.say("there are no queues")?,
        false => out.say(table(&queues).to_string())?,
    }
    // Each queue says the same of the cluster.
    if let Some(QueueEnvelope { missing_partitions: missing, .. }) = queues.first()
        && !missing.is_empty()
    {
        out.say(format!(
            "not counted is what the partitions {missing:?} have, which are stopped on every node; `seriatim cluster status` says why"
        ))?;
    }
    Ok(true)
}

/// Every queue there is.
pub(crate) async fn all(remote: &Remote) -> Result<Vec<QueueEnvelope>, CliFailure> {
    // There are at most so many, so that a daemon that repeats itself is not listened to for ever.
    let all = listed(seriatim::limits::QUEUES_MAX, None, async |after, limit| {
        let page = remote.queues(after, limit).await?;
        Ok((page.queues, page.after))
    });
    Ok(all.await.map_err(CliFailure::to("list the queues"))?.0)
}

/// A column of numbers: its heading, and the number of a queue.
type CountColumn = (&'static str, fn(&CountsView) -> u64);

const COUNTS: [CountColumn; 9] = [
    (">ready", |counts| counts.ready),
    (">locked", |counts| counts.locked),
    (">early", |counts| counts.early),
    (">retry", |counts| counts.retry),
    (">exhausted", |counts| counts.exhausted),
    (">by consumer", |counts| counts.by_consumer),
    (">scheduled", |counts| counts.scheduled),
    (">dead", |counts| counts.dead_lettered),
    (">completed", |counts| counts.completed),
];

/// One row for each queue.
pub(crate) fn table(queues: &[QueueEnvelope]) -> TextTable {
    let mut heading = vec!["queue", "order"];
    heading.extend(COUNTS.map(|(name, _)| name));
    heading.push("");
    let mut table = TextTable::new(&heading);
    for queue in queues {
        let numbers = COUNTS.map(|(_, count)| count(&queue.counts).to_string());
        let words = [queue.name.clone(), word(&queue.options.order)];
        let remark = match (queue.paused == Some(true), queue.rate_limited_until.is_some()) {
            (true, _) => "paused",
            (false, true) => "rate limited",
            (false, false) => "",
        };
        table.row(words.into_iter().chain(numbers).chain([remark.to_owned()]));
    }
    table
}
