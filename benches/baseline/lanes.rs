//! The rules of the queue on SQLite: order, one holder for each workflow, retries in place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::Result;
use seriatim::Timestamp;

use crate::baseline::tables;
use crate::baseline::tables::Stored;
use crate::baseline::tables::Tables;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::Take;

/// How long a lock lasts; as long as the engine's in the same workloads.
const LOCK: Duration = Duration::from_secs(60 * 60);

/// All workflows, in memory as far as they are needed for every request.
pub(crate) struct Lanes<'a> {
    pub(crate) tables: Tables<'a>,
    lanes: Vec<Lane>,
    by_name: HashMap<String, usize>,
    /// Free workflows whose next message may be there, in the order in which they became so.
    ready: VecDeque<usize>,
    retries: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// All locks last equally long, so the first to be given is the first to run out.
    locks: VecDeque<(Timestamp, usize, u64)>,
    changed: Vec<usize>,
    last_number: i64,
    last_token: u64,
    /// Whether anything is to be committed.
    pub(crate) has_written: bool,
}

/// One workflow.
struct Lane {
    /// The rank that is next, and the rank behind the last message.
    cursor: i64,
    end: i64,
    handed: i64,
    /// The lock's token; 0 for none.
    token: u64,
    is_ready: bool,
    is_changed: bool,
    due: Option<Timestamp>,
}

/// What a receiver holds of one workflow.
pub(crate) struct Held {
    lane: usize,
    token: u64,
    pub(crate) messages: Vec<Stored>,
}

impl<'a> Lanes<'a> {
    /// Reads what a file holds; what was handed out when it was closed is counted and offered again.
    pub(crate) fn load(connection: &'a Connection) -> Result<Lanes<'a>> {
        let (rows, last_number) = tables::load(connection)?;
        let mut lanes = Lanes {
            tables: Tables::prepare(connection)?,
            lanes: Vec::new(),
            by_name: HashMap::new(),
            ready: VecDeque::new(),
            retries: BinaryHeap::new(),
            locks: VecDeque::new(),
            changed: Vec::new(),
            last_number,
            last_token: 0,
            has_written: false,
        };
        for row in rows {
            let lane = lanes.add(row.name, row.cursor);
            let due = row.due_ms.map(|due| Timestamp::from_millis(due as u64));
            let loaded = &mut lanes.lanes[lane];
            (loaded.end, loaded.handed, loaded.due) = (row.end, row.handed, due);
            lanes.retries.extend(due.map(|due| Reverse((due, lane))));
            lanes.give_back(lane, true)?;
        }
        Ok(lanes)
    }

    fn add(&mut self, name: String, cursor: i64) -> usize {
        let lane =
            Lane { cursor, end: cursor, handed: 0, token: 0, is_ready: false, is_changed: false, due: None };
        self.lanes.push(lane);
        self.by_name.insert(name, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    pub(crate) fn send(&mut self, messages: Vec<BenchMessage>) -> Result<()> {
        self.has_written = true;
        for message in messages {
            let at = match self.by_name.get(&message.workflow) {
                Some(at) => *at,
                None => {
                    self.tables.insert_workflow(self.lanes.len() as i64, &message.workflow, 1)?;
                    self.add(message.workflow, 1)
                }
            };
            let lane = &mut self.lanes[at];
            let rank = message.position.map_or(lane.end, |position| position as i64);
            lane.end = lane.end.max(rank + 1);
            self.last_number += 1;
            self.tables.insert(self.last_number, at as i64, rank, &message.body)?;
            if rank == self.lanes[at].cursor {
                self.offer(at);
            }
        }
        Ok(())
    }

    /// Hands out what is ready; nothing when nothing is.
    pub(crate) fn receive(&mut self, take: Take, now: Timestamp) -> Result<Vec<Held>> {
        let (workflows, len) = match take {
            Take::Next(workflows) => (workflows, 1),
            Take::Run(len) => (1, len),
        };
        let mut batch = Vec::new();
        while batch.len() < workflows
            && let Some(at) = self.ready.pop_front()
        {
            let lane = &mut self.lanes[at];
            lane.is_ready = false;
            let messages = self.tables.run_from(at as i64, lane.cursor, len)?;
            if messages.is_empty() {
                continue; // What comes next is missing: when it is sent, the workflow is offered again.
            }
            self.last_token += 1;
            (lane.handed, lane.token) = (messages.len() as i64, self.last_token);
            self.locks.push_back((now + LOCK, at, self.last_token));
            self.note_change(at);
            batch.push(Held { lane: at, token: self.last_token, messages });
        }
        Ok(batch)
    }

    /// Settles a batch; false when a lock was lost.
    pub(crate) fn settle(&mut self, batch: &[Held], verdicts: &[MessageEnd], now: Timestamp) -> Result<bool> {
        let mut verdicts = verdicts.iter();
        for held in batch {
            let verdicts: Vec<&MessageEnd> = verdicts.by_ref().take(held.messages.len()).collect();
            if self.lanes[held.lane].token != held.token {
                return Ok(false);
            }
            for (message, verdict) in held.messages.iter().zip(verdicts) {
                let lane = &mut self.lanes[held.lane];
                match verdict {
                    MessageEnd::Complete => {
                        lane.cursor += 1;
                        self.tables.delete(message.number)?;
                    }
                    MessageEnd::Retry(delay) => {
                        lane.due = Some(now + *delay);
                        self.retries.push(Reverse((now + *delay, held.lane)));
                        self.tables.count(held.lane as i64, message.rank, 1)?;
                        break;
                    }
                }
            }
            self.give_back(held.lane, false)?;
        }
        Ok(true)
    }

    /// Frees a workflow; what is still handed out of it counts as a failed attempt, if asked.
    fn give_back(&mut self, at: usize, is_counted: bool) -> Result<()> {
        let lane = &mut self.lanes[at];
        if is_counted && lane.handed > 0 {
            self.tables.count(at as i64, lane.cursor, lane.handed)?;
        }
        (lane.handed, lane.token) = (0, 0);
        if lane.cursor < lane.end {
            self.offer(at);
        }
        self.note_change(at);
        Ok(())
    }

    /// Takes back uncounted what nobody was there to receive.
    pub(crate) fn take_back(&mut self, batch: &[Held]) -> Result<()> {
        for held in batch {
            self.give_back(held.lane, false)?;
        }
        Ok(())
    }

    fn offer(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        if !lane.is_ready && lane.token == 0 && lane.due.is_none() {
            lane.is_ready = true;
            self.ready.push_back(at);
        }
    }

    /// Offers what is due again, and takes back what was locked for too long.
    pub(crate) fn wake(&mut self, now: Timestamp) -> Result<()> {
        while let Some(Reverse((due, at))) = self.retries.peek().copied()
            && due <= now
        {
            self.retries.pop();
            self.lanes[at].due = None;
            self.note_change(at);
            self.offer(at);
        }
        while let Some((until, at, token)) = self.locks.front().copied() {
            match self.lanes[at].token == token {
                true if until > now => break,
                true => self.give_back(at, true)?,
                false => {}
            }
            self.locks.pop_front();
        }
        Ok(())
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let retry = self.retries.peek().map(|Reverse((due, _))| *due);
        retry.into_iter().chain(self.locks.front().map(|(until, ..)| *until)).min()
    }

    fn note_change(&mut self, at: usize) {
        self.has_written = true;
        if !std::mem::replace(&mut self.lanes[at].is_changed, true) {
            self.changed.push(at);
        }
    }

    /// Writes each workflow's row once, however often it has changed.
    pub(crate) fn flush(&mut self) -> Result<()> {
        for at in self.changed.drain(..) {
            let lane = &mut self.lanes[at];
            lane.is_changed = false;
            let due_ms = lane.due.map(|due| due.as_millis() as i64);
            self.tables.update_workflow(at as i64, lane.cursor, lane.handed, due_ms)?;
        }
        Ok(())
    }
}
