//! Engine time of one partition in that of a client: each engine counts for itself, and what it hands out says until when it is
//! locked or hidden, and when it expires, in its own time.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::elsewhere::Due;
use crate::engine::elsewhere::LockedMessage;
use crate::engine::elsewhere::MessageRecord;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::Status;
use crate::engine::elsewhere::UnlockedMessage;

/// By how much two clocks differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    from: Timestamp,
    to: Timestamp,
}

impl Shift {
    /// From a clock that shows `from` while the other shows `to`.
    pub(crate) fn new(from: Timestamp, to: Timestamp) -> Shift {
        Shift { from, to }
    }

    fn of(self, at: Timestamp) -> Timestamp {
        match at >= self.from {
            true => self.to + at.since(self.from),
            false => {
                let before = self.from.since(at).as_millis();
                let before = u64::try_from(before).unwrap_or(u64::MAX);
                Timestamp::from_millis(self.to.as_millis().saturating_sub(before))
            }
        }
    }

    fn due(self, due: Due) -> Due {
        if due.is_of_wall() { due } else { Due::engine(self.of(due.at())) }
    }

    /// A reply of a partition, as a client's own engine would give it. What is hidden without a lock keeps the instant of its
    /// hand-out, which is part of its claim.
    pub(crate) fn reply(self, mut reply: Reply) -> Reply {
        match &mut reply {
            Reply::Receive(Ok(handed)) => handed.iter_mut().for_each(|handed| self.locked(handed)),
            Reply::ReceiveHidden(Ok(shown)) => shown.iter_mut().for_each(|shown| self.hidden(shown)),
            Reply::HideAgain(Ok(shown)) => self.hidden(shown),
            Reply::AcceptWorkflow(Ok(Some(taken))) => taken.locked_until = self.of(taken.locked_until),
            Reply::Settle(Ok(settled)) => settled.locked_until = settled.locked_until.map(|at| self.of(at)),
            Reply::Transact(Ok(replies)) => {
                for reply in replies.iter_mut() {
                    let shifted = self.reply(std::mem::replace(reply, Reply::Done { more: false }));
                    *reply = shifted;
                }
            }
            _ => {}
        }
        reply
    }

    fn locked(self, handed: &mut LockedMessage) {
        handed.locked_until = self.of(handed.locked_until);
        let record = Arc::make_mut(&mut handed.record);
        record.handed_out_at = self.of(record.handed_out_at);
        self.expiring(record);
    }

    fn hidden(self, shown: &mut UnlockedMessage) {
        let record = Arc::make_mut(&mut shown.record);
        let until = match record.status {
            Status::ByConsumer { due: Some(due), .. } => due,
            _ => Due::engine(record.handed_out_at),
        };
        // What is offered at once is shown by its hand-out, whose instant the claim keeps as the partition has it.
        record.status = Status::ByConsumer { due: Some(self.due(until)), aside: false };
        self.expiring(record);
    }

    fn expiring(self, record: &mut MessageRecord) {
        if let Some(due) = record.rare.expires_at {
            record.rare.expires_at = Some(self.due(due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::elsewhere::replies;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A message that expires then, as it is handed out under a lock.
    fn locked(expires_at: Due) -> LockedMessage {
        let of_message = |reply| match reply {
            Reply::Receive(Ok(mut handed)) => handed.pop(),
            _ => None,
        };
        let mut handed = replies().into_iter().find_map(of_message).unwrap();
        Arc::make_mut(&mut handed.record).rare.expires_at = Some(expires_at);
        handed
    }

    /// The same without a lock.
    fn hidden(expires_at: Due, status: Status) -> UnlockedMessage {
        let LockedMessage { sequence, mut record, content, .. } = locked(expires_at);
        Arc::make_mut(&mut record).status = status;
        UnlockedMessage { sequence, record, content }
    }

    #[test]
    fn a_message_expires_as_far_away_on_the_other_clock_unless_that_goes_by_the_wall() {
        let shift = Shift::new(at(1_000), at(5_000));
        let wall = Due::wall(at(1_700));
        for (expires_at, shifted) in [(Due::engine(at(1_700)), Due::engine(at(5_700))), (wall, wall)] {
            let asked = [
                Reply::Receive(Ok(vec![locked(expires_at)])),
                Reply::ReceiveHidden(Ok(vec![hidden(expires_at, Status::Ready)])),
                Reply::HideAgain(Ok(Box::new(hidden(expires_at, Status::Ready)))),
                Reply::Transact(Ok(vec![Reply::Receive(Ok(vec![locked(expires_at)]))])),
            ];
            for reply in asked {
                assert_eq!(expiry(&shift.reply(reply)), Some(shifted));
            }
        }
    }

    fn expiry(reply: &Reply) -> Option<Due> {
        match reply {
            Reply::Receive(Ok(handed)) => handed.first()?.record.rare.expires_at,
            Reply::ReceiveHidden(Ok(shown)) => shown.first()?.record.rare.expires_at,
            Reply::HideAgain(Ok(shown)) => shown.record.rare.expires_at,
            Reply::Transact(Ok(replies)) => expiry(replies.first()?),
            _ => None,
        }
    }

    #[test]
    fn what_is_hidden_comes_back_as_far_away_on_the_other_clock_and_its_claim_stays() {
        let shift = Shift::new(at(1_000), at(5_000));
        let by_itself = Status::ByConsumer { due: Some(Due::engine(at(1_700))), aside: false };
        // The samples were handed out at 2.
        for (status, until) in [(by_itself, 5_700), (Status::Ready, 4_002)] {
            let before = hidden(Due::engine(at(9)), status);
            let Reply::HideAgain(Ok(shown)) = shift.reply(Reply::HideAgain(Ok(Box::new(before.clone()))))
            else {
                unreachable!("a reply stays of its kind")
            };
            assert_eq!(shown.claim(), before.claim());
            let due = Some(Due::engine(at(until)));
            assert_eq!(shown.record.status, Status::ByConsumer { due, aside: false });
        }
    }

    #[test]
    fn an_instant_is_as_far_away_on_the_other_clock() {
        let shift = Shift::new(at(1_000), at(5_000));
        assert_eq!((shift.of(at(1_700)), shift.of(at(400))), (at(5_700), at(4_400)));
        let back = Shift::new(at(5_000), at(1_000));
        assert_eq!((back.of(at(5_700)), back.of(at(10))), (at(1_700), at(0)));
    }
}
