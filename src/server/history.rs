//! The history of a queue: how messages have ended, page by page.

use crate::api::HistoryPage;
use crate::api::HistoryQuery;
use crate::server::answer::Answer;
use crate::server::answer::json;
use crate::server::named::Asked;
use crate::server::named::Named;
use crate::server::page::page_limit;
use crate::wire::views::HistoryView;

pub(crate) async fn list(named: Named, Asked(query): Asked<HistoryQuery>) -> Answer {
    let (queue, limit) = (named.queue()?, page_limit(query.limit)?);
    let entries = match query.workflow {
        Some(id) => queue.workflow(id)?.history(query.before, limit).await?,
        None => queue.history(query.before, limit).await?,
    };
    let before = entries.last().filter(|_| entries.len() == limit).map(|last| last.number);
    json(&HistoryPage { history: entries.iter().map(HistoryView::show).collect(), before })
}
