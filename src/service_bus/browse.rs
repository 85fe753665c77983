//! Links that look: every message that is there, in order of number, is shown, and none is locked, counted or removed.

use std::sync::Arc;

use bytes::Bytes;

use crate::amqp::Attach;
use crate::amqp::LinkAnswer;
use crate::amqp::LinkId;
use crate::amqp::OutgoingMessage;
use crate::amqp::SenderSettles;
use crate::amqp::Unsent;
use crate::amqp::lookup;
use crate::id::SequenceNumber;
use crate::limits;
use crate::selector::Selector;
use crate::service_bus::browser::Browser;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::entity::Entity;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::management::looking;
use crate::service_bus::management::looking::MessageLook;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::selected::is_selected;
use crate::service_bus::selection;
use crate::service_bus::selection::SESSION_FILTER;

/// What was found by looking.
struct BrowseResult {
    messages: MessageLook,
    /// Where the next look begins.
    next: SequenceNumber,
    /// Whether there was nothing more.
    is_all: bool,
}

impl ConnectionTask {
    /// The client looks.
    pub(crate) fn attach_browser(&mut self, link: LinkId, attach: &Attach, entity: Entity) {
        let filter = attach.source.as_ref().map_or(&[][..], |source| &source.filter);
        let session = match lookup(filter, SESSION_FILTER) {
            None => None,
            Some(_) if !entity.has_sessions() && !entity.is_dead_letters => {
                let refusal = AmqpRefusal::new(condition::NOT_ALLOWED, "the queue has no sessions");
                return self.refuse(link, refusal);
            }
            Some(wanted) => match wanted.undescribed().as_str() {
                Some(id) => Some(id.to_owned()),
                None => {
                    let why =
                        "a link that only looks at a session names it: it locks none, so there is no next";
                    return self.refuse(link, AmqpRefusal::new(condition::NOT_IMPLEMENTED, why));
                }
            },
        };
        let selector = match selection::selector(filter) {
            Ok(selector) => selector.map(Arc::new),
            Err(refusal) => return self.refuse(link, refusal),
        };
        let mut answer = LinkAnswer::to(attach);
        answer.sender_settles = SenderSettles::Settled;
        if let (Some(source), Some(id)) = (&mut answer.source, &session) {
            selection::name_session(&mut source.filter, id);
        }
        let browser = Browser::new(entity, session, selector, self.backlogs.backlog());
        self.links.insert(link, EndpointLink::Browser(browser));
        self.amqp.accept_link(link, answer);
    }

    /// Notes that a browser has credit, or drains.
    pub(crate) fn note_browsing(&mut self, link: LinkId, drain: bool) {
        if let Some(browser) = self.browser(link) {
            browser.drains = drain;
            self.browsing.insert(link);
        }
    }

    /// Shows more to every browser that may take it. Those for which there is no room wait.
    pub(crate) fn feed_browsers(&mut self) {
        if self.amqp.has_room() {
            std::mem::take(&mut self.browsing).into_iter().for_each(|link| self.browse(link));
        }
    }

    fn browser(&mut self, link: LinkId) -> Option<&mut Browser> {
        match self.links.get_mut(&link) {
            Some(EndpointLink::Browser(browser)) => Some(browser),
            _ => None,
        }
    }

    fn browse(&mut self, link: LinkId) {
        self.show_backlog(link);
        let credit = self.amqp.credit(link) as usize;
        let (is_full, share) = (self.backlogs.is_full(), self.backlogs.share(self.links.len()));
        let Some(browser) = self.browser(link) else { return };
        match credit {
            0 if browser.drains => self.finish_browsing(link),
            0 => {}
            _ if browser.is_looking || !browser.backlog.is_empty() => {}
            _ if is_full => drop(self.browsing.insert(link)),
            _ => self.look(link, credit.min(share)),
        }
    }

    /// Shows what was seen, as far as there are credit and room.
    fn show_backlog(&mut self, link: LinkId) {
        loop {
            let Some(browser) = self.browser(link) else { return };
            let Some((_, payload)) = browser.backlog.front() else { return };
            let tag = Bytes::copy_from_slice(&browser.shown.to_be_bytes());
            let outgoing = OutgoingMessage { tag, payload: payload.clone(), format: 0, settled: true };
            match self.amqp.send(link, outgoing) {
                Ok(_) => {
                    if let Some(browser) = self.browser(link) {
                        browser.shown += 1;
                        browser.backlog.pop_front();
                    }
                }
                Err(Unsent::TooLarge) => {
                    let why = "the next message is larger than the receiver takes";
                    return self.detach(link, AmqpRefusal::new(condition::SIZE_EXCEEDED, why));
                }
                Err(unsent) => {
                    if unsent == Unsent::NoRoom {
                        self.browsing.insert(link);
                    }
                    return;
                }
            }
        }
    }

    /// Where there is no room for more, nothing is kept for browsers that have no credit: they look again.
    pub(crate) fn rewind_browsers(&mut self) {
        if !self.backlogs.is_full() {
            return;
        }
        for (link, of) in &mut self.links {
            if let EndpointLink::Browser(browser) = of
                && self.amqp.credit(*link) == 0
            {
                browser.rewind();
            }
        }
    }

    fn look(&mut self, link: LinkId, max: usize) {
        let Some(browser) = self.browser(link) else { return };
        browser.is_looking = true;
        let (entity, session, from) = (browser.entity.clone(), browser.session.clone(), browser.next);
        let (selector, was_draining) = (browser.selector.clone(), browser.drains);
        self.wait_for(async move {
            let found = match selector {
                None => looking::look(&entity, session.as_deref(), from, max).await.map(BrowseResult::all),
                Some(selector) => find(&entity, session.as_deref(), from, &selector).await,
            };
            move |connection_task: &mut ConnectionTask| connection_task.found(link, found, was_draining)
        });
    }

    fn found(&mut self, link: LinkId, found: Result<BrowseResult, AmqpRefusal>, was_draining: bool) {
        let Some(EndpointLink::Browser(browser)) = self.links.get_mut(&link) else { return };
        let found = match found {
            Ok(found) => found,
            Err(refusal) => return self.detach(link, refusal),
        };
        browser.is_looking = false;
        self.backlogs.note(&found.messages);
        let beyond = browser.backlog.add(found.messages);
        // What there is no room for is looked at again.
        browser.next = beyond.first().map_or(browser.next.max(found.next), |(first, _)| *first);
        match (found.is_all && beyond.is_empty(), browser.drains) {
            (true, true) if was_draining => self.finish_browsing(link),
            (true, false) => self.look_later(link),
            _ => drop(self.browsing.insert(link)),
        }
    }

    /// Answers a drain: all that was there has been shown.
    fn finish_browsing(&mut self, link: LinkId) {
        if let Some(browser) = self.browser(link) {
            browser.drains = false;
            self.amqp.drained(link);
        }
    }

    /// Looks again after a while: there is no event for messages that are accepted.
    fn look_later(&mut self, link: LinkId) {
        let client = self.shared.client.clone();
        let Some(browser) = self.browser(link).filter(|browser| !browser.is_waiting) else { return };
        browser.is_waiting = true;
        self.wait_for(async move {
            let _ = client.sleep(limits::SERVICE_BUS_BROWSE_EVERY).await;
            move |connection_task: &mut ConnectionTask| {
                if let Some(browser) = connection_task.browser(link) {
                    browser.is_waiting = false;
                    connection_task.browsing.insert(link);
                }
            }
        });
    }
}

impl BrowseResult {
    /// All that one look has shown.
    fn all(messages: MessageLook) -> BrowseResult {
        let next = messages.last().map_or(0, |(last, _)| last.get() + 1);
        BrowseResult { is_all: messages.is_empty(), next: SequenceNumber::new(next), messages }
    }
}

/// Looks until something is found that a selector wants, or there is nothing more, or it has looked often.
async fn find(
    entity: &Entity,
    session: Option<&str>,
    from: SequenceNumber,
    selector: &Selector,
) -> Result<BrowseResult, AmqpRefusal> {
    let mut found = BrowseResult { messages: MessageLook::new(), next: from, is_all: false };
    for _ in 0..limits::SERVICE_BUS_LOOKS_AT_ONCE {
        let looked = looking::look(entity, session, found.next, limits::SERVICE_BUS_PEEK_MAX).await?;
        let BrowseResult { messages, next, is_all } = BrowseResult::all(looked);
        found.next = found.next.max(next);
        found.is_all = is_all;
        for message in messages {
            if is_selected(selector, &message.1) {
                found.messages.push(message);
            }
            // A long text takes a while to be judged.
            tokio::task::yield_now().await;
        }
        if is_all || !found.messages.is_empty() {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::bare::copying;
    use crate::service_bus::tests::bare::receiver;
    use crate::service_bus::tests::socketless;

    #[tokio::test]
    async fn a_browser_whose_client_drains_no_more_is_shown_what_comes_later() {
        let (_engine, _queue, mut connection_task) = socketless::connected().await;
        connection_task.hear(&[attach(copying(receiver(0, "q")))]).await;
        let link = *connection_task.links.keys().next().expect("it has a browser");
        connection_task.note_browsing(link, true);
        // While it looks.
        connection_task.note_browsing(link, false);
        connection_task.found(link, Ok(BrowseResult::all(MessageLook::new())), true);
        assert!(connection_task.browser(link).is_some_and(|browser| browser.is_waiting));
    }
}
