//! Looks that change nothing.

use std::collections::BTreeSet;

use crate::amqp::Value;
use crate::clock::Timestamp;
use crate::engine::DeadLetterView;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::WorkflowView;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::service_bus::backlog::SeenMessage;
use crate::service_bus::entity::Entity;
use crate::service_bus::management::answer::ManagementAnswer;
use crate::service_bus::management::request::ManagementRequest;
use crate::service_bus::outgoing::EncodedMessage;
use crate::service_bus::refusal::AmqpRefusal;

/// Messages that are looked at before it is known how large they are.
const FIRST_PAGE: usize = 4;

/// What one look shows: messages in order of number, each with its number.
pub(crate) type MessageLook = Vec<SeenMessage>;

/// Shows messages from a number on.
pub(crate) async fn peek(
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let from = SequenceNumber::new(request.number("from-sequence-number", 0)?);
    let max = usize::try_from(request.number("message-count", 1)?).unwrap_or(usize::MAX);
    let seen = look(entity, request.session_id.as_deref(), from, max).await?;
    let shown: Vec<Value> = seen
        .into_iter()
        .map(|(_, payload)| Value::Map(vec![(Value::string("message"), Value::Binary(payload))]))
        .collect();
    match shown.is_empty() {
        true => Ok(ManagementAnswer::nothing()),
        false => Ok(ManagementAnswer::done(vec![(Value::string("messages"), Value::List(shown))])),
    }
}

/// Looks at messages from a number on, those of one session if one is named: as many as one look may show.
pub(crate) async fn look(
    entity: &Entity,
    session: Option<&str>,
    from: SequenceNumber,
    max: usize,
) -> Result<MessageLook, AmqpRefusal> {
    if entity.is_transfer {
        return Ok(MessageLook::new());
    }
    let max = max.clamp(1, limits::SERVICE_BUS_PEEK_MAX);
    let mut look = OpenLook { shown: MessageLook::new(), bytes: 0, max };
    match entity.is_dead_letters {
        true => look.add_dead_letters(entity, session, from).await?,
        false => look.add_messages(entity, session, from).await?,
    }
    Ok(look.shown)
}

fn is_of_session(workflow_id: Option<&WorkflowId>, session: Option<&str>) -> bool {
    session.is_none_or(|id| workflow_id.map(WorkflowId::as_str) == Some(id))
}

/// A look that goes on until it shows as much as it may.
struct OpenLook {
    shown: MessageLook,
    bytes: usize,
    max: usize,
}

impl OpenLook {
    /// Shows a message, if there is room for it; for the first there always is. Says whether there is room for another.
    fn add(&mut self, view: &MessageView) -> bool {
        let payload = EncodedMessage::seen(view).encode();
        self.bytes += payload.len();
        let fits = self.bytes <= limits::SERVICE_BUS_ANSWER_BYTES || self.shown.is_empty();
        if fits {
            self.shown.push((view.sequence_number, payload));
        }
        fits && self.shown.len() < self.max
    }

    async fn add_messages(
        &mut self,
        entity: &Entity,
        session: Option<&str>,
        from: SequenceNumber,
    ) -> Result<(), AmqpRefusal> {
        let is_wanted = |view: &&MessageView| is_of_session(view.workflow_id.as_ref(), session);
        let (mut next, mut looked_at, mut length) = (Some(from), 0, PageLength::default());
        while let Some(from) = next.filter(|_| looked_at < limits::SERVICE_BUS_LOOKS_MAX) {
            let page = entity.queue.peek_live(from, length.messages()).await?;
            (next, looked_at) = (page.next, looked_at + page.looked_at);
            length.note(&page.views);
            if !page.views.iter().filter(is_wanted).all(|view| self.add(view)) {
                break;
            }
        }
        Ok(())
    }

    async fn add_dead_letters(
        &mut self,
        entity: &Entity,
        session: Option<&str>,
        from: SequenceNumber,
    ) -> Result<(), AmqpRefusal> {
        for number in first_dead_letters(entity, session, (from, self.max)).await? {
            let found = entity.queue.peek(number, 1).await?.into_iter().next();
            let is_dead = |view: &MessageView| {
                view.sequence_number == number && matches!(view.status, MessageStatus::DeadLettered(_))
            };
            if found.filter(is_dead).is_some_and(|view| !self.add(&view)) {
                break;
            }
        }
        Ok(())
    }
}

/// How many messages the next page of a look has: about as many bytes as an answer, however large they are.
pub(crate) struct PageLength {
    messages: usize,
}

impl Default for PageLength {
    /// That of the first page, of whose messages nothing is known.
    fn default() -> PageLength {
        PageLength { messages: FIRST_PAGE }
    }
}

impl PageLength {
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// Learns how large the messages of a page were.
    pub(crate) fn note(&mut self, page: &[MessageView]) {
        if page.is_empty() {
            return;
        }
        let bytes: usize = page.iter().map(|view| view.body.len() + view.headers.len()).sum();
        let each = bytes / page.len() + 1;
        self.messages = (limits::SERVICE_BUS_ANSWER_BYTES / each).clamp(1, limits::HTTP_PAGE);
    }
}

/// The numbers of the first dead letters from one on. They are listed by reason, and shown by number: of each reason those before are
/// passed over, and those behind.
async fn first_dead_letters(
    entity: &Entity,
    session: Option<&str>,
    (from, max): (SequenceNumber, usize),
) -> Result<BTreeSet<SequenceNumber>, AmqpRefusal> {
    let is_wanted = |dead_letter: &&DeadLetterView| {
        dead_letter.sequence_number >= from && is_of_session(dead_letter.workflow_id.as_ref(), session)
    };
    let (mut first, mut after): (BTreeSet<SequenceNumber>, Option<DeadLetterView>) = (BTreeSet::new(), None);
    loop {
        let page = entity.queue.dead_letters(after.as_ref(), limits::HTTP_PAGE).await?;
        first.extend(page.iter().filter(is_wanted).map(|dead_letter| dead_letter.sequence_number));
        while first.len() > max {
            first.pop_last();
        }
        let Some(mut last) = page.into_iter().next_back() else { return Ok(first) };
        let is_behind = first.len() == max && first.last().is_some_and(|end| last.sequence_number >= *end);
        if last.sequence_number < from {
            last.sequence_number = SequenceNumber::new(from.get() - 1);
        } else if is_behind {
            last.sequence_number = SequenceNumber::new(u64::MAX);
        }
        after = Some(last);
    }
}

/// Whether the state of a session was set at an instant or after it.
fn is_set_since(view: &WorkflowView, since_ms: i64) -> bool {
    let set_at = |at: Timestamp| i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    view.has_state && view.state_set_at.is_none_or(|at| set_at(at) >= since_ms)
}

/// The last instant of .NET, by which clients say that they ask for every session.
const ANY_TIME_MS: i64 = 253_402_300_800_000;

/// Lists sessions in order of ID: those with something in them, or those whose state was set since an instant. When that was,
/// an older file did not say; such a session is listed, so that none is missed.
pub(crate) async fn sessions(
    entity: &Entity,
    request: &ManagementRequest,
) -> Result<ManagementAnswer, AmqpRefusal> {
    let (skip, top) = request.page()?;
    let since = request.timestamp("last-updated-time")?;
    let since = since.filter(|since_ms| *since_ms < ANY_TIME_MS);
    let (mut ids, mut after, mut seen) = (Vec::new(), None::<WorkflowId>, 0);
    while ids.len() < top {
        let page = entity.queue.workflows(after.as_ref(), limits::HTTP_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.workflow_id.clone();
        for view in page {
            let is_wanted = match since {
                Some(since_ms) => is_set_since(&view, since_ms),
                None => view.has_state || view.messages + view.set_aside > 0,
            };
            let Some(id) = view.workflow_id.filter(|_| is_wanted) else { continue };
            seen += 1;
            if seen > skip && ids.len() < top {
                ids.push(Value::from(id.as_str()));
            }
        }
    }
    if ids.is_empty() {
        return Ok(ManagementAnswer::nothing());
    }
    let next = Value::Int(i32::try_from(skip.saturating_add(ids.len())).unwrap_or(i32::MAX));
    Ok(ManagementAnswer::done(vec![
        (Value::string("skip"), next),
        (Value::string("sessions-ids"), Value::Array(ids)),
    ]))
}
