//! Engine time of one partition in that of a client: each engine counts for itself, and what it hands out says until when it is
//! locked in its own time.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::elsewhere::LockedMessage;
use crate::engine::elsewhere::Reply;

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

    /// A reply of a partition, as a client's own engine would give it. What is hidden without a lock keeps its instants: they are
    /// part of its claim.
    pub(crate) fn reply(self, mut reply: Reply) -> Reply {
        match &mut reply {
            Reply::Receive(Ok(handed)) => handed.iter_mut().for_each(|handed| self.locked(handed)),
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_as_far_away_on_the_other_clock() {
        let at = Timestamp::from_millis;
        let shift = Shift::new(at(1_000), at(5_000));
        assert_eq!((shift.of(at(1_700)), shift.of(at(400))), (at(5_700), at(4_400)));
        let back = Shift::new(at(5_000), at(1_000));
        assert_eq!((back.of(at(5_700)), back.of(at(10))), (at(1_700), at(0)));
    }
}
