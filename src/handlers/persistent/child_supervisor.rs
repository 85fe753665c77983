//! Supervises one child process: starts it, exchanges messages with it, ends it when it must not go on, and starts it again.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStderr;
use tokio::process::ChildStdin;
use tokio::process::ChildStdout;
use tokio::sync::watch;

use crate::api::OutcomeEnvelope;
use crate::api::WireDuration;
use crate::handlers::answer;
use crate::handlers::beside::beside;
use crate::handlers::group::ProcessGroup;
use crate::handlers::group::describe;
use crate::handlers::persistent::child_pool::ChildPool;
use crate::handlers::persistent::lines::PipeEnd;
use crate::handlers::persistent::lines::PipeLines;
use crate::handlers::variables::Variables;
use crate::limits;
use crate::mutex::Mutex;

/// Keeps the child of one slot running until it is stopped.
pub(super) struct ChildSupervisor {
    pub(super) shared_pool: Arc<ChildPool>,
    pub(super) slot: usize,
    /// Whether its child gets suspects, and is there only while there are some.
    pub(super) is_extra: bool,
    pub(super) stop: watch::Receiver<bool>,
}

impl Drop for ChildSupervisor {
    /// However it ended: nobody waits for an answer that cannot come, and the number of a group that is gone is not used.
    fn drop(&mut self) {
        self.shared_pool.fail_held(self.slot, "its supervisor is gone");
    }
}

/// Why a child has come to its end.
enum ChildEnd {
    /// It exited, or closed its output.
    Ended,
    /// It wrote something that is no answer.
    Garbage(String),
    /// One of its requests must not go on.
    Killed,
    /// It is not needed any more.
    Stopped,
    /// It is the extra child, and has had nothing to do for a while.
    Idle,
}

impl ChildSupervisor {
    /// Starts a child again and again, as long as there can be something for it.
    pub(super) async fn keep(mut self) {
        let mut deaths = 0;
        while !*self.stop.borrow() && !self.shared_pool.is_closed() {
            if self.is_extra && !self.is_needed().await {
                return;
            }
            let answers = self.shared_pool.answers(self.slot);
            let why = match self.shared_pool.program.start(Variables::new()) {
                Ok(group) => match self.live(group).await {
                    Some(why) => why,
                    None => continue,
                },
                Err(not) if not.is_shortage => {
                    self.pause(not.why).await;
                    continue;
                }
                Err(not) => {
                    if self.is_extra {
                        self.shared_pool.fail_suspects(&not.why);
                    }
                    not.why
                }
            };
            // Who has answered since it started is worth starting again at once.
            deaths = if self.shared_pool.answers(self.slot) > answers { 1 } else { deaths + 1 };
            self.rest(deaths, &why).await;
        }
    }

    /// Waits until there is something for the extra child; false when it is stopped before.
    async fn is_needed(&self) -> bool {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => false,
            () = self.shared_pool.suspects(self.slot) => true,
        }
    }

    /// Waits before a child is started again that dies again and again without an answer.
    async fn rest(&mut self, deaths: u32, why: &str) {
        if *self.stop.borrow() {
            return;
        }
        let (queue, program) = (self.shared_pool.program.queue(), self.shared_pool.program.name());
        tracing::warn!(queue, program, deaths, why, "a persistent handler ended");
        let Some(rest) = rest_after(deaths) else { return };
        let described = format!("{why}; it ended {deaths} times in a row without an answer");
        self.shared_pool.rest(self.slot, rest, described);
        self.wait(rest).await;
    }

    /// Waits before a child is started again for which the daemon lacks something: that says nothing of the program.
    async fn pause(&mut self, why: String) {
        let pause = self.shared_pool.note_shortage(self.slot, why);
        self.wait(pause).await;
    }

    async fn wait(&self, rest: Duration) {
        let mut stop = self.stop.clone();
        let _ = tokio::time::timeout(rest, stop.wait_for(|stop| *stop)).await;
        self.shared_pool.starting(self.slot);
    }

    /// The life of one child; says why it ended, unless it was not needed any more.
    async fn live(&mut self, mut group: ProcessGroup) -> Option<String> {
        let (stdin, stdout, stderr) =
            (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Some("it was started without pipes".to_owned());
        };
        let last_words = Mutex::new(String::new());
        let mut lines = PipeLines::new(stdout, limits::ANSWER_BYTES_MAX);
        let (cause, status) = {
            let complaining = self.listen(stderr, &last_words);
            let living = self.run(&mut group, stdin, &mut lines);
            beside(living, complaining).await
        };
        let last_words = std::mem::take(&mut *last_words.lock());
        let (exit, name) = (describe(&status), self.shared_pool.program.name());
        let why = match &cause {
            ChildEnd::Garbage(garbage) => format!("{name} answered {garbage}"),
            ChildEnd::Stopped => format!("{name} was stopped: the handler is closed"),
            ChildEnd::Killed => format!("{name} was ended"),
            ChildEnd::Idle => format!("{name} was stopped: it had nothing to do"),
            ChildEnd::Ended if last_words.is_empty() => format!("{name} ended: {exit}"),
            ChildEnd::Ended => format!("{name} ended: {exit}: {last_words}"),
        };
        let why = match self.shared_pool.fail_held(self.slot, &why) {
            Some(because) => format!("{why}: {because}"),
            None => why,
        };
        (!matches!(cause, ChildEnd::Idle)).then_some(why)
    }

    /// Exchanges messages with a child until something ends that, then ends the child.
    async fn run(
        &self,
        group: &mut ProcessGroup,
        stdin: ChildStdin,
        lines: &mut PipeLines<ChildStdout>,
    ) -> (ChildEnd, io::Result<ExitStatus>) {
        self.shared_pool.up(self.slot, group.id());
        let cause = self.exchange(group, stdin, lines).await;
        self.shared_pool.ending(self.slot);
        match cause {
            // Its input is closed by now, which tells it to finish.
            ChildEnd::Stopped | ChildEnd::Idle => {
                let finishing = async { tokio::join!(group.exited(), self.read(lines)) };
                if tokio::time::timeout(limits::CHILD_GRACE, finishing).await.is_err() {
                    group.ask_to_end(limits::CHILD_GRACE).await;
                }
            }
            ChildEnd::Ended => drop(tokio::time::timeout(limits::CHILD_GRACE, group.exited()).await),
            // It may finish other messages than the one for which it is ended, and say so.
            ChildEnd::Killed => {
                tokio::select! {
                    () = group.ask_to_end(limits::CHILD_GRACE) => {}
                    () = async { drop(self.read(lines).await); std::future::pending().await } => {}
                }
            }
            ChildEnd::Garbage(_) => group.ask_to_end(limits::CHILD_GRACE).await,
        }
        self.shared_pool.starting(self.slot);
        let status = group.end().await;
        group.sweep().await;
        if let ChildEnd::Ended | ChildEnd::Killed = cause {
            // What it answered before it exited counts.
            let _ = tokio::time::timeout(limits::OUTPUT_GRACE, self.read(lines)).await;
        }
        (cause, status)
    }

    async fn exchange(
        &self,
        group: &mut ProcessGroup,
        stdin: ChildStdin,
        lines: &mut PipeLines<ChildStdout>,
    ) -> ChildEnd {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => ChildEnd::Stopped,
            () = self.shared_pool.killed(self.slot) => ChildEnd::Killed,
            cause = self.read(lines) => cause,
            () = self.write(stdin) => ChildEnd::Ended,
            () = self.watch_time() => ChildEnd::Killed,
            () = group.exited() => ChildEnd::Ended,
            () = self.idle(), if self.is_extra => ChildEnd::Idle,
        }
    }

    /// Returns when the extra child has had nothing to do for a while.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a spare process is kept is no matter of the engine's clock"
    )]
    async fn idle(&self) {
        loop {
            let answers = self.shared_pool.answers(self.slot);
            tokio::time::sleep(limits::EXTRA_CHILD_IDLE).await;
            if answers == self.shared_pool.answers(self.slot) && self.shared_pool.dismiss_extra(self.slot) {
                return;
            }
        }
    }

    /// Writes what is submitted; all that has come together in one piece.
    async fn write(&self, mut stdin: ChildStdin) {
        let mut lines = Vec::new();
        loop {
            lines.clear();
            self.shared_pool.outgoing(self.slot, &mut lines).await;
            if stdin.write_all(&lines).await.is_err() {
                return;
            }
        }
    }

    /// Passes on what a child writes to its standard error, keeps it for what fails meanwhile, and its last words.
    async fn listen(&self, stderr: ChildStderr, last_words: &Mutex<String>) {
        let mut lines = PipeLines::new(stderr, limits::COMPLAINT_BYTES_MAX);
        let pass_on = |line: &[u8]| {
            self.shared_pool.complained(self.slot, &String::from_utf8_lossy(line));
            let line = answer::legible(line);
            let (queue, program) = (self.shared_pool.program.queue(), self.shared_pool.program.name());
            tracing::info!(queue, program, line, "a persistent handler wrote a line");
            *last_words.lock() = line;
        };
        loop {
            match lines.next(pass_on).await {
                Ok(()) => {}
                // Its parts are passed on as lines: what is wrong may stand in any of them.
                Err(PipeEnd::TooLong) => lines.cut(pass_on),
                Err(PipeEnd::Closed) => return,
            }
        }
    }

    async fn read(&self, lines: &mut PipeLines<ChildStdout>) -> ChildEnd {
        loop {
            let (mut answers, mut garbage) = (Vec::new(), None);
            let ended = lines.next(|line| match serde_json::from_slice::<OutcomeEnvelope>(line) {
                _ if garbage.is_some() => {}
                Ok(answer) => answers.push(answer),
                Err(error) => garbage = Some(format!("garbage: {error}: {}", answer::legible(line))),
            });
            let ended = ended.await;
            if let Err(wrong) = self.shared_pool.answered(self.slot, answers) {
                return ChildEnd::Garbage(wrong);
            }
            match (garbage, ended) {
                (Some(garbage), _) => return ChildEnd::Garbage(garbage),
                (None, Ok(())) => {}
                (None, Err(PipeEnd::Closed)) => return ChildEnd::Ended,
                (None, Err(PipeEnd::TooLong)) => {
                    let max = limits::ANSWER_BYTES_MAX;
                    return ChildEnd::Garbage(format!("a line of more than {max} bytes"));
                }
            }
        }
    }

    /// Returns when the oldest request a child holds has taken too long.
    #[expect(
        clippy::disallowed_methods,
        reason = "a foreign program knows no clock but the real one; the definition bounds it"
    )]
    async fn watch_time(&self) {
        let why = format!("timed out after {}", WireDuration(self.shared_pool.program.timeout));
        loop {
            match self.shared_pool.check_time(self.slot, &why) {
                Some(left) => tokio::time::sleep(left).await,
                None => return,
            }
        }
    }
}

/// How long a child is not started that ended so often without an answer.
fn rest_after(deaths: u32) -> Option<Duration> {
    let over = deaths.checked_sub(limits::QUICK_DEATHS_MAX)?;
    Some((limits::RESTART_REST * 2_u32.saturating_pow(over)).min(limits::RESTART_REST_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_keeps_dying_is_started_more_and_more_seldom_but_never_given_up() {
        assert_eq!(rest_after(1), None);
        assert_eq!(rest_after(limits::QUICK_DEATHS_MAX), Some(limits::RESTART_REST));
        assert_eq!(rest_after(limits::QUICK_DEATHS_MAX + 1), Some(limits::RESTART_REST * 2));
        assert_eq!(rest_after(u32::MAX), Some(limits::RESTART_REST_MAX));
    }
}
