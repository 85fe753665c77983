//! A child in a process group of its own, which ends as one.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::WaitId;
use rustix::process::WaitIdOptions;
use rustix::process::kill_process_group;
use rustix::process::waitid;
use tokio::process::Child;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::signal::unix::Signal as SignalStream;
use tokio::signal::unix::SignalKind;

use crate::handlers::fence::sweep;
use crate::task;
use crate::task::boxed;

/// A child and whatever it starts in its group.
///
/// # Dropping
/// A group that has not ended is killed at once, and swept up behind; the runtime collects the child later.
pub(crate) struct ProcessGroup {
    pub(crate) child: Child,
    id: Pid,
    is_collected: bool,
    /// What the child and all it starts carry.
    mark: String,
    /// Tells that some child has exited.
    exits: SignalStream,
}

#[cfg(test)]
thread_local! {
    /// With which number the operating system refuses to start a child on this thread.
    pub(crate) static REFUSED: std::cell::Cell<Option<i32>> = const { std::cell::Cell::new(None) };
}

impl ProcessGroup {
    /// Starts a child in a new group.
    ///
    /// # Errors
    /// As the operating system says; the child is then not running.
    pub(crate) fn start(command: &mut Command, mark: String) -> io::Result<ProcessGroup> {
        #[cfg(test)]
        if let Some(code) = REFUSED.get() {
            return Err(io::Error::from_raw_os_error(code));
        }
        let exits = tokio::signal::unix::signal(SignalKind::child())?;
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = number.ok_or_else(|| io::Error::other("the child has no process ID"))?;
        Ok(ProcessGroup { child, id, is_collected: false, mark, exits })
    }

    /// The group's number, which is the child's.
    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    /// Waits until the child has exited; others of its group may still run.
    ///
    /// It is not collected yet: until then nobody else gets its number, and a signal to the group meets nobody else.
    pub(crate) async fn exited(&mut self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while let Ok(None) = waitid(WaitId::Pid(self.id), look) {
            if self.exits.recv().await.is_none() {
                return;
            }
        }
    }

    /// Asks the whole group to end, and waits for the child, at most so long.
    pub(crate) async fn ask_to_end(&mut self, time_limit: Duration) {
        signal(self.id, Signal::TERM);
        let _ = tokio::time::timeout(time_limit, self.exited()).await;
    }

    /// Kills what still runs of the group, and collects the child.
    ///
    /// # Errors
    /// As the operating system says; the group is killed all the same.
    pub(crate) async fn end(&mut self) -> io::Result<ExitStatus> {
        signal(self.id, Signal::KILL);
        let status = self.child.wait().await;
        self.is_collected = true;
        status
    }

    /// Kills what left the group and still runs: whoever handles the message next must not meet it. A handler that is dropped
    /// meanwhile ends only the wait for it.
    pub(crate) async fn sweep(&self) {
        let _ = task::spawn(sweep(self.mark.clone())).await;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.is_collected {
            signal(self.id, Signal::KILL);
            // Outside a runtime nobody is left who could wait; the next start of the daemon finds them.
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(boxed(sweep(std::mem::take(&mut self.mark))));
            }
        }
    }
}

/// Signals a group; one that is gone needs none.
pub(crate) fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// How a child exited, in words.
pub(crate) fn describe(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "it ended without an exit code".to_owned(),
        },
        Err(error) => format!("its end could not be seen: {error}"),
    }
}
