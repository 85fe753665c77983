//! The locks that are held: who has which workflow, until when. They live in memory only.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::clock::Timestamp;
use crate::deadlines::Deadlines;
use crate::engine::rules::held_messages::HeldMessages;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::id::SequenceNumber;
use crate::limits;
use crate::lookup::Lookup;
use crate::lookup::SlotLookup;
use crate::token::LockToken;

/// What a lock was given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// One message, or several fetched by number; the lock ends with the last of them.
    Deliveries,
    /// Consecutive messages handed out together; the lock ends with the last of them.
    Run,
    /// A workflow accepted whole; the lock ends when its holder gives it back.
    Whole,
    /// One dead letter, under its own number instead of its workflow.
    DeadLetter,
}

/// One lock.
#[derive(Clone, Debug)]
pub(crate) struct LockEntry {
    pub(crate) workflow: WorkflowKey,
    pub(crate) kind: LockKind,
    pub(crate) until: Timestamp,
    /// The messages its holder has out, in the order of hand-out.
    pub(crate) out: HeldMessages,
    /// What was taken from its holder because he gave back one before it, as long as he has not been handed it again.
    pub(crate) revoked: HeldMessages,
    /// Whether its holder wants to keep what he has ahead of a message that fails.
    pub(crate) is_apart: bool,
    /// Its number: of locks that end at the same instant, the one granted first ends first.
    number: u64,
}

impl LockEntry {
    /// Whether its holder has nothing left of it: a whole workflow is held until it is given back.
    pub(crate) fn is_done(&self) -> bool {
        self.kind != LockKind::Whole && self.out.is_empty()
    }
}

/// Where a dead letter stands among those of its queue: by its reason and its number.
type DeadLetterPlace = (String, SequenceNumber);

/// All locks, found by token, by workflow and by deadline.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    by_token: SlotLookup<LockToken, LockEntry>,
    by_workflow: Lookup<WorkflowKey, LockToken>,
    deadlines: Deadlines<Timestamp, LockToken>,
    granted: u64,
    /// Where the first dead letter of a queue may be that can be handed out: all before it are locked or set aside. It is
    /// only known to spare looking at them again.
    dead_letters_from: BTreeMap<QueueId, DeadLetterPlace>,
    /// Where the next step of a workflow's redrive begins, by rank and number: what stands before it was put back, or could not
    /// be. After a restart it begins anew.
    redrives_from: BTreeMap<WorkflowKey, (u64, SequenceNumber)>,
    /// During a trial: each lock that has changed, as it was before (`None` when there was none).
    trial: Option<Vec<(LockToken, Option<LockEntry>)>>,
}

impl LockTable {
    /// The lock, if it is held at `now`.
    pub(crate) fn held(&self, token: LockToken, now: Timestamp) -> Option<&LockEntry> {
        self.by_token.get(&token).filter(|lock| now < lock.until)
    }

    /// The lock, if it is held at `now`, and is on a workflow of a queue.
    pub(crate) fn held_in(&self, queue: QueueId, token: LockToken, now: Timestamp) -> Option<&LockEntry> {
        let is_in = |lock: &&LockEntry| lock.workflow.queue == queue && lock.kind != LockKind::DeadLetter;
        self.held(token, now).filter(is_in)
    }

    /// The lock on a workflow, run out or not.
    pub(crate) fn of(&self, workflow: &WorkflowKey) -> Option<(LockToken, &LockEntry)> {
        let token = *self.by_workflow.get(workflow)?;
        Some((token, self.by_token.get(&token).expect("a holder's token is that of a lock")))
    }

    /// The lock of this token, run out or not.
    pub(crate) fn get(&self, token: LockToken) -> Option<&LockEntry> {
        self.by_token.get(&token)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_token.len()
    }

    /// The earliest deadline and its token.
    pub(crate) fn first_deadline(&self) -> Option<(Timestamp, LockToken)> {
        self.deadlines.first().map(|(until, token)| (until, *token))
    }

    /// The locks on workflows of one queue, those that end first before the others.
    pub(crate) fn of_queue(&self, queue: QueueId) -> Vec<LockToken> {
        self.deadlines.iter().copied().filter(|token| self.is_of(*token, queue)).collect()
    }

    /// Whether somebody has something of a queue.
    pub(crate) fn has_some(&self, queue: QueueId) -> bool {
        self.deadlines.iter().any(|token| self.is_of(*token, queue))
    }

    fn is_of(&self, token: LockToken, queue: QueueId) -> bool {
        self.by_token.get(&token).is_some_and(|lock| lock.workflow.queue == queue)
    }

    /// Begins a trial: every change from now on is taken back by [`LockTable::roll_back`].
    pub(crate) fn begin_trial(&mut self) {
        self.trial = Some(Vec::new());
    }

    /// Ends a trial: all locks are as they were when it began.
    pub(crate) fn roll_back(&mut self) {
        for (token, before) in self.trial.take().unwrap_or_default().into_iter().rev() {
            if self.by_token.get(&token).is_some() {
                self.end(token);
            }
            if let Some(lock) = before {
                self.deadlines.insert(lock.until, lock.number, token);
                self.by_workflow.insert(lock.workflow.clone(), token);
                self.by_token.insert(token, lock);
            }
        }
    }

    /// Where to look for the next dead letter of a queue that can be handed out.
    pub(crate) fn dead_letters_from(&self, queue: QueueId) -> Bound<(&str, SequenceNumber)> {
        match self.dead_letters_from.get(&queue) {
            Some((reason, sequence)) => Bound::Included((reason, *sequence)),
            None => Bound::Unbounded,
        }
    }

    /// Notes that the dead letter at a place, and every one before it, is locked or set aside.
    pub(crate) fn pass_dead_letter(&mut self, queue: QueueId, (reason, sequence): DeadLetterPlace) {
        assert!(self.trial.is_none(), "what a trial takes back would have been passed over for ever");
        let next = sequence.next();
        self.dead_letters_from.insert(queue, (reason, next));
    }

    /// A queue is gone, and its locks have ended.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        self.dead_letters_from.remove(&queue);
        self.redrives_from.retain(|workflow, _| workflow.queue != queue);
    }

    /// Where the next step of a redrive begins, if one before it has noted that.
    pub(crate) fn take_redrive_from(&mut self, workflow: &WorkflowKey) -> Option<(u64, SequenceNumber)> {
        // What a trial takes back goes on from where it was.
        match self.trial {
            None => self.redrives_from.remove(workflow),
            Some(_) => self.redrives_from.get(workflow).copied(),
        }
    }

    /// Notes where the next step of a redrive begins.
    pub(crate) fn note_redrive_from(&mut self, workflow: WorkflowKey, from: (u64, SequenceNumber)) {
        self.redrives_from.insert(workflow, from);
    }

    /// Notes that the dead letter at a place can be handed out.
    pub(crate) fn offer_dead_letter(&mut self, queue: QueueId, place: DeadLetterPlace) {
        if let Some(from) = self.dead_letters_from.get_mut(&queue).filter(|from| place < **from) {
            *from = place;
        }
    }

    /// Keeps a lock that is about to change, so that a trial can take the change back.
    fn remember(&mut self, token: LockToken) {
        if let Some(trial) = &mut self.trial {
            trial.push((token, self.by_token.get(&token).cloned()));
        }
    }

    /// Grants a lock on a workflow nobody holds.
    pub(crate) fn grant(
        &mut self,
        token: LockToken,
        workflow: WorkflowKey,
        kind: LockKind,
        until: Timestamp,
    ) {
        self.remember(token);
        let holder = self.by_workflow.insert(workflow.clone(), token);
        assert!(holder.is_none(), "a workflow has at most one holder");
        self.granted += 1;
        let lock = LockEntry {
            workflow,
            kind,
            until,
            out: HeldMessages::default(),
            revoked: HeldMessages::default(),
            is_apart: false,
            number: self.granted,
        };
        self.deadlines.insert(lock.until, lock.number, token);
        self.by_token.add(token, lock);
    }

    /// Ends a lock; what it was given for.
    pub(crate) fn end(&mut self, token: LockToken) -> LockKind {
        self.remember(token);
        let lock = self.by_token.remove(&token).expect("only a lock that is held can end");
        self.by_workflow.remove(&lock.workflow);
        self.deadlines.remove(lock.until, lock.number);
        lock.kind
    }

    pub(crate) fn renew(&mut self, token: LockToken, until: Timestamp) {
        self.remember(token);
        let lock = self.by_token.get_mut(&token).expect("only a lock that is held can be renewed");
        self.deadlines.remove(lock.until, lock.number);
        lock.until = until;
        self.deadlines.insert(lock.until, lock.number, token);
    }

    pub(crate) fn set_apart(&mut self, token: LockToken) {
        self.remember(token);
        self.by_token.get_mut(&token).expect("only a holder asks for it").is_apart = true;
    }

    /// Puts a message into its holder's hands.
    pub(crate) fn hand_out(&mut self, token: LockToken, sequence: SequenceNumber) -> &LockEntry {
        self.remember(token);
        let lock = self.by_token.get_mut(&token).expect("only a holder is handed a message");
        lock.out.push(sequence);
        if !lock.revoked.is_empty() {
            lock.revoked.remove(sequence);
        }
        lock
    }

    /// Notes that a message was taken from its holder because he gave back one before it.
    pub(crate) fn note_revoked(&mut self, token: LockToken, sequence: SequenceNumber) {
        self.remember(token);
        let lock = self.by_token.get_mut(&token).expect("only from a holder something is taken");
        lock.revoked.push(sequence);
        // Some may have gone another way since.
        let is_full = lock.revoked.len() > limits::ACCEPTED_AHEAD_MAX;
        let first = lock.revoked.iter().next().filter(|_| is_full);
        if let Some(first) = first {
            lock.revoked.remove(first);
        }
    }

    /// Notes that nothing more can be said of what was taken from its holder.
    pub(crate) fn forget_revoked(&mut self, token: LockToken, sequence: SequenceNumber) {
        self.remember(token);
        let lock = self.by_token.get_mut(&token).expect("only a holder says something of it");
        lock.revoked.remove(sequence);
    }

    /// Takes a message out of its holder's hands.
    pub(crate) fn take_back(&mut self, token: LockToken, sequence: SequenceNumber) -> &LockEntry {
        self.remember(token);
        let lock = self.by_token.get_mut(&token).expect("only a holder gives a message back");
        lock.out.remove(sequence);
        lock
    }
}
