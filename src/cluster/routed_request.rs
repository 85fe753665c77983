//! What is asked through a node's client of partitions, wherever they are: taken out of the request.

use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::LetterHandle;
use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::LookResultSlot;
use crate::engine::elsewhere::LookScope;
use crate::engine::elsewhere::Request;
use crate::engine::elsewhere::split_query;
use crate::error::Unavailable;

/// What is asked of partitions.
pub(crate) enum RoutedRequest {
    Ask(LetterHandle, Command),
    TryOut(LetterHandle, Command),
    Look(LookFor, LookScope, LookResultSlot),
}

impl RoutedRequest {
    /// What a request asks. `None` for one that cannot be asked of partitions, with whoever asks told so.
    pub(crate) fn of(request: Request) -> Option<RoutedRequest> {
        let elsewhere = |letter: LetterHandle| match letter.command() {
            Some(command) => Some((letter, command)),
            None => {
                letter.fail(Unavailable::Unsupported("this cannot be sent to another node"));
                None
            }
        };
        match request {
            Request::Ask(letter) => {
                elsewhere(letter).map(|(letter, command)| RoutedRequest::Ask(letter, command))
            }
            Request::TryOut(letter) => {
                elsewhere(letter).map(|(letter, command)| RoutedRequest::TryOut(letter, command))
            }
            Request::Query(query) => {
                split_query(*query).map(|(look, scope, slot)| RoutedRequest::Look(look, scope, slot))
            }
            _ => None,
        }
    }

    /// Says why it is not done.
    pub(crate) fn refuse(self, why: Unavailable) {
        match self {
            RoutedRequest::Ask(letter, _) | RoutedRequest::TryOut(letter, _) => letter.fail(why),
            RoutedRequest::Look(_, _, slot) => slot(Err(why)),
        }
    }
}
