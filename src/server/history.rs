//! The history of a queue: how messages have ended, page by page.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::server::answer::Answer;
use crate::server::answer::json;
use crate::server::named::Asked;
use crate::server::named::Named;
use crate::server::page::page_limit;
use crate::wire::views::HistoryView;

/// Which part of a history.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HistoryQuery {
    /// Only what ended in the workflow with this ID.
    workflow: Option<String>,
    /// The number of the entry before which the page begins, as the page before has answered; the newest if it is not given.
    before: Option<u64>,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    limit: Option<usize>,
}

/// A page of a history.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HistoryAnswer {
    /// What has ended, newest first.
    history: Vec<HistoryView>,
    /// The number before which the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

pub(crate) async fn list(named: Named, Asked(query): Asked<HistoryQuery>) -> Answer {
    let (queue, limit) = (named.queue()?, page_limit(query.limit)?);
    let entries = match query.workflow {
        Some(id) => queue.workflow(id)?.history(query.before, limit).await?,
        None => queue.history(query.before, limit).await?,
    };
    let before = entries.last().filter(|_| entries.len() == limit).map(|last| last.number);
    json(&HistoryAnswer { history: entries.iter().map(HistoryView::show).collect(), before })
}
