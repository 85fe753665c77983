//! What operators did: all of it, and to one workflow.

use axum::extract::State;

use crate::api::AuditPage;
use crate::api::AuditQuery;
use crate::api::WorkflowAuditQuery;
use crate::api::views::AuditView;
use crate::engine::AuditEntry;
use crate::limits;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::page::page_limit;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;

pub(crate) async fn audit(
    State(shared): State<SharedServer>,
    principal: Principal,
    QueryParams(page): QueryParams<AuditQuery>,
) -> HttpResult {
    let after: Option<u64> = page.after.as_deref().map(str::parse).transpose().map_err(|_| wrong_entry())?;
    let limit = page_limit(page.limit)?;
    if page.newest {
        return newest_first(&shared, &principal, after, limit).await;
    }
    let after = after.unwrap_or_default();
    let entries = shared.client.audit(after, limit).await?;
    let is_full = entries.len() == limit;
    let after = entries.last().filter(|_| is_full).map(|entry| entry.number.to_string());
    let mut actions: Vec<AuditView> = entries.into_iter().map(AuditView::show).collect();
    actions.retain(|action| principal.reaches(&action.queue));
    json(&AuditPage { actions, after })
}

fn wrong_entry() -> HttpRefusal {
    HttpRefusal::misuse("after", "is not the number of an entry")
}

/// A page of the audit that goes back in time from the newest entry, or from the one before `before`.
async fn newest_first(
    shared: &SharedServer,
    principal: &Principal,
    before: Option<u64>,
    limit: usize,
) -> HttpResult {
    let end = match before {
        Some(before) => before,
        None => newest_entry(shared).await? + 1,
    };
    let begin = end.saturating_sub(limit as u64 + 1);
    let mut entries = shared.client.audit(begin, limit).await?;
    entries.retain(|entry| entry.number < end);
    let after = entries.first().map(|entry| entry.number).filter(|number| *number > 1);
    // What is not kept any more is not asked for.
    let after = match after {
        Some(number)
            if !shared
                .client
                .audit(number.saturating_sub(2), 1)
                .await?
                .iter()
                .any(|entry| entry.number < number) =>
        {
            None
        }
        after => after.map(|number| number.to_string()),
    };
    let mut actions: Vec<AuditView> = entries.into_iter().rev().map(AuditView::show).collect();
    actions.retain(|action| principal.reaches(&action.queue));
    json(&AuditPage { actions, after })
}

/// The number of the newest entry; entries are numbered one after the other.
async fn newest_entry(shared: &SharedServer) -> Result<u64, HttpRefusal> {
    let Some(first) = shared.client.audit(0, 1).await?.first().map(|entry| entry.number) else {
        return Ok(0);
    };
    let (mut known, mut beyond) = (first, first + limits::AUDIT_KEPT + 1);
    while known + 1 < beyond {
        let middle = known + (beyond - known) / 2;
        match shared.client.audit(middle - 1, 1).await?.is_empty() {
            true => beyond = middle,
            false => known = middle,
        }
    }
    Ok(known)
}

/// Newest first, among the newest entries of the audit: operators look at what was done lately.
pub(crate) async fn of_workflow(
    State(shared): State<SharedServer>,
    extract: PathParams,
    QueryParams(query): QueryParams<WorkflowAuditQuery>,
) -> HttpResult {
    let (queue, limit) = (extract.text("queue")?, page_limit(query.limit)?);
    let mut end = newest_entry(&shared).await? + 1;
    let oldest = end.saturating_sub(limits::AUDIT_LOOKS);
    let mut actions = Vec::new();
    while end > oldest.max(1) && actions.len() < limit {
        let begin = end.saturating_sub(limits::PAGE_MAX as u64).max(oldest.max(1));
        let mut page = shared.client.audit(begin - 1, limits::PAGE_MAX).await?;
        page.retain(|entry| entry.number < end);
        let is_about = |entry: &AuditEntry| {
            entry.queue.as_str() == queue
                && entry.workflow_id.as_ref().is_some_and(|id| id.as_str() == query.id)
        };
        actions.extend(page.into_iter().rev().filter(is_about).map(AuditView::show));
        end = begin;
    }
    actions.truncate(limit);
    json(&AuditPage { actions, after: None })
}
