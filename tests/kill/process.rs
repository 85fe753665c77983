//! A process that may be killed, as its parent has it.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::WaitOptions;
use serde::Serialize;

use crate::kill::output_lines::Task;
use crate::kill::report::Report;

/// Where the test is that does the task.
const ENTRY: &str = "kill::child::a_process_without_a_task_does_nothing";

/// How long a process is listened to at once.
const SILENCE: Duration = Duration::from_secs(1);

/// How often in a row it may say nothing before its test fails. They are counted, so that a machine that stands still
/// for a minute, this test included, is no failure.
const SILENCES_MAX: u32 = 60;

/// A running process. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Report>,
    reader: Option<JoinHandle<()>>,
}

/// What was heard within a time.
pub(crate) enum Heard {
    Report(Report),
    Nothing,
    /// It has ended, and everything it said was heard.
    End,
}

impl Process {
    pub(crate) fn start(task: &Task) -> Process {
        let (variable, value) = task.variable();
        let program = std::env::current_exe().expect("a test knows its own program");
        let child = Command::new(program)
            .args([ENTRY, "--exact", "--nocapture", "--test-threads=1"])
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("the test binary starts again");
        let stdin = child.stdin.take().expect("asked for");
        let stdout = child.stdout.take().expect("asked for");
        let (sender, lines) = mpsc::channel();
        let reader = std::thread::Builder::new().name("process-lines".to_owned());
        let reader = reader.spawn(move || read(stdout, &sender)).expect("a thread starts");
        Process { child, stdin, lines, reader: Some(reader) }
    }

    /// What it says within a time.
    pub(crate) fn hear_within(&mut self, time_limit: Duration) -> Heard {
        match self.lines.recv_timeout(time_limit) {
            Ok(said) => Heard::Report(said),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// What it says next; none when it has ended.
    pub(crate) fn hear(&mut self) -> Option<Report> {
        for _ in 0..SILENCES_MAX {
            match self.hear_within(SILENCE) {
                Heard::Report(said) => return Some(said),
                Heard::Nothing => {}
                Heard::End => return None,
            }
        }
        panic!("the process says nothing for {SILENCES_MAX} times {SILENCE:?}")
    }

    /// Tells it something. It may have ended already.
    pub(crate) fn tell(&mut self, told: &impl Serialize) {
        let mut line = serde_json::to_string(told).expect("what is told is JSON");
        line.push('\n');
        let _ = self.stdin.write_all(line.as_bytes());
    }

    /// Kills it with SIGKILL, and waits until it is gone. What it had said can still be heard.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Whether it ended well by itself.
    pub(crate) fn has_ended_well(&mut self) -> bool {
        self.child.wait().expect("a child can be waited for").success()
    }

    /// Stops it, with all its threads, and waits until it stands still.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let waited = rustix::process::waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        let status = waited.expect("a child can be waited for").map(|(_, status)| status);
        assert!(status.is_some_and(|status| status.stopped()), "it is stopped: {status:?}");
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal)
            .expect("a child can be signalled");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            // It ends with the pipe. Had it panicked, the process would have been heard to end.
            let _ = reader.join();
        }
    }
}

/// Reads whole lines; one that a kill has cut off was never said, and the harness's own lines are not meant for us.
fn read(stdout: ChildStdout, sender: &Sender<Report>) {
    let mut reader = BufReader::new(stdout);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
        if line.first() == Some(&b'{') || line.first() == Some(&b'"') {
            match serde_json::from_slice(&line) {
                Ok(said) if line.ends_with(b"\n") => drop(sender.send(said)),
                Ok(_) => {}
                Err(error) => assert!(!line.ends_with(b"\n"), "a line is not ours: {error}"),
            }
        }
        line.clear();
    }
}
