//! Sending on what waits in an entity, in its order, and what becomes of messages that do not go on.

use std::collections::BTreeSet;

use crate::engine::TransactionError;
use crate::id::SequenceNumber;
use crate::mutex::Mutex;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;

/// Why a message that its target will never take is a dead letter.
pub(crate) const REFUSED: &str = "ForwardingRefused";

/// Most messages of which it is known that it was told of them.
const TOLD_MAX: usize = 4 * 1024;

/// Why something did not go on.
pub(crate) enum Stay {
    /// It may go later: the target is full, disabled, or not there.
    Later(AmqpRefusal),
    /// It never will.
    Never(&'static str, AmqpRefusal),
    /// Nobody knows whether it has gone.
    Unknown(AmqpRefusal),
}

impl Stay {
    pub(crate) fn of(refusal: AmqpRefusal) -> Stay {
        match refusal.condition {
            condition::NOT_FOUND
            | condition::RESOURCE_LIMIT
            | condition::SERVER_BUSY
            | condition::INTERNAL
            | condition::ENTITY_DISABLED
            | condition::DETACH_FORCED
            | condition::LOCK_LOST => Stay::Later(refusal),
            _ => Stay::Never(REFUSED, refusal),
        }
    }

    pub(crate) fn of_transaction(error: TransactionError) -> Stay {
        match error.may_be_done() {
            true => Stay::Unknown(error.into()),
            false => Stay::of(error.into()),
        }
    }
}

/// What it was told of that it does not go on: it is not told again each time it is tried.
#[derive(Debug, Default)]
pub(crate) struct ToldOnce(Mutex<BTreeSet<SequenceNumber>>);

impl ToldOnce {
    /// Whether it was not told of this one. It forgets all of them when they are too many.
    pub(crate) fn is_first(&self, number: SequenceNumber) -> bool {
        let mut told = self.0.lock();
        if told.len() >= TOLD_MAX {
            told.clear();
        }
        told.insert(number)
    }
}

/// Sends messages on, as one where that can be, and in the order given. What does not go on for now is given back, and it is an
/// error then; what never does is ended for good.
pub(crate) async fn forward_each<M, S, E, FS, FE>(
    waiting: Vec<M>,
    send: S,
    give_back: impl Fn(M),
    end_for_good: E,
) -> Result<(), AmqpRefusal>
where
    M: Clone,
    S: Fn(Vec<M>) -> FS,
    E: Fn(M, &'static str, AmqpRefusal) -> FE,
    FS: Future<Output = Result<(), Stay>>,
    FE: Future<Output = ()>,
{
    let mut later = None;
    if waiting.len() > 1 {
        match send(waiting.clone()).await {
            Ok(()) => return Ok(()),
            // What has gone with them is settled, and would be refused one by one; what has not goes later.
            Err(Stay::Unknown(refusal)) => later = Some(refusal),
            // One of several is refused; which one, is found out one by one.
            Err(Stay::Later(_) | Stay::Never(..)) => {}
        }
    }
    for one in waiting {
        if later.is_some() {
            give_back(one);
            continue;
        }
        match send(vec![one.clone()]).await {
            Ok(()) => {}
            Err(Stay::Later(refusal) | Stay::Unknown(refusal)) => {
                give_back(one);
                later = Some(refusal);
            }
            Err(Stay::Never(reason, refusal)) => end_for_good(one, reason, refusal).await,
        }
    }
    later.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::error::Misuse;
    use crate::error::SendError;
    use crate::error::SendRefusal;
    use crate::error::Unavailable;

    /// What was sent together, how each message has ended that did not go on, and whether it is to be tried again, with a target that
    /// answers so.
    async fn played(
        waiting: &[&'static str],
        answers: impl Fn(&[&str]) -> Result<(), SendError>,
    ) -> (Vec<String>, Vec<String>, bool) {
        let (sent, ended) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let send = |together: Vec<&'static str>| {
            sent.borrow_mut().push(together.concat());
            let answer = answers(&together).map_err(|error| Stay::of_transaction(error.into()));
            async move { answer }
        };
        let give_back = |one: &'static str| ended.borrow_mut().push(format!("{one} released"));
        let end_for_good = |one: &'static str, _, _| {
            ended.borrow_mut().push(format!("{one} dead"));
            async {}
        };
        let forwarded = forward_each(waiting.to_vec(), send, give_back, end_for_good).await;
        (sent.into_inner(), ended.into_inner(), forwarded.is_err())
    }

    fn unanswered() -> SendError {
        SendError::Unavailable(Unavailable::Unanswered("the node has gone".to_owned()))
    }

    #[test]
    fn of_what_does_not_go_on_it_is_told_once_and_not_all_of_it_is_remembered() {
        let told = ToldOnce::default();
        let numbers = || (1..=TOLD_MAX as u64).map(SequenceNumber::new);
        assert!(numbers().all(|number| told.is_first(number)));
        assert!(told.is_first(SequenceNumber::new(0)));
        assert!(!told.is_first(SequenceNumber::new(0)));
        assert_eq!(told.0.lock().len(), 1);
    }

    #[tokio::test]
    async fn what_may_have_gone_on_together_is_not_sent_again_one_by_one() {
        let (sent, ended, is_later) = played(&["a", "b"], |_| Err(unanswered())).await;
        assert_eq!(sent, ["ab"]);
        assert_eq!(ended, ["a released", "b released"]);
        assert!(is_later);
    }

    #[tokio::test]
    async fn nothing_goes_on_after_one_that_may_have_gone() {
        let answers = |together: &[&str]| match together {
            ["a"] => Ok(()),
            ["b"] => Err(unanswered()),
            _ => Err(SendError::Unavailable(Unavailable::Busy)),
        };
        let (sent, ended, is_later) = played(&["a", "b", "c"], answers).await;
        assert_eq!(sent, ["abc", "a", "b"]);
        assert_eq!(ended, ["b released", "c released"]);
        assert!(is_later);
    }

    #[tokio::test]
    async fn what_is_not_taken_together_goes_on_one_by_one() {
        let answers = |together: &[&str]| match together.contains(&"b") {
            true => Err(Misuse::new("body", "is wrong").into()),
            false => Ok(()),
        };
        let (sent, ended, is_later) = played(&["a", "b", "c"], answers).await;
        assert_eq!(sent, ["abc", "a", "b", "c"]);
        assert_eq!(ended, ["b dead"]);
        assert!(!is_later);
        let unsupported = |together: &[&str]| match together {
            [_] => Ok(()),
            _ => Err(Unavailable::Unsupported("several partitions").into()),
        };
        assert_eq!(played(&["a", "b"], unsupported).await.0, ["ab", "a", "b"]);
    }

    #[tokio::test]
    async fn what_a_cluster_never_takes_stays_alone_and_what_it_takes_later_keeps_its_place() {
        let answers = |together: &[&str]| match together.contains(&"b") {
            true => Err(SendError::Unavailable(Unavailable::TooLarge { bytes: 2, bytes_max: 1 })),
            false => Ok(()),
        };
        let (sent, ended, is_later) = played(&["a", "b", "c"], answers).await;
        assert_eq!(sent, ["abc", "a", "b", "c"]);
        assert_eq!((ended, is_later), (vec!["b dead".to_owned()], false));
        let (_, ended, is_later) = played(&["a", "b"], |_| Err(Unavailable::NotOwner.into())).await;
        assert_eq!((ended, is_later), (vec!["a released".to_owned(), "b released".to_owned()], true));
    }

    #[tokio::test]
    async fn what_has_no_room_keeps_what_comes_behind_it() {
        let full = |_: &[&str]| Err(SendError::Refused(SendRefusal::StorageFull));
        let (sent, ended, is_later) = played(&["a", "b"], full).await;
        assert_eq!(sent, ["ab", "a"]);
        assert_eq!(ended, ["a released", "b released"]);
        assert!(is_later);
    }
}
