//! A log on servers that several nodes can reach: who may append is decided by the position that each append expects.
//!
//! One append is under way at a time. An answer that does not say for certain whether the entry was taken is no answer:
//! the same entry is offered for the same position again, until one does. When the position is taken, the entry that
//! stands there is compared: it may be this one, whose acknowledgement was lost.
//!
//! Reading trusts no server to be whole. Each entry has to follow the one before it, to be as it was written, and reading
//! has to reach the end that was known when it began; what is missing is asked for again, by its position at last.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
#[cfg(feature = "cluster")]
use crate::engine::store::log::LogPlace;
use crate::error::Fault;
use crate::limits;

/// What a server answers to an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AppendAnswer {
    /// The entry is durable at this position.
    Appended(u64),
    /// The last entry is not the one before: nothing was appended.
    NotNext,
    /// The entry has more bytes than the servers take.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "servers in memory take anything"))]
    TooLarge { max: usize },
    /// No answer came, or one that says nothing of the entry, with what is known of it.
    Unknown(String),
}

/// Where the entries that a server keeps begin and end; the first is behind the last when there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The servers of a log. An error of any of these says nothing of the entries, and it is asked again; but for
/// [`ReadError::Entry`].
pub(crate) trait LogServer: Send + Sync {
    /// Appends an entry if the last one is the one before it.
    fn append(&self, entry: Entry<'_>) -> AppendAnswer;

    /// Which entries there are.
    fn bounds(&self) -> Result<Bounds, String>;

    /// The entry at a position, if there is one.
    fn entry_at(&self, position: u64) -> Result<Option<Vec<u8>>, String>;

    /// The same for whoever applies it: it has to be of a version that is read here.
    fn read_at(&self, position: u64) -> Result<Option<Vec<u8>>, ReadError>;

    /// Calls `each` with entries from a position on, as far as they come, by a reader of its own.
    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), ReadError>;

    /// Gives up the entries up to a position.
    #[cfg_attr(not(any(test, feature = "cluster")), allow(dead_code, reason = "only snapshots trim a log"))]
    fn trim(&self, through: u64) -> Result<(), String>;

    /// Waits before something is asked for the `attempt`th time again. False when that is not wanted any more.
    fn pause(&self, attempt: u32) -> bool;
}

/// Why reading ended early.
pub(crate) enum ReadError {
    /// The server failed.
    Server(String),
    /// What is done with an entry failed.
    Entry(Fault),
}

/// A log on servers.
pub(crate) struct SharedLog<S> {
    server: S,
    /// The last entry that was read here, or appended.
    at: AtomicU64,
    /// The last entry that is known to be there.
    end: AtomicU64,
}

/// How far reading has come.
struct ReadProgress {
    /// The position of the next entry.
    next: u64,
    /// The last that was there when reading began.
    last: u64,
    /// Whether an entry was out of place, or not as it was written.
    is_broken: bool,
}

impl<S: LogServer> SharedLog<S> {
    pub(crate) fn new(server: S) -> SharedLog<S> {
        SharedLog { server, at: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// The positions of the last entry that was read here or appended, and of the last that is known to be there.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "a node of a cluster says it"))]
    pub(crate) fn ends(&self) -> (u64, u64) {
        let at = self.at.load(Ordering::Relaxed);
        (at, self.end.load(Ordering::Relaxed).max(at))
    }

    /// Notes that an entry is known to be there.
    #[cfg(feature = "cluster")]
    pub(crate) fn hear_of(&self, position: u64) {
        self.end.fetch_max(position, Ordering::Relaxed);
    }

    /// The servers.
    #[cfg(feature = "cluster")]
    pub(crate) fn server(&self) -> &S {
        &self.server
    }

    /// The position of the first entry that is kept; behind the last when there is none.
    ///
    /// # Errors
    /// [`Fault::Log`] when it was not waited for an answer.
    #[cfg(feature = "cluster")]
    pub(crate) fn first(&self) -> Result<u64, Fault> {
        Ok(self.insist("the ends of the log were known", || self.server.bounds())?.first)
    }

    /// Whether the entry at a place is there, and is that with this checksum.
    ///
    /// # Errors
    /// [`Fault::Log`] when no answer came to a few attempts.
    #[cfg(feature = "cluster")]
    pub(crate) fn has(&self, place: LogPlace) -> Result<bool, Fault> {
        let LogPlace { position, checksum } = place;
        let few = limits::LOG_ATTEMPTS_FEW;
        let found = self.ask(few, "an entry was read", || self.server.entry_at(position))?;
        let entry = found.as_ref().map(|bytes| Entry { position, bytes });
        Ok(entry.and_then(Entry::checksum) == Some(checksum))
    }

    /// Notes an entry that was read or appended.
    fn pass(&self, position: u64) {
        self.at.fetch_max(position, Ordering::Relaxed);
    }

    /// Asks until there is an answer.
    fn insist<T>(&self, what: &str, ask: impl Fn() -> Result<T, String>) -> Result<T, Fault> {
        self.ask(u32::MAX, what, ask)
    }

    /// Asks until there is an answer, or so many attempts had none.
    fn ask<T>(&self, attempts: u32, what: &str, ask: impl Fn() -> Result<T, String>) -> Result<T, Fault> {
        let mut attempt = 0;
        loop {
            match ask() {
                Ok(answer) => return Ok(answer),
                Err(why) if attempt + 1 == attempts => return Err(left_off(what, &why)),
                Err(why) => self.wait(what, &why, &mut attempt)?,
            }
        }
    }

    /// Waits before the next attempt.
    fn wait(&self, what: &str, why: &str, attempt: &mut u32) -> Result<(), Fault> {
        *attempt += 1;
        // Replicas are behind for a moment as a matter of course.
        if *attempt >= limits::LOG_ATTEMPTS_QUIET && attempt.is_power_of_two() {
            tracing::warn!(
                what,
                why,
                attempt = *attempt,
                "the servers of a log have not answered, it is asked again"
            );
        }
        match self.server.pause(*attempt) {
            true => Ok(()),
            false => Err(left_off(what, why)),
        }
    }

    /// Whether an entry is there whose position is not the next: false when another is in its place; `None` when that cannot be seen
    /// yet.
    fn is_there(&self, entry: Entry<'_>) -> Result<Option<bool>, Fault> {
        let found =
            self.insist("the entry at a position was read", || self.server.entry_at(entry.position))?;
        // One that is damaged on the server that was asked says nothing of what the others have.
        let is_sound = |bytes: &Vec<u8>| Entry { position: entry.position, bytes }.is_sound();
        if let Some(found) = found.filter(is_sound) {
            return Ok(Some(found == entry.bytes));
        }
        let bounds = self.insist("the ends of the log were known", || self.server.bounds())?;
        if bounds.first > entry.position {
            return Err(Fault::Replaced);
        }
        Ok(None)
    }

    /// Where the log begins and ends. That it does not reach to a position that it had reached is believed late.
    fn bounds(&self, position: u64) -> Result<Bounds, Fault> {
        let mut attempt = 0;
        loop {
            let bounds = self.insist("the ends of the log were known", || self.server.bounds())?;
            if bounds.last >= position || attempt == limits::LOG_LOOKS_MAX {
                self.end.fetch_max(bounds.last, Ordering::Relaxed);
                return Ok(bounds);
            }
            self.wait("the log was read", "it ends before an entry that it had", &mut attempt)?;
        }
    }

    /// Reads on by another reader; what is missing is left to be asked for.
    fn read_on(&self, progress: &mut ReadProgress, each: &mut EachEntry<'_>) -> Result<(), ReadError> {
        progress.is_broken = false;
        let mut broken = false;
        let read = self.server.read_from(progress.next, &mut |entry| {
            if entry.position < progress.next {
                return Ok(());
            }
            if entry.position > progress.next || !entry.is_sound() {
                broken = true;
                return Err(Fault::Log(format!("entry {} is missing or damaged", progress.next)));
            }
            each(entry)?;
            self.pass(entry.position);
            progress.next += 1;
            Ok(())
        });
        progress.is_broken = broken;
        match read {
            Err(_) if broken => Ok(()),
            read => read,
        }
    }

    /// Reads one entry by its position, as no reader brought it.
    fn read_one(&self, progress: &mut ReadProgress, each: &mut EachEntry<'_>) -> Result<(), Fault> {
        let (position, mut attempt) = (progress.next, 0);
        loop {
            let read = || match self.server.read_at(position) {
                Ok(found) => Ok(Ok(found)),
                Err(ReadError::Entry(fault)) => Ok(Err(fault)),
                Err(ReadError::Server(why)) => Err(why),
            };
            let found = self.insist("a missing entry was read", read)??;
            let entry = found.as_ref().map(|bytes| Entry { position, bytes });
            let why = match entry {
                Some(entry) if entry.is_sound() => {
                    each(entry)?;
                    self.pass(position);
                    progress.next += 1;
                    return Ok(());
                }
                Some(_) => format!("entry {position} is damaged on the server that was asked for it"),
                None => {
                    let last = progress.last;
                    format!(
                        "entry {position} is missing, and it reaches to entry {last}: its servers have lost what they had acknowledged"
                    )
                }
            };
            // A server that lags has not got it yet, and another may be asked next time.
            if attempt == limits::LOG_LOOKS_MAX {
                return Err(Fault::Log(why));
            }
            self.wait("a missing entry was read", &why, &mut attempt)?;
        }
    }
}

impl<S: LogServer> SharedLog<S> {
    /// Offers an entry until it is known whether it was taken.
    fn offer(&self, entry: Entry<'_>) -> Result<(), Fault> {
        let (mut attempt, mut unseen) = (0, 0);
        loop {
            let why = match self.server.append(entry) {
                AppendAnswer::Appended(at) if at == entry.position => return Ok(()),
                AppendAnswer::Appended(at) => {
                    let what =
                        format!("entry {} was put at position {at}: it is not the same log", entry.position);
                    return Err(Fault::Log(what));
                }
                AppendAnswer::NotNext => match self.is_there(entry)? {
                    Some(true) => return Ok(()),
                    Some(false) => return Err(Fault::Deposed),
                    None if unseen == limits::LOG_LOOKS_MAX => {
                        return Err(Fault::Log(format!(
                            "entry {} is damaged, or it does not reach to the one before",
                            entry.position
                        )));
                    }
                    None => {
                        unseen += 1;
                        "nothing is at the position, and it is not the next".to_owned()
                    }
                },
                AppendAnswer::TooLarge { max } => {
                    let bytes = entry.bytes.len();
                    let what =
                        format!("its servers take entries of {max} bytes at most, and one has {bytes}");
                    return Err(Fault::Log(what));
                }
                AppendAnswer::Unknown(why) => why,
            };
            self.wait("an entry was acknowledged", &why, &mut attempt)?;
        }
    }
}

impl<S: LogServer> Log for SharedLog<S> {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        self.offer(entry)?;
        self.pass(entry.position);
        Ok(())
    }

    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), Fault> {
        let bounds = self.bounds(position)?;
        let mut progress =
            ReadProgress { next: position.max(bounds.first), last: bounds.last, is_broken: false };
        let (mut attempt, mut stuck) = (0, 0);
        while progress.next <= progress.last {
            let before = progress.next;
            match self.read_on(&mut progress, each) {
                Ok(()) => {}
                Err(ReadError::Entry(fault)) => return Err(fault),
                Err(ReadError::Server(why)) => self.wait("the log was read", &why, &mut attempt)?,
            }
            if progress.next > before {
                stuck = 0;
                continue;
            }
            stuck += 1;
            if stuck >= limits::LOG_READERS_MAX && (progress.is_broken || stuck >= limits::LOG_LOOKS_MAX) {
                self.read_one(&mut progress, each)?;
                stuck = 0;
            } else {
                let why = match progress.is_broken {
                    true => "an entry was missing or damaged",
                    false => "the server that was asked has not got the last entries",
                };
                self.wait("the log was read", why, &mut attempt)?;
            }
        }
        Ok(())
    }

    fn trim(&self, through: u64) -> Result<(), Fault> {
        // Who trims it has other logs to trim.
        let few = limits::LOG_ATTEMPTS_FEW;
        let bounds = self.ask(few, "the ends of the log were known", || self.server.bounds())?;
        let through = through.min(bounds.last.saturating_sub(1));
        if through < bounds.first {
            return Ok(());
        }
        self.ask(few, "the log was trimmed", || self.server.trim(through))
    }
}

/// What is said when an answer is waited for no longer.
fn left_off(what: &str, why: &str) -> Fault {
    Fault::Log(format!("it was not waited until {what}: {why}"))
}
