//! Looks that can be sent elsewhere: what is looked for, and what was found, each as a value.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::query::LookSlot;
use crate::engine::query::Query;
use crate::engine::query::looks;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::view::DeadLetterView;
use crate::engine::view::MessageView;
use crate::engine::view::QueueView;
use crate::engine::view::WorkflowView;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

/// Where what was found goes.
pub(crate) type LookResultSlot = Box<dyn FnOnce(Result<LookResult, Unavailable>) + Send>;

/// In which partitions something is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookScope {
    /// In all that may have some of it.
    Wherever,
    /// In any one: what is wanted of it is the same in each, and none has to answer for another.
    Anywhere,
}

/// Makes what is looked for, what was found, and the way between them and the engine's queries.
macro_rules! look_values {
    ($($(#[$doc:meta])* $look:ident { $($field:ident: $kind:ty),* $(,)? } -> $found:ty;)*) => {
        /// Something to look for.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub(crate) enum LookFor {
            $($(#[$doc])* $look { $($field: $kind),* },)*
        }

        /// What was found.
        #[expect(clippy::large_enum_variant, reason = "there is one at a time, on its way to whoever looks")]
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub(crate) enum LookResult {
            $($look($found),)*
        }

        impl LookFor {
            #[cfg(test)]
            pub(crate) const NAMES: &'static [&'static str] = &[$(stringify!($look)),*];

            /// Looks for it in an engine.
            ///
            /// # Errors
            /// [`Unavailable`] when the engine is closed.
            pub(crate) async fn look(self, client: &Client) -> Result<LookResult, Unavailable> {
                match self {
                    $(LookFor::$look { $($field),* } => {
                        let found = client.look_up(|slot| Query::$look { $($field,)* slot }).await?;
                        Ok(LookResult::$look(found))
                    })*
                }
            }
        }

        /// What a query looks for, in which partitions, and where what is found goes. `None` for one that only a single engine
        /// answers, with whoever asked told so.
        pub(crate) fn split_query(query: Query) -> Option<(LookFor, LookScope, LookResultSlot)> {
            match query {
                $(Query::$look { $($field,)* slot } => {
                    let slot = slot_of(slot, |found| match found {
                        LookResult::$look(found) => Some(found),
                        _ => None,
                    });
                    Some((LookFor::$look { $($field),* }, LookScope::Wherever, slot))
                })*
                Query::Audit { slot, .. } => {
                    send(slot, Err(Unavailable::Unsupported("each partition has an audit of its own")));
                    None
                }
                Query::Live { slot, .. } => {
                    send(slot, Err(Unavailable::Unsupported("messages are looked at with the dead letters")));
                    None
                }
                Query::NamedAlike { slot, .. } => {
                    send(slot, Err(Unavailable::Unsupported("a queue is found by its own name")));
                    None
                }
                Query::Options { name, slot } => {
                    let slot = slot_of(slot, |found| match found {
                        LookResult::Queue(found) => Some(found.map(|view| view.options)),
                        _ => None,
                    });
                    Some((LookFor::Queue { name }, LookScope::Anywhere, slot))
                }
            }
        }
    };
}

looks!(look_values);

impl LookResult {
    /// Leaves the first half of what was found, if that is less.
    pub(crate) fn halve(&mut self) -> bool {
        fn halve<T>(found: Option<&mut Vec<T>>) -> bool {
            let Some(found) = found.filter(|found| found.len() > 1) else { return false };
            found.truncate(found.len() / 2);
            true
        }
        match self {
            LookResult::Queues(found) => halve(Some(found)),
            LookResult::Topics(found) => halve(Some(found)),
            LookResult::Workflows(found) => halve(found.as_mut()),
            LookResult::Alone(found) => halve(found.as_mut()),
            LookResult::Messages(found) | LookResult::Offered(found) | LookResult::Line(found) => {
                halve(found.as_mut())
            }
            LookResult::DeadLetters(found) => halve(found.as_mut()),
            LookResult::History(found) | LookResult::Ended(found) => halve(found.as_mut()),
            LookResult::Standing(Some(found)) => halve(found.as_mut()),
            _ => false,
        }
    }
}

fn slot_of<T: Send + 'static>(slot: LookSlot<T>, of: fn(LookResult) -> Option<T>) -> LookResultSlot {
    Box::new(move |found| {
        let nonsense = || Unavailable::Unanswered("what was found makes no sense".to_owned());
        send(slot, found.and_then(|found| of(found).ok_or_else(nonsense)));
    })
}

fn send<T>(slot: LookSlot<T>, found: Result<T, Unavailable>) {
    // Who has left needs nothing.
    let _ = slot.0.send(found);
}
