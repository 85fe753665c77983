//! A program that is run once for each message.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

use crate::api::WireDuration;
use crate::definition::ProgramDefinition;
use crate::engine::Output;
use crate::handlers::answer;
use crate::handlers::beside::beside;
use crate::handlers::ending::GIVEN_UP;
use crate::handlers::ending::LOCK_LOST;
use crate::handlers::group::ProcessGroup;
use crate::handlers::group::describe;
use crate::handlers::handler_program::HandlerProgram;
use crate::handlers::output;
use crate::handlers::program::StartError;
use crate::handlers::shortage::Shortage;
use crate::handlers::site::Site;
use crate::handlers::tail::Tail;
use crate::handlers::variables;
use crate::handlers::variables::Variables;
use crate::limits;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Raw;

/// Exit code of a program that wants its message again later: `EX_TEMPFAIL`.
const TRY_AGAIN: i32 = 75;

/// Exit code of a program that can never handle its message: `EX_DATAERR`.
const BAD_DATA: i32 = 65;

/// Reason of a dead letter whose program gave none.
const BAD_DATA_REASON: &str = "DeadLetteredByHandler";

/// The same of a program that did not end when it was asked to.
const GIVEN_UP_AND_KILLED: &str = "killed: the daemon was stopped, its drain time was over, and the program did not end when it was asked to";

/// What is run, and how.
#[derive(Clone, Debug)]
pub(crate) struct ExecOptions {
    /// The program.
    pub(crate) program: ProgramDefinition,
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
    /// How much is kept of the end of each of its outputs.
    pub(crate) output_bytes_max: usize,
}

/// Runs a program for each message: the body on its input, what it is to know of the message in its environment.
///
/// It ends with its message: whatever it left behind in its process group is killed, also when the lock is lost, and
/// when nobody waits for it any more. Unless it exited with 0, what it had detached from its group is killed too.
pub(crate) struct Exec {
    program: HandlerProgram,
    output_bytes_max: usize,
}

/// How the run of a program came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramEnd {
    Exited,
    LockLost,
    TimedOut,
    /// The daemon stops, and its drain time is over.
    GivenUp,
}

/// What a program left.
struct Ran {
    end: ProgramEnd,
    status: io::Result<ExitStatus>,
    output: Tail,
    errors: Tail,
}

impl Exec {
    pub(crate) fn new(options: ExecOptions, site: Site) -> Exec {
        let ExecOptions { program, timeout, output_bytes_max } = options;
        Exec { program: HandlerProgram::new(program, timeout, site), output_bytes_max }
    }

    /// Whether its program cannot be started for a while, and how.
    pub(crate) fn shortage(&self) -> &Shortage {
        &self.program.shortage
    }

    /// Runs the program with a document on its input, without a message; any exit code but 0 is a failure.
    pub(crate) async fn notify(&self, document: Bytes) -> Result<(), Failure> {
        let ran = self.run(document, Variables::new(), std::future::pending()).await;
        let mut ran = ran.map_err(|not| Failure::new(not.why))?;
        match ran.status.as_ref().is_ok_and(ExitStatus::success) && ran.end == ProgramEnd::Exited {
            true => Ok(()),
            false => Err(self.failure(&mut ran)),
        }
    }

    /// Runs the program with a body and further variables, until it exits, the time is over or `lost` says why not longer.
    async fn run(
        &self,
        body: Bytes,
        variables: Variables,
        lost: impl Future<Output = ProgramEnd>,
    ) -> Result<Ran, StartError> {
        let mut group = self.program.start(variables)?;
        let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
        let stdin = group.child.stdin.take();
        let (mut output, mut errors) = (Tail::new(self.output_bytes_max), Tail::new(self.output_bytes_max));
        let (end, status) = {
            let living = async {
                let mut living = pin!(live(&mut group, self.program.timeout, lost));
                tokio::select! {
                    ended = &mut living => ended,
                    () = feed(stdin, body) => living.await,
                }
            };
            // Somebody who left the group may hold the pipes open for ever.
            beside(living, async {
                tokio::join!(output.fill(stdout), errors.fill(stderr));
            })
            .await
        };
        Ok(Ran { end, status, output, errors })
    }

    /// What a program that was run says of its message.
    fn judge(&self, mut ran: Ran) -> Result<Outcome, Failure> {
        let code = ran.status.as_ref().ok().and_then(ExitStatus::code);
        let result = match (ran.end, code) {
            (ProgramEnd::Exited, Some(0)) => self.read_answer(&mut ran.output),
            (ProgramEnd::Exited, Some(TRY_AGAIN)) => {
                let result = ran.last_words().unwrap_or_else(|| format!("exit code {TRY_AGAIN}: try again"));
                Err(Failure::new(result))
            }
            (ProgramEnd::Exited, Some(BAD_DATA)) => Ok(Outcome::DeadLetter {
                reason: ran.last_words().unwrap_or_else(|| BAD_DATA_REASON.to_owned()),
                description: match ran.written() {
                    output if output.is_empty() => format!("exit code {BAD_DATA}"),
                    output => output.text,
                },
            }),
            _ => Err(self.failure(&mut ran)),
        };
        result.map_err(|failure| failure.output(ran.written()))
    }

    /// How it failed, and the end of its output.
    fn failure(&self, ran: &mut Ran) -> Failure {
        let what = match ran.end {
            ProgramEnd::Exited => describe(&ran.status),
            ProgramEnd::LockLost => LOCK_LOST.to_owned(),
            ProgramEnd::GivenUp if ran.was_killed() => GIVEN_UP_AND_KILLED.to_owned(),
            ProgramEnd::GivenUp => GIVEN_UP.to_owned(),
            ProgramEnd::TimedOut => format!("timed out after {}", WireDuration(self.program.timeout)),
        };
        Failure::new(match ran.last_words() {
            Some(result) => format!("{what}: {result}"),
            None => what,
        })
    }

    /// A last line that begins like a JSON object is an answer, unless it is one without a single field of an answer;
    /// anything else is the program's own business.
    fn read_answer(&self, output: &mut Tail) -> Result<Outcome, Failure> {
        match output.last_line() {
            Some(line) if line.first == b'{' && line.is_cut => {
                let max = self.output_bytes_max;
                Err(Failure::new(format!("the handler's answer is wrong: it has more than {max} bytes")))
            }
            Some(line) if line.first == b'{' && !answer::is_something_else(line.text) => {
                answer::read(&self.program.site, line.text)
            }
            _ => Ok(Outcome::Complete),
        }
    }
}

impl Ran {
    /// The ends of both outputs.
    fn written(&mut self) -> Output {
        output::of_both(&mut self.output, &mut self.errors)
    }

    fn was_killed(&self) -> bool {
        let signal = self.status.as_ref().ok().and_then(ExitStatusExt::signal);
        signal == Some(Signal::KILL.as_raw())
    }

    /// The last line it complained.
    fn last_words(&mut self) -> Option<String> {
        self.errors.last_line().map(|line| answer::legible(line.text))
    }
}

impl Handler<Raw> for Exec {
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        let variables = variables::of_message(&self.program.site, &context).await?;
        let ended = async {
            context.cancelled().await;
            match context.is_given_up() {
                true => {
                    let message = context.message();
                    let (program, sequence) = (self.program.name(), message.sequence_number);
                    let queue = self.program.queue();
                    tracing::warn!(queue, program, %sequence, "terminating a program that still runs: the drain time is over");
                    ProgramEnd::GivenUp
                }
                false => ProgramEnd::LockLost,
            }
        };
        let ran = match self.run(body.0, variables, ended).await {
            Ok(ran) => ran,
            Err(not) if not.is_shortage => {
                self.program.note_shortage(&not.why);
                return Err(Failure::unbegun(not.why));
            }
            Err(not) => return Err(Failure::new(not.why)),
        };
        let is_given_up = ran.end == ProgramEnd::GivenUp;
        let result = self.judge(ran);
        if is_given_up { result.map_err(|failure| failure.retry_after(Duration::ZERO)) } else { result }
    }
}

/// Waits for the end of a child's life, brings it about if it must, and clears up behind it.
async fn live(
    group: &mut ProcessGroup,
    timeout: Duration,
    lost: impl Future<Output = ProgramEnd>,
) -> (ProgramEnd, io::Result<ExitStatus>) {
    let end = tokio::select! {
        biased;
        () = group.exited() => ProgramEnd::Exited,
        end = lost => end,
        () = limit(timeout) => ProgramEnd::TimedOut,
    };
    if end != ProgramEnd::Exited {
        group.ask_to_end(limits::CHILD_GRACE).await;
    }
    let status = group.end().await;
    // A look through all processes is too dear for every message that went well.
    if end != ProgramEnd::Exited || !status.as_ref().is_ok_and(ExitStatus::success) {
        group.sweep().await;
    }
    (end, status)
}

/// Passes when an attempt has taken too long.
#[expect(
    clippy::disallowed_methods,
    reason = "a foreign program knows no clock but the real one; the definition bounds it"
)]
async fn limit(timeout: Duration) {
    tokio::time::sleep(timeout).await;
}

/// Gives the body to a child, which need not read it.
async fn feed(stdin: Option<ChildStdin>, body: Bytes) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&body).await;
    }
}
