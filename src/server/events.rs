//! Events as a stream of server-sent events.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use serde::Serialize;

use crate::api::EventsQuery;
use crate::api::MissedEvents;
use crate::api::views::EventView;
use crate::engine::Event;
use crate::engine::Events;
use crate::engine::EventsLag;
use crate::id::QueueName;
use crate::inbound::browser::bytes_as;
use crate::inbound::live_value::ValueChanges;
use crate::limits;
use crate::sas::Keys;
use crate::sas::Right;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::to_json;
use crate::server::extract::QueryParams;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;

/// A listener.
struct Listener {
    shared: SharedServer,
    principal: Principal,
    keys: ValueChanges<Keys>,
    queue: Option<QueueName>,
    events: Events,
    is_greeted: bool,
}

pub(crate) async fn listen(
    State(shared): State<SharedServer>,
    principal: Principal,
    QueryParams(query): QueryParams<EventsQuery>,
) -> HttpResult {
    let queue = query.queue.map(QueueName::new).transpose()?;
    check_listener(&principal, queue.as_ref())?;
    if let Some(queue) = &queue {
        shared.client.queue(queue)?.view().await?;
    }
    let events = shared.client.events();
    let keys = shared.keys.changes();
    let listener = Listener { shared, principal, keys, queue, events, is_greeted: false };
    let lines = stream::unfold(listener, |mut listener| async move {
        let line = listener.next().await?;
        Some((Ok::<_, Infallible>(line), listener))
    });
    Ok(bytes_as(StatusCode::OK, "text/event-stream", Body::from_stream(lines)))
}

/// Refuses who may not listen: to a queue, or to those that its key reaches.
fn check_listener(principal: &Principal, queue: Option<&QueueName>) -> Result<(), HttpRefusal> {
    match queue {
        Some(queue) => principal.check(Right::Listen, Some(queue.as_str())),
        None => principal.check_any(Right::Listen),
    }
}

impl Listener {
    /// What the listener hears next; `None` when the server stops, the engine is closed, or its key may not listen any more.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_greeted {
            self.is_greeted = true;
            return Some(Bytes::from_static(b": listening\n\n"));
        }
        // Around all of it, since events that are not for the listener say nothing to it.
        let heard = tokio::time::timeout(limits::HTTP_HEARTBEAT, self.next_event()).await;
        heard.unwrap_or(Some(Bytes::from_static(b":\n\n")))
    }

    /// The next event that is for the listener.
    async fn next_event(&mut self) -> Option<Bytes> {
        loop {
            let received = tokio::select! {
                biased;
                Ok(()) = self.keys.changed() => {
                    self.principal = self.principal.among(self.keys.borrow().as_deref())?;
                    check_listener(&self.principal, self.queue.as_ref()).ok()?;
                    continue;
                }
                received = self.events.next() => received?,
                () = self.shared.stopping.cancelled() => return None,
            };
            match received {
                Ok(event) if self.is_wanted(&event) => return Some(describe(&event)),
                Ok(_) => {}
                Err(EventsLag(missed)) => return Some(line("missed", &MissedEvents { missed })),
            }
        }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        self.principal.reaches(event.queue.as_str())
            && self.queue.as_ref().is_none_or(|queue| *queue == event.queue)
    }
}

fn describe(event: &Event) -> Bytes {
    let view = EventView::show(event);
    line(&view.event, &view)
}

/// JSON has no line ends, so one line of data is enough.
fn line(name: &str, data: &impl Serialize) -> Bytes {
    let mut line = format!("event: {name}\ndata: ").into_bytes();
    line.extend_from_slice(&to_json(data));
    line.extend_from_slice(b"\n\n");
    Bytes::from(line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use tokio::runtime::Handle;

    use super::*;
    use crate::engine::Engine;
    use crate::inbound::timeouts::Timeouts;
    use crate::queue::QueueOptions;
    use crate::server::shared::ServerState;
    use crate::server::tests::fixture::FakeHost;
    use crate::server::tests::fixture::FakePlace;

    #[tokio::test]
    async fn a_listener_whose_key_is_taken_away_hears_nothing_more() {
        let engine = Engine::in_memory().open().await.unwrap();
        let queue = engine.client().create_queue("orders", QueueOptions::default()).await.unwrap();
        let (text, other) = ("0123456789".repeat(4), "9876543210".repeat(4));
        let keys = Keys::of_everybody("one", &text);
        let principal = Principal::with_key(keys.find(text.as_bytes()).unwrap().clone());
        let (place, host) = (Arc::new(FakePlace), Arc::new(FakeHost::default()));
        let state = ServerState::new(engine.client().clone(), place, host, Some(keys), Timeouts::default());
        let (events, keys) = (engine.events(), state.keys.changes());
        let shared = Arc::new(state);
        let mut listener =
            Listener { shared: shared.clone(), principal, keys, queue: None, events, is_greeted: true };
        shared.keys.replace(Some(Keys::of_everybody("one", &text)));
        queue.workflow("w").unwrap().hold("look").await.unwrap();
        assert!(listener.next().await.is_some(), "it is still there");
        shared.keys.replace(Some(Keys::of_everybody("one", &other)));
        queue.workflow("w").unwrap().resume().await.unwrap();
        assert_eq!(listener.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_comes_while_only_other_queues_have_events() {
        let engine = Engine::in_memory().open().await.unwrap();
        let other = engine.client().create_queue("other", QueueOptions::default()).await.unwrap();
        let (place, host) = (Arc::new(FakePlace), Arc::new(FakeHost::default()));
        let state = ServerState::new(engine.client().clone(), place, host, None, Timeouts::default());
        let (events, keys, principal) = (engine.events(), state.keys.changes(), Principal::default());
        let (shared, queue) = (Arc::new(state), Some(QueueName::new("orders").unwrap()));
        let mut listener = Listener { shared, principal, keys, queue, events, is_greeted: true };
        let mut heard = Box::pin(listener.next());
        for workflow in ["a", "b"] {
            assert_eq!((&mut heard).now_or_never(), None);
            tokio::time::advance(limits::HTTP_HEARTBEAT * 2 / 3).await;
            let workflow = other.workflow(workflow).unwrap();
            // While a thread of the runtime is at work, its clock stands still.
            let held = || Handle::current().block_on(async move { workflow.hold("look").await });
            tokio::task::spawn_blocking(held).await.unwrap().unwrap();
        }
        assert_eq!(heard.now_or_never(), Some(Some(Bytes::from_static(b":\n\n"))));
    }
}
