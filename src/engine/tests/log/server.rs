//! Servers of a log, in memory, that lose, delay and double what they are asked and what they answer, out of a seed; but what
//! they have acknowledged they keep.

use std::sync::Arc;

use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::shared_log::AppendAnswer;
use crate::engine::store::shared_log::Bounds;
use crate::engine::store::shared_log::LogServer;
use crate::engine::store::shared_log::ReadError;
use crate::engine::tests::crash::random::Random;
use crate::error::Fault;
use crate::mutex::Mutex;

/// The servers. Clones are the same servers, as other nodes reach them.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Mutex<State>>);

struct State {
    random: Random,
    misbehaves: bool,
    first: u64,
    entries: Vec<Vec<u8>>,
    /// Appends that are still on their way.
    late: Vec<(u64, Vec<u8>)>,
    /// What no reader finds, although it is there.
    hidden: Option<u64>,
    /// What is there no more.
    lost: Option<u64>,
    /// What is of a version that nobody here reads.
    newer: Option<u64>,
    /// A bug to be caught: an entry is appended whatever it expects.
    takes_anything: bool,
}

impl Servers {
    pub(crate) fn sound() -> Servers {
        Servers::new(0, false)
    }

    pub(crate) fn misbehaving(seed: u64) -> Servers {
        Servers::new(seed, true)
    }

    fn new(seed: u64, misbehaves: bool) -> Servers {
        Servers(Arc::new(Mutex::new(State {
            random: Random::new(seed),
            misbehaves,
            first: 1,
            entries: Vec::new(),
            late: Vec::new(),
            hidden: None,
            lost: None,
            newer: None,
            takes_anything: false,
        })))
    }

    /// Leaves out an entry wherever many are read at once.
    pub(crate) fn hide(&self, position: u64) {
        self.0.lock().hidden = Some(position);
    }

    /// Loses an entry in the middle.
    pub(crate) fn lose(&self, position: u64) {
        self.0.lock().lost = Some(position);
    }

    /// Has an entry be of a version that nobody here reads.
    pub(crate) fn renew(&self, position: u64) {
        self.0.lock().newer = Some(position);
    }

    /// Loses what comes behind a position.
    pub(crate) fn cut(&self, position: u64) {
        let mut state = self.0.lock();
        let kept = usize::try_from(position + 1 - state.first).unwrap();
        state.entries.truncate(kept);
    }

    /// Flips a bit of an entry for good.
    pub(crate) fn flip(&self, position: u64, bit: usize) {
        let mut state = self.0.lock();
        let index = usize::try_from(position - state.first).unwrap();
        state.entries[index][bit / 8] ^= 1 << (bit % 8);
    }

    /// Plants the bug that any entry is appended, whatever position it expects.
    pub(crate) fn take_anything(&self) {
        self.0.lock().takes_anything = true;
    }

    pub(crate) fn last(&self) -> u64 {
        self.0.lock().last()
    }

    /// The bytes of the largest entry.
    #[cfg(feature = "cluster")]
    pub(crate) fn largest_entry(&self) -> usize {
        self.0.lock().entries.iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl State {
    fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }

    fn get(&self, position: u64) -> Option<&Vec<u8>> {
        let index = position.checked_sub(self.first)?;
        self.entries.get(usize::try_from(index).ok()?).filter(|_| self.lost != Some(position))
    }

    fn take(&mut self, position: u64, bytes: &[u8]) -> AppendAnswer {
        if self.last() + 1 != position && !self.takes_anything {
            return AppendAnswer::NotNext;
        }
        self.entries.push(bytes.to_vec());
        AppendAnswer::Appended(position)
    }

    /// Lets what was on its way come in, before or after anything else.
    fn let_late_in(&mut self) {
        while !self.late.is_empty() && self.random.once_in(3) {
            let index = usize::try_from(self.random.below(self.late.len() as u64)).unwrap();
            let (position, bytes) = self.late.swap_remove(index);
            drop(self.take(position, &bytes));
        }
    }

    /// How many entries at the end are not seen yet by whoever is asked.
    fn lag(&mut self) -> u64 {
        match self.misbehaves && self.random.once_in(3) {
            true => self.random.below(4),
            false => 0,
        }
    }
}

impl LogServer for Servers {
    fn append(&self, entry: Entry<'_>) -> AppendAnswer {
        let mut state = self.0.lock();
        if !state.misbehaves {
            return state.take(entry.position, entry.bytes);
        }
        state.let_late_in();
        let unknown = || AppendAnswer::Unknown("no answer".to_owned());
        match state.random.below(8) {
            0 => unknown(),
            1 => {
                state.late.push((entry.position, entry.bytes.to_vec()));
                unknown()
            }
            2 => {
                drop(state.take(entry.position, entry.bytes));
                unknown()
            }
            3 => {
                // It arrives twice, and the second answer overtakes the first.
                drop(state.take(entry.position, entry.bytes));
                state.take(entry.position, entry.bytes)
            }
            4 => {
                // It arrives once more when it was answered.
                let answer = state.take(entry.position, entry.bytes);
                state.late.push((entry.position, entry.bytes.to_vec()));
                answer
            }
            _ => state.take(entry.position, entry.bytes),
        }
    }

    fn bounds(&self) -> Result<Bounds, String> {
        let mut state = self.0.lock();
        if state.misbehaves && state.random.once_in(6) {
            return Err("no answer".to_owned());
        }
        let lag = state.lag();
        let last = state.last().saturating_sub(lag).max(state.first - 1);
        Ok(Bounds { first: state.first, last })
    }

    fn entry_at(&self, position: u64) -> Result<Option<Vec<u8>>, String> {
        let mut state = self.0.lock();
        state.let_late_in();
        if state.misbehaves && state.random.once_in(6) {
            return Err("no answer".to_owned());
        }
        let seen = state.last().saturating_sub(state.lag());
        Ok(state.get(position).filter(|_| position <= seen).cloned())
    }

    fn read_at(&self, position: u64) -> Result<Option<Vec<u8>>, ReadError> {
        if self.0.lock().newer == Some(position) {
            return Err(ReadError::Entry(Fault::Log(format!("entry {position} is of a newer version"))));
        }
        self.entry_at(position).map_err(ReadError::Server)
    }

    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), ReadError> {
        let (entries, breaks_off) = {
            let mut state = self.0.lock();
            let seen = state.last().saturating_sub(state.lag());
            let hole = match state.misbehaves && state.random.once_in(4) {
                true => position + state.random.below(6),
                false => 0,
            };
            let is_seen = |at: &u64| *at != hole && state.hidden != Some(*at);
            let positions = (position.max(state.first)..=seen).filter(is_seen);
            let entries: Vec<_> = positions.filter_map(|at| Some((at, state.get(at)?.clone()))).collect();
            (entries, state.misbehaves && state.random.once_in(8))
        };
        let kept = if breaks_off { entries.len() / 2 } else { entries.len() };
        for (position, bytes) in entries.iter().take(kept) {
            each(Entry { position: *position, bytes }).map_err(ReadError::Entry)?;
        }
        match breaks_off {
            true => Err(ReadError::Server("the connection was lost".to_owned())),
            false => Ok(()),
        }
    }

    fn trim(&self, through: u64) -> Result<(), String> {
        let mut state = self.0.lock();
        let gone = usize::try_from(through + 1 - state.first).unwrap();
        state.entries.drain(..gone);
        state.first = through + 1;
        Ok(())
    }

    fn pause(&self, _attempt: u32) -> bool {
        true
    }
}
