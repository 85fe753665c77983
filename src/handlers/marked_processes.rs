//! Processes that carry a mark in their environment, the store's ID or that of one child, as `/proc` shows them.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::Signal;
use rustix::process::getpgrp;
use rustix::process::kill_process;
use rustix::process::pidfd_open;
use rustix::process::pidfd_send_signal;

/// A variable and its value, by which processes are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EnvironmentMark {
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// A process that is to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// When it was started: together with its number it is this process and no other.
    started: u64,
    group: i32,
    /// Whether it carries the mark itself, or only stands in the group of one that does.
    carries: bool,
    /// Whether it was asked to stop and does nothing any more.
    pub(super) is_stopped: bool,
}

/// What a process carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessMark {
    Ours,
    Foreign,
    None,
    /// It becomes another program at this moment, and the kernel does not show its environment yet.
    Unknown,
}

/// What one look through all processes has shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight {
    /// Who is to go.
    pub(super) found: Vec<Process>,
    /// Whether everybody's environment was to be seen: who becomes another program for a moment carries nothing.
    pub(super) is_whole: bool,
}

/// Whether there is a `/proc` that shows at least this process.
pub(super) fn can_be_found() -> bool {
    look(own_pid(), &EnvironmentMark { name: "", value: String::new() }).is_some()
}

/// All processes but this one that carry the mark, and those in groups of theirs that carry no other.
pub(super) fn find(carried: &EnvironmentMark) -> Sight {
    let seen: Vec<(Process, ProcessMark)> = pids().filter_map(|pid| look(pid, carried)).collect();
    let is_whole = seen.iter().all(|(_, mark)| *mark != ProcessMark::Unknown);
    let ours = |process: &Process| process.carries;
    let marked_processes: BTreeSet<i32> =
        seen.iter().map(|(process, _)| process).filter(|p| ours(p)).map(|p| p.pid).collect();
    let alive: BTreeSet<i32> = seen.iter().map(|(process, _)| process.pid).collect();
    // A group belongs to the mark if its leader carries it, or is gone and somebody in it does.
    let led = |group: i32| marked_processes.contains(&group) || !alive.contains(&group);
    let groups: BTreeSet<i32> = seen
        .iter()
        .map(|(process, _)| process)
        .filter(|process| ours(process) && led(process.group))
        .map(|process| process.group)
        .collect();
    let here = (own_pid(), getpgrp().as_raw_nonzero().get());
    let is_to_go = |process: &Process, mark: ProcessMark| {
        let is_led =
            process.group != here.1 && groups.contains(&process.group) && mark != ProcessMark::Foreign;
        process.pid != here.0 && (ours(process) || is_led)
    };
    let found = seen.iter().filter(|(process, mark)| is_to_go(process, *mark)).map(|(process, _)| *process);
    Sight { found: found.collect(), is_whole }
}

/// Signals a process, if it is still the one that was found. Says whether it was.
pub(super) fn signal(found: Process, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(found.pid) else { return false };
    // With the descriptor in hand, the number cannot come to mean another process.
    let descriptor = pidfd_open(pid, PidfdFlags::empty());
    if stat_of(found.pid).is_none_or(|stat| stat.started != found.started) {
        return false;
    }
    match descriptor {
        Ok(descriptor) => pidfd_send_signal(descriptor, signal).is_ok(),
        Err(rustix::io::Errno::SRCH) => false,
        // An old kernel has no such descriptors; the look a moment ago must do.
        Err(_) => kill_process(pid, signal).is_ok(),
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
fn look(pid: i32, carried: &EnvironmentMark) -> Option<(Process, ProcessMark)> {
    let stat = stat_of(pid)?;
    let mark = match fs::read(format!("/proc/{pid}/environ")) {
        Ok(environment) if environment.is_empty() && stat.is_becoming => ProcessMark::Unknown,
        Ok(environment) => mark_of(&environment, carried),
        // What belongs to somebody else cannot be read, and is not ours.
        Err(_) => ProcessMark::None,
    };
    let Stat { state, group, started, .. } = stat;
    let process = Process {
        pid,
        started,
        group,
        carries: mark == ProcessMark::Ours,
        is_stopped: matches!(state, 'T' | 't'),
    };
    Some((process, mark))
}

/// What the kernel says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    group: i32,
    started: u64,
    /// Whether it has memory but no place for its environment in it: it is between two programs.
    is_becoming: bool,
}

/// None when it is gone, or dead and not collected yet.
fn stat_of(pid: i32) -> Option<Stat> {
    let stat = read_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    (!matches!(stat.state, 'Z' | 'X' | 'x')).then_some(stat)
}

/// Reads what is needed behind the name in brackets, which may hold anything. The fields are those of proc_pid_stat(5),
/// the state being the first here: 20 is the size of its memory, 48 where its environment ends.
fn read_stat(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let is_zero = |at: usize| fields.get(at).is_none_or(|field| *field == "0");
    Some(Stat {
        state: fields.first()?.chars().next()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        is_becoming: !is_zero(20) && is_zero(48),
    })
}

fn mark_of(environment: &[u8], carried: &EnvironmentMark) -> ProcessMark {
    let value = |variable: &[u8]| {
        let value = variable.strip_prefix(carried.name.as_bytes())?.strip_prefix(b"=")?;
        Some(value == carried.value.as_bytes())
    };
    match environment.split(|byte| *byte == 0).find_map(value) {
        Some(true) => ProcessMark::Ours,
        Some(false) => ProcessMark::Foreign,
        None => ProcessMark::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read_behind_a_name_that_may_hold_anything() {
        let line = |memory: u64, end: u64| {
            let between = "0 ".repeat(27);
            format!(
                "12 (a) S 7 (b)) R 1 4711 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1234 {memory} {between}{end} 0"
            )
        };
        let stat = |is_becoming| Some(Stat { state: 'R', group: 4711, started: 1234, is_becoming });
        assert_eq!(read_stat(&line(4096, 70_000)), stat(false));
        assert_eq!(read_stat(&line(4096, 0)), stat(true));
        assert_eq!(read_stat(&line(0, 0)), stat(false));
        assert_eq!(read_stat("12 (a"), None);
    }

    #[test]
    fn only_the_whole_id_under_the_whole_name_is_ours() {
        let carried = EnvironmentMark { name: "SERIATIM_STORE", value: "abc".to_owned() };
        assert_eq!(mark_of(b"A=1\0SERIATIM_STORE=abc\0", &carried), ProcessMark::Ours);
        assert_eq!(mark_of(b"SERIATIM_STORE=abcd\0", &carried), ProcessMark::Foreign);
        assert_eq!(mark_of(b"X_SERIATIM_STORE=abc\0SERIATIM_STORED=abc\0", &carried), ProcessMark::None);
        assert_eq!(mark_of(b"", &carried), ProcessMark::None);
    }
}
