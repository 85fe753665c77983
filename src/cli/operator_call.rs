//! An operator's verb on one workflow.

use seriatim::api::OperateRequest;
use seriatim::api::OperateResponse;
use seriatim::api::Verb;
use seriatim::api::views::WorkflowWord;
use seriatim::remote::Remote;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::operate::OperatorArguments;
use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::confirm::confirm;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;
use crate::cli::word::counted;

/// A verb of the daemon, and how we speak of it.
pub(crate) struct OperatorVerb {
    /// As the daemon knows it.
    pub(crate) verb: Verb,
    /// As the command line calls it.
    pub(crate) command: &'static str,
    /// What was done, or would be.
    pub(crate) done: &'static str,
    /// Whether it cannot be undone.
    pub(crate) is_final: bool,
    /// Of many, only workflows with one of these statuses are meant, unless statuses or causes are given.
    pub(crate) of_many: &'static [WorkflowWord],
}

/// What an operator does.
pub(crate) struct OperatorCall<'a> {
    pub(crate) verb: &'a OperatorVerb,
    pub(crate) operation: OperateRequest,
    pub(crate) operator: &'a OperatorArguments,
    pub(crate) daemon: &'a DaemonArguments,
}

impl OperatorCall<'_> {
    /// Does it to one workflow.
    pub(crate) async fn on_one(mut self, target: &WorkflowTarget) -> Result<bool, CliFailure> {
        let remote = connect(self.daemon)?;
        let out = Stdout::new(self.daemon.json);
        if self.verb.is_final && !self.operator.dry_run {
            let outcome = self.call(&remote, target, true).await?;
            confirm(
                self.operator,
                &format!("{} {}?", self.verb.command, describe(self.verb, &outcome, target)),
            )?;
        }
        let dry_run = self.operator.dry_run;
        let outcome = self.call(&remote, target, dry_run).await?;
        out.json(&outcome)?;
        let described = describe(self.verb, &outcome, target);
        out.say(if dry_run { format!("{described} (a dry run: nothing was changed)") } else { described })?;
        Ok(true)
    }

    async fn call(
        &mut self,
        remote: &Remote,
        target: &WorkflowTarget,
        dry_run: bool,
    ) -> Result<OperateResponse, CliFailure> {
        self.operation.dry_run = dry_run;
        let called =
            remote.operate(&target.queue, &target.workflow_id, self.verb.verb, &self.operation).await;
        called.map_err(CliFailure::to(format!("{} {target}", self.verb.command)))
    }
}

fn describe(verb: &OperatorVerb, outcome: &OperateResponse, target: &WorkflowTarget) -> String {
    let purged = outcome.purged.map(|count| format!(", {}", counted(count, "message"))).unwrap_or_default();
    match outcome.effect.is_empty() || outcome.purged.is_some() {
        true => format!("{target} {}{purged}", verb.done),
        false => format!("{target}: {}", outcome.effect),
    }
}
