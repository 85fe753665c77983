//! The history of a queue: how messages have ended, page by page.

use crate::api::HistoryPage;
use crate::api::HistoryQuery;
use crate::api::views::HistoryView;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::page::page_limit;

pub(crate) async fn list(extract: PathParams, QueryParams(query): QueryParams<HistoryQuery>) -> HttpResult {
    let (queue, limit) = (extract.queue()?, page_limit(query.limit)?);
    let entries = match query.workflow {
        Some(id) => queue.workflow(id)?.history(query.before, limit).await?,
        None => queue.history(query.before, limit).await?,
    };
    let before = entries.last().filter(|_| entries.len() == limit).map(|last| last.number);
    json(&HistoryPage { history: entries.iter().map(HistoryView::show).collect(), before })
}
