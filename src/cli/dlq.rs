//! `seriatim dlq`: dead letters by reason, one by one, or purged.

use std::collections::BTreeMap;

use serde::Serialize;
use seriatim::api::WireTime;
use seriatim::api::views::DeadLetterEntry;
use seriatim::remote::Remote;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::operate::DlqArguments;
use crate::cli::arguments::operate::DlqListArguments;
use crate::cli::arguments::operate::DlqVerb;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::out::shortened;
use crate::cli::purge;
use crate::cli::queues;
use crate::cli::table::TextTable;

/// Lists or purges dead letters.
pub(crate) async fn run(arguments: DlqArguments) -> Result<bool, CliFailure> {
    match arguments.what {
        None => list(arguments.list, &arguments.daemon).await,
        Some(DlqVerb::Purge { queue, reason, operator }) => {
            purge::dead_letters(&queue, reason, &operator, &arguments.daemon).await
        }
    }
}

async fn list(list: DlqListArguments, daemon: &DaemonArguments) -> Result<bool, CliFailure> {
    let remote = connect(daemon)?;
    let out = Stdout::new(daemon.json);
    let queues = match list.queue {
        Some(queue) => vec![queue],
        None => {
            let with_any =
                queues::all(&remote).await?.into_iter().filter(|queue| queue.counts.dead_lettered > 0);
            with_any.map(|queue| queue.name).collect()
        }
    };
    let mut listing =
        if list.each { Listing::Each(TextTable::new(EACH)) } else { Listing::Reasons(BTreeMap::new()) };
    let present = LocalTime::here();
    for queue in &queues {
        let mut dead_letters = DeadLetters::new(&remote, queue, None);
        while let Some(page) = dead_letters.next().await? {
            for dead_letter in &page {
                if matches(dead_letter, list.error.as_deref()) {
                    listing.add(queue, dead_letter, &present, &out)?;
                }
            }
        }
    }
    listing.print(&present, &out)?;
    Ok(true)
}

/// Whether its reason or description contains a text.
pub(crate) fn matches(dead_letter: &DeadLetterEntry, text: Option<&str>) -> bool {
    text.is_none_or(|text| {
        dead_letter.dead_letter.reason.contains(text) || dead_letter.dead_letter.description.contains(text)
    })
}

const EACH: &[&str] = &["message", "workflow", "reason", ">handed out", "dead-lettered", "description"];

/// What is printed of dead letters.
enum Listing {
    Each(TextTable),
    Reasons(BTreeMap<(String, String), ReasonGroup>),
}

/// Dead letters of a queue with one reason.
#[derive(Serialize)]
struct ReasonGroup {
    queue: String,
    reason: String,
    count: u64,
    /// The number of the first.
    first: u64,
    newest_at: WireTime,
}

impl Listing {
    fn add(
        &mut self,
        queue: &str,
        dead_letter: &DeadLetterEntry,
        present: &LocalTime,
        out: &Stdout,
    ) -> Result<(), CliFailure> {
        match self {
            Listing::Each(table) => {
                let mut described = serde_json::to_value(dead_letter)?;
                described["queue"] = queue.into();
                out.json(&described)?;
                table.row([
                    format!("{queue}#{}", dead_letter.sequence_number),
                    dead_letter.workflow_id.clone().unwrap_or_default(),
                    dead_letter.dead_letter.reason.clone(),
                    dead_letter.delivery_count.to_string(),
                    present.age(dead_letter.dead_letter.at),
                    shortened(&dead_letter.dead_letter.description, limits::ERROR_LETTERS),
                ]);
            }
            Listing::Reasons(reasons) => {
                let reason = reasons
                    .entry((queue.to_owned(), dead_letter.dead_letter.reason.clone()))
                    .or_insert(ReasonGroup {
                        queue: queue.to_owned(),
                        reason: dead_letter.dead_letter.reason.clone(),
                        count: 0,
                        first: dead_letter.sequence_number,
                        newest_at: dead_letter.dead_letter.at,
                    });
                reason.count += 1;
                reason.newest_at = reason.newest_at.max(dead_letter.dead_letter.at);
            }
        }
        Ok(())
    }

    fn print(self, present: &LocalTime, out: &Stdout) -> Result<(), CliFailure> {
        let table = match self {
            Listing::Each(table) => table,
            Listing::Reasons(reasons) => {
                let mut table = TextTable::new(&["queue", "reason", ">count", ">first", "newest"]);
                for reason in reasons.into_values() {
                    out.json(&reason)?;
                    let newest = present.age(reason.newest_at);
                    let (count, first) = (reason.count.to_string(), reason.first.to_string());
                    table.row([reason.queue, reason.reason, count, first, newest]);
                }
                table
            }
        };
        match table.is_empty() {
            true => out.say("there are no dead letters")?,
            false => out.say(table.to_string())?,
        }
        Ok(())
    }
}

/// The dead letters of a queue, page by page.
pub(crate) struct DeadLetters<'a> {
    remote: &'a Remote,
    queue: &'a str,
    reason: Option<&'a str>,
    pub(crate) after: Option<String>,
    is_over: bool,
}

impl<'a> DeadLetters<'a> {
    pub(crate) fn new(remote: &'a Remote, queue: &'a str, reason: Option<&'a str>) -> DeadLetters<'a> {
        DeadLetters { remote, queue, reason, after: None, is_over: false }
    }

    /// The next page; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<DeadLetterEntry>>, CliFailure> {
        if self.is_over {
            return Ok(None);
        }
        let page =
            self.remote.dead_letters(self.queue, self.reason, self.after.as_deref(), limits::PAGE).await;
        let page = page.map_err(CliFailure::to(format!("list the dead letters of {}", self.queue)))?;
        // A page that ends where it began would never end.
        self.is_over = page.after.is_none() || page.after == self.after;
        self.after = page.after;
        Ok(Some(page.dead_letters))
    }
}
