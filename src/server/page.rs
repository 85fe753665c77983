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
    // Who reaches few is not looked for one by one.
    let step = if principal.reaches_all() { limit } else { limits::PAGE_MAX };
    let mut after = page.after.map(QueueName::new).transpose()?;
    let mut reached = Vec::new();
    loop {
        let listed = T::next(client, after.as_ref(), step).await?;
        let is_last = listed.len() < step;
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::engine::Engine;
    use crate::sas::Keys;

    thread_local! {
        /// How often the test of this thread has asked for names.
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }

    /// One of two thousand names, in their order.
    struct ListedName(QueueName);

    impl ListedByName for ListedName {
        async fn next(
            _: &Client,
            after: Option<&QueueName>,
            limit: usize,
        ) -> Result<Vec<ListedName>, Unavailable> {
            ASKED.set(ASKED.get() + 1);
            let names = (0..2_000).map(|number| QueueName::new(format!("q{number:04}")).unwrap());
            let names = names.filter(|name| after.is_none_or(|after| after.as_str() < name.as_str()));
            Ok(names.take(limit).map(ListedName).collect())
        }

        fn name(&self) -> &QueueName {
            &self.0
        }
    }

    #[tokio::test]
    async fn a_short_page_of_who_reaches_few_is_not_looked_for_one_by_one() {
        let engine = Engine::in_memory().open().await.unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let key = "0123456789".repeat(5);
        let entry = "[[key]]\nname = \"a\"\nkey_env = \"K\"\nrights = [\"listen\"]\n";
        std::fs::write(file.path(), format!("{entry}queues = [\"q1500\", \"q1999\"]\n")).unwrap();
        let keys = Keys::read(file.path(), |_| Some(key.clone())).unwrap();
        let narrow = Principal::with_key(keys.find(key.as_bytes()).unwrap().clone());
        let page = async |principal: &Principal, after: Option<&str>| {
            let page = PageQuery { limit: Some(1), after: after.map(str::to_owned) };
            let (listed, after) =
                page_of_reached::<ListedName>(engine.client(), principal, page).await.unwrap();
            let names: Vec<String> = listed.iter().map(|one| one.0.to_string()).collect();
            (names, after, ASKED.replace(0))
        };
        let (first, second) = ("q1500".to_owned(), "q1999".to_owned());
        assert_eq!(page(&narrow, None).await, (vec![first.clone()], Some(first), 2));
        assert_eq!(page(&narrow, Some("q1500")).await, (vec![second.clone()], Some(second), 1));
        assert_eq!(page(&narrow, Some("q1999")).await, (vec![], None, 1));
        let all = page(&Principal::default(), None).await;
        assert_eq!(all, (vec!["q0000".to_owned()], Some("q0000".to_owned()), 1));
    }
}
