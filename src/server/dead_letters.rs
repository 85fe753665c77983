//! Dead letters: list, put back, remove.

use std::ops::RangeInclusive;
use std::time::Duration;

use axum::extract::State;

use crate::api::DeadLetterPage;
use crate::api::DeadLettersQuery;
use crate::api::PurgeRequest;
use crate::api::PurgeResponse;
use crate::api::RedriveManyRequest;
use crate::api::RedriveManyResponse;
use crate::api::RedriveRequest;
use crate::api::RedriveResponse;
use crate::api::RedrivenWord;
use crate::api::RefusedDeadLetter;
use crate::api::views::DeadLetterEntry;
use crate::clock::Timestamp;
use crate::engine::DeadLetter;
use crate::engine::DeadLetterView;
use crate::engine::EDITED;
use crate::engine::Queue;
use crate::engine::Redriven;
use crate::id::SequenceNumber;
use crate::limits;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::required;
use crate::server::impersonation::acting_as;
use crate::server::page::page_limit;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;

/// By so much the clocks of a cluster's nodes may differ.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// Which dead letters a request finds, and where it stands.
struct DeadLetterSelection {
    reason: Option<String>,
    workflow_id: Option<String>,
    after: Option<DeadLetterView>,
    looks: usize,
    skips_originals: bool,
    /// When the first of the requests was that this one goes on with.
    as_of: Option<Timestamp>,
    /// What became a dead letter at such an instant is left out.
    later: Option<RangeInclusive<Timestamp>>,
}

impl DeadLetterSelection {
    fn new(
        reason: Option<String>,
        workflow_id: Option<String>,
        after: Option<String>,
    ) -> Result<DeadLetterSelection, HttpRefusal> {
        let (as_of, after) = match (after.filter(|after| !after.is_empty()), &reason) {
            (Some(text), _) => cursor(&text).map(|(as_of, after)| (as_of, Some(after)))?,
            // Sequence numbers begin with 1: this is just before the first of the reason.
            (None, Some(reason)) => (None, Some(place(reason.clone(), SequenceNumber::new(0)))),
            (None, None) => (None, None),
        };
        Ok(DeadLetterSelection {
            reason,
            workflow_id,
            after,
            looks: limits::HTTP_LOOKS_MAX,
            skips_originals: false,
            as_of,
            later: None,
        })
    }

    /// Leaves out what became a dead letter after the first of the requests that this one goes on with: what is put back and
    /// fails again at once would be found for ever. What is stamped ahead of the present was there before a clock was set back.
    fn meant_at(mut self, now: Timestamp) -> DeadLetterSelection {
        self.later = self.as_of.map(|as_of| as_of + Duration::from_millis(1)..=now + CLOCKS_APART);
        self.as_of.get_or_insert(now);
        self
    }

    /// Leaves out the originals of edited messages: what became of them was put back already.
    fn without_originals(mut self) -> DeadLetterSelection {
        self.skips_originals = self.reason.is_none();
        self
    }

    /// The next up to `limit`; whether there is nothing behind them.
    async fn next(
        &mut self,
        queue: &Queue,
        limit: usize,
    ) -> Result<(Vec<DeadLetterView>, bool), HttpRefusal> {
        let mut found = Vec::new();
        while found.len() < limit && self.looks > 0 {
            let page_size = limits::HTTP_PAGE.min(self.looks);
            let page = queue.dead_letters(self.after.as_ref(), page_size).await?;
            if page.is_empty() {
                return Ok((found, true));
            }
            for dead_letter in page {
                self.looks -= 1;
                if self.reason.as_ref().is_some_and(|reason| *reason != dead_letter.dead_letter.reason) {
                    return Ok((found, true));
                }
                self.after = Some(dead_letter.clone());
                if self.is_wanted(&dead_letter) {
                    found.push(dead_letter);
                }
                if found.len() == limit {
                    break;
                }
            }
        }
        Ok((found, false))
    }

    fn is_wanted(&self, dead_letter: &DeadLetterView) -> bool {
        if self.skips_originals && dead_letter.dead_letter.reason == EDITED {
            return false;
        }
        if self.later.as_ref().is_some_and(|later| later.contains(&dead_letter.dead_letter.at)) {
            return false;
        }
        let id = dead_letter.workflow_id.as_ref().map(|id| id.as_str());
        self.workflow_id.as_ref().is_none_or(|wanted| id == Some(wanted.as_str()))
    }

    fn rest(self, is_last: bool) -> Option<String> {
        let after = self.after.filter(|_| !is_last)?;
        let as_of = self.as_of.map(|as_of| format!("{}@", as_of.as_millis())).unwrap_or_default();
        Some(format!("{as_of}{}.{}", after.sequence_number, after.dead_letter.reason))
    }
}

/// A place in the listing of dead letters, of which only reason and number are looked at.
fn place(reason: String, sequence_number: SequenceNumber) -> DeadLetterView {
    let dead_letter = DeadLetter::new(&reason, String::new(), Default::default());
    DeadLetterView {
        sequence_number,
        workflow_id: None,
        message_id: None,
        delivery_count: 0,
        locked_until: None,
        dead_letter,
    }
}

/// Where a page before has ended, and of which instant it was.
fn cursor(text: &str) -> Result<(Option<Timestamp>, DeadLetterView), HttpRefusal> {
    let wrong = || HttpRefusal::misuse("after", "is not what a page before has answered");
    let (numbers, reason) = text.split_once('.').ok_or_else(wrong)?;
    let (as_of, number) = match numbers.split_once('@') {
        Some((as_of, number)) => (Some(as_of.parse().map_err(|_| wrong())?), number),
        None => (None, numbers),
    };
    let number = number.parse().map_err(|_| wrong())?;
    Ok((as_of.map(Timestamp::from_millis), place(reason.to_owned(), SequenceNumber::new(number))))
}

pub(crate) async fn list(
    extract: PathParams,
    QueryParams(query): QueryParams<DeadLettersQuery>,
) -> HttpResult {
    let queue = extract.queue()?;
    let mut pile = DeadLetterSelection::new(query.reason, None, query.after)?;
    let (dead_letters, is_last) = pile.next(&queue, page_limit(query.limit)?).await?;
    let dead_letters = dead_letters.iter().map(DeadLetterEntry::show).collect();
    json(&DeadLetterPage { dead_letters, after: pile.rest(is_last) })
}

pub(crate) async fn redrive(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(mut request): JsonBody<RedriveRequest>,
) -> HttpResult {
    let body = request.take_body()?;
    let client = acting_as(&shared.client, &principal, request.reason.as_deref())?;
    let dry_run = request.dry_run;
    let client = if dry_run { client.dry_run() } else { client };
    let (queue, number) = (client.queue(extract.text("queue")?)?, extract.number()?);
    let redriven = match (body, request.position) {
        (Some(body), position) => queue.edit_and_redrive(number, body, position).await?,
        (None, Some(position)) => queue.redrive_as(number, position).await?,
        (None, None) => queue.redrive(number).await?,
    };
    let (redriven, number) = match redriven {
        Redriven::InPlace => (RedrivenWord::InPlace, number),
        Redriven::AsNew(number) => (RedrivenWord::AsNew, number),
    };
    json(&RedriveResponse { redriven, sequence_number: number.get(), dry_run })
}

pub(crate) async fn redrive_many(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<RedriveManyRequest>,
) -> HttpResult {
    if request.all == (request.dead_letter_reason.is_some() || request.workflow_id.is_some()) {
        return Err(HttpRefusal::misuse("all", "has to be given, or which are meant, not both"));
    }
    let dry_run = request.dry_run;
    let client = acting_as(&shared.client, &principal, request.reason.as_deref())?;
    let client = if dry_run { client.dry_run() } else { client };
    let queue = client.queue(extract.text("queue")?)?;
    let pile = DeadLetterSelection::new(request.dead_letter_reason, request.workflow_id, request.after)?;
    let mut pile = pile.without_originals().meant_at(shared.client.wall_now());
    let (dead_letters, mut is_last) = pile.next(&queue, page_limit(request.limit)?).await?;
    let mut answer =
        RedriveManyResponse { matched: dead_letters.len() as u64, dry_run, ..Default::default() };
    for (at, dead_letter) in dead_letters.iter().enumerate() {
        match queue.redrive(dead_letter.sequence_number).await {
            Ok(Redriven::InPlace) => answer.in_place += 1,
            Ok(Redriven::AsNew(_)) => answer.as_new += 1,
            Err(error) => {
                let refused = HttpRefusal::from(error);
                let is_over = refused.is_of_server();
                if is_over && at == 0 {
                    return Err(refused);
                }
                let sequence_number = dead_letter.sequence_number.get();
                answer.refused.push(RefusedDeadLetter { sequence_number, error: *refused.0 });
                if is_over {
                    // What is done is said, and where to go on.
                    (answer.matched, is_last) = (at as u64 + 1, false);
                    pile.after = Some(dead_letter.clone());
                    break;
                }
            }
        }
    }
    answer.after = pile.rest(is_last);
    json(&answer)
}

pub(crate) async fn purge(
    State(shared): State<SharedServer>,
    principal: Principal,
    extract: PathParams,
    JsonBody(request): JsonBody<PurgeRequest>,
) -> HttpResult {
    let queue = extract.queue()?;
    let counts = queue.view().await?.counts;
    if request.dry_run {
        // Its first step is judged; the counters know how many steps there would be.
        shared.client.dry_run().queue(queue.name())?.purge_dead_letters().await?;
        return json(&PurgeResponse { purged: counts.dead_lettered, dry_run: true });
    }
    let reason = required("reason", request.reason)?;
    let client = acting_as(&shared.client, &principal, Some(&reason))?;
    let purged = client.queue(queue.name())?.purge_dead_letters().await?;
    json(&PurgeResponse { purged, dry_run: false })
}
