//! Processes that carry a store's ID in their environment, as `/proc` shows them.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::Signal;
use rustix::process::getpgrp;
use rustix::process::kill_process;
use rustix::process::pidfd_open;
use rustix::process::pidfd_send_signal;

use crate::handlers::variables::STORE;

/// A process that is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    group: i32,
    /// Whether it carries the ID itself, or only stands in the group of one that does.
    carries: bool,
}

/// What a process carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Ours,
    Foreign,
    None,
}

/// Whether there is a `/proc` that shows at least this process.
pub(super) fn can_be_found() -> bool {
    look(own_pid(), "").is_some()
}

/// All processes but this one that carry the ID, and those in groups of theirs that carry no other.
pub(super) fn find(store_id: &str) -> Vec<Process> {
    let seen: Vec<(Process, Mark)> = pids().filter_map(|pid| look(pid, store_id)).collect();
    let ours = |process: &Process| process.carries;
    let carriers: BTreeSet<i32> =
        seen.iter().map(|(process, _)| process).filter(|p| ours(p)).map(|p| p.pid).collect();
    let alive: BTreeSet<i32> = seen.iter().map(|(process, _)| process.pid).collect();
    // A group belongs to the store if its leader carries the ID, or is gone and somebody in it does.
    let led = |group: i32| carriers.contains(&group) || !alive.contains(&group);
    let groups: BTreeSet<i32> = seen
        .iter()
        .map(|(process, _)| process)
        .filter(|process| ours(process) && led(process.group))
        .map(|process| process.group)
        .collect();
    let here = (own_pid(), getpgrp().as_raw_nonzero().get());
    seen.into_iter()
        .filter(|(process, mark)| {
            let is_led = process.group != here.1 && groups.contains(&process.group) && *mark == Mark::None;
            process.pid != here.0 && (ours(process) || is_led)
        })
        .map(|(process, _)| process)
        .collect()
}

/// Kills a process, if it is still the one that was found. Says whether it was.
pub(super) fn kill(found: Process, store_id: &str) -> bool {
    let Some(pid) = Pid::from_raw(found.pid) else { return false };
    // With the descriptor in hand, the number cannot come to mean another process.
    let descriptor = pidfd_open(pid, PidfdFlags::empty());
    let is_same = look(found.pid, store_id).is_some_and(|(process, _)| process == found);
    if !is_same {
        return false;
    }
    match descriptor {
        Ok(descriptor) => pidfd_send_signal(descriptor, Signal::KILL).is_ok(),
        Err(rustix::io::Errno::SRCH) => false,
        // An old kernel has no such descriptors; the look a moment ago must do.
        Err(_) => kill_process(pid, Signal::KILL).is_ok(),
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Looks at a process; none when it is gone, or dead and not collected yet.
fn look(pid: i32, store_id: &str) -> Option<(Process, Mark)> {
    let (state, group) = state_and_group(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    // What belongs to somebody else cannot be read, and is not ours.
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = mark_of(&environment, store_id);
    Some((Process { pid, group, carries: mark == Mark::Ours }, mark))
}

/// The first and third field of the line behind the name in brackets, which may hold anything.
fn state_and_group(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

fn mark_of(environment: &[u8], store_id: &str) -> Mark {
    let value = |variable: &[u8]| {
        Some(variable.strip_prefix(STORE.as_bytes())?.strip_prefix(b"=")? == store_id.as_bytes())
    };
    match environment.split(|byte| *byte == 0).find_map(value) {
        Some(true) => Mark::Ours,
        Some(false) => Mark::Foreign,
        None => Mark::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_read_behind_a_name_that_may_hold_anything() {
        assert_eq!(state_and_group("12 (a) S 7 (b)) R 1 4711 4711 0"), Some(('R', 4711)));
        assert_eq!(state_and_group("12 (a"), None);
    }

    #[test]
    fn only_the_whole_id_under_the_whole_name_is_ours() {
        assert_eq!(mark_of(b"A=1\0SERIATIM_STORE=abc\0", "abc"), Mark::Ours);
        assert_eq!(mark_of(b"SERIATIM_STORE=abcd\0", "abc"), Mark::Foreign);
        assert_eq!(mark_of(b"X_SERIATIM_STORE=abc\0SERIATIM_STORED=abc\0", "abc"), Mark::None);
        assert_eq!(mark_of(b"", ""), Mark::None);
    }
}
