//! Pages of listings.

use crate::api::PageQuery;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::engine::TopicView;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::server::answer::HttpRefusal;
use crate::server::principal::Principal;

/// Entries of a page if nobody says how many.
const LIMIT_DEFAULT: usize = 100;

/// How many entries a page has; a page without any would lead nowhere.
pub(crate) fn page_limit(limit: Option<usize>) -> Result<usize, HttpRefusal> {
    match limit.unwrap_or(LIMIT_DEFAULT) {
        0 => Err(HttpRefusal::misuse("limit", "is zero, and a page has one entry at least")),
        limit => Ok(limit.min(limits::PAGE_MAX)),
    }
}

/// What is listed in order of name, and only to who reaches it.
pub(crate) trait ListedByName: Sized {
    /// Up to `limit` of all after a name.
    fn next(
        client: &Client,
        after: Option<&QueueName>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Self>, Unavailable>> + Send;

    /// The name by which it is listed.
    fn name(&self) -> &QueueName;
}

impl ListedByName for QueueView {
    async fn next(
        client: &Client,
        after: Option<&QueueName>,
        limit: usize,
    ) -> Result<Vec<QueueView>, Unavailable> {
        client.queues(after, limit).await
    }

    fn name(&self) -> &QueueName {
        &self.name
    }
}

impl ListedByName for TopicView {
    async fn next(
        client: &Client,
        after: Option<&QueueName>,
        limit: usize,
    ) -> Result<Vec<TopicView>, Unavailable> {
        client.topics(after, limit).await
    }

    fn name(&self) -> &QueueName {
        &self.name
    }
}

/// A page of what a caller reaches, looked for until it is full; and the name after which the next one begins.
pub(crate) async fn page_of_reached<T: ListedByName>(
    client: &Client,
    principal: &Principal,
    page: PageQuery,
) -> Result<(Vec<T>, Option<String>), HttpRefusal> {
    let limit = page_limit(page.limit)?;
    let mut after = page.after.map(QueueName::new).transpose()?;
    let mut reached = Vec::new();
    loop {
        let listed = T::next(client, after.as_ref(), limit).await?;
        let is_last = listed.len() < limit;
        for one in listed {
            after = Some(one.name().clone());
            if principal.reaches(one.name().as_str()) {
                reached.push(one);
            }
            if reached.len() == limit {
                return Ok((reached, after.map(|name| name.to_string())));
            }
        }
        if is_last {
            return Ok((reached, None));
        }
    }
}
