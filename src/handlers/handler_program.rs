//! A program that handles messages: what it gets every time, and what keeps it from being started.

use std::time::Duration;

use crate::definition::ProgramDefinition;
use crate::handlers::group::ProcessGroup;
use crate::handlers::program::Program;
use crate::handlers::program::StartError;
use crate::handlers::shortage::Shortage;
use crate::handlers::site::Site;
use crate::handlers::variables;
use crate::handlers::variables::Variables;

/// A program that handles messages.
pub(super) struct HandlerProgram {
    program: Program,
    /// What it gets every time, whatever else it is to get.
    lasting: Variables,
    /// How long one attempt may take.
    pub(super) timeout: Duration,
    pub(super) site: Site,
    /// For how long it cannot be started, and why.
    pub(super) shortage: Shortage,
}

impl HandlerProgram {
    pub(super) fn new(program: ProgramDefinition, timeout: Duration, site: Site) -> HandlerProgram {
        HandlerProgram {
            lasting: variables::lasting(&site, &program.pass_env, &program.env),
            program: Program { argv: program.argv, cwd: program.folder },
            timeout,
            site,
            shortage: Shortage::default(),
        }
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> &str {
        self.program.name()
    }

    /// The queue whose messages it handles, for people.
    pub(super) fn queue(&self) -> &str {
        self.site.queue.as_str()
    }

    /// How long the clock has run.
    pub(super) fn now(&self) -> Duration {
        self.site.clock.elapsed()
    }

    /// Starts it with further variables.
    ///
    /// # Errors
    /// As [`Program::start`].
    pub(super) fn start(&self, mut variables: Variables) -> Result<ProcessGroup, StartError> {
        variables.extend(self.lasting.clone());
        let group = self.program.start(variables)?;
        self.shortage.note_start();
        Ok(group)
    }

    /// Notes that the daemon lacks something to start it.
    pub(super) fn note_shortage(&self, why: &str) {
        self.shortage.note(self.now(), (self.queue(), self.name()), why);
    }
}
