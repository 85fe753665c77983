//! An operator's verb for every workflow that matches: counted first, page by page, resumable.

use serde::Serialize;
use seriatim::api::BulkRequest;
use seriatim::api::BulkResponse;
use seriatim::api::OperateRequest;
use seriatim::api::RefusedWorkflow;
use seriatim::api::WorkflowFilter;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;

use crate::cli::arguments::operate::BulkArguments;
use crate::cli::arguments::operate::FilterArguments;
use crate::cli::confirm::Pass;
use crate::cli::confirm::confirm_unless_interrupted;
use crate::cli::failure::CliFailure;
use crate::cli::interrupt::Interrupt;
use crate::cli::interrupt::check_counted;
use crate::cli::interrupt::check_finished;
use crate::cli::limits;
use crate::cli::operator_call::OperatorCall;
use crate::cli::out::Stdout;
use crate::cli::out::remark;
use crate::cli::progress::Progress;
use crate::cli::shell;
use crate::cli::word::counted;

/// Codes of what is refused because a workflow does not need it.
const NOTHING_TO_DO: [&str; 6] =
    ["nothing_waits", "no_head", "not_at_head", "not_held", "not_locked", "workflow_not_found"];

/// A verb for many workflows of a queue.
pub(crate) struct Bulk<'a> {
    remote: Remote,
    queue: String,
    act: OperatorCall<'a>,
    filter: WorkflowFilter,
    after: Option<String>,
}

/// What became of it, over all pages.
#[derive(Default, Serialize)]
struct BulkSummary {
    verb: &'static str,
    dry_run: bool,
    matched: u64,
    done: u64,
    /// For which there was nothing to do.
    idle: u64,
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    purged: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    put_back: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stayed: Option<u64>,
    /// Where to go on, when it was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

impl<'a> Bulk<'a> {
    pub(crate) fn new(
        remote: Remote,
        queue: String,
        act: OperatorCall<'a>,
        arguments: BulkArguments,
    ) -> Bulk<'a> {
        let BulkArguments { filter, cause } = arguments;
        let FilterArguments { all: _, status, prefix, hold_cause, error, after } = filter;
        let says_which = !status.is_empty() || !cause.is_empty() || !hold_cause.is_empty();
        let status = if says_which { status } else { act.verb.of_many.to_vec() };
        let filter = WorkflowFilter { all: false, status, prefix, cause, hold_cause, reason: error };
        let filter = filter.or_all();
        Bulk { remote, queue, act, filter, after }
    }

    /// Counts, asks, and does it; true when none was refused.
    pub(crate) async fn run(self) -> Result<bool, CliFailure> {
        let out = Stdout::of_work(self.act.daemon.json);
        let (pass, interrupt) = (Pass::of(self.act.operator), Interrupt::listen());
        if !pass.is_dry_run() && !self.act.operator.yes {
            let mut would = self.all_pages(Pass::Count, &out, &interrupt).await?;
            check_counted(would.after.as_deref())?;
            if would.done == 0 {
                let is_refused = would.refused > 0;
                if is_refused {
                    would = self.all_pages(Pass::Try, &out, &interrupt).await?;
                    check_counted(would.after.as_deref())?;
                }
                out.say(would.describe(self.act.verb.done))?;
                out.json(&would)?;
                return Ok(!is_refused);
            }
            let question = format!(
                "{} {} of {}?",
                self.act.verb.verb.as_str(),
                counted(would.done, "workflow"),
                self.queue
            );
            confirm_unless_interrupted(self.act.operator, question, &interrupt).await?;
        }
        let summary = self.all_pages(pass, &out, &interrupt).await?;
        out.json(&summary)?;
        out.say(summary.describe(self.act.verb.done))?;
        check_finished(summary.after.as_deref())?;
        Ok(summary.refused == 0)
    }

    async fn all_pages(
        &self,
        pass: Pass,
        out: &Stdout,
        interrupt: &Interrupt,
    ) -> Result<BulkSummary, CliFailure> {
        let dry_run = pass.is_dry_run();
        let progress = Progress::new("workflows");
        let mut summary =
            BulkSummary { verb: self.act.verb.verb.as_str(), dry_run, ..BulkSummary::default() };
        let mut after = self.after.clone();
        loop {
            let page = self.page(dry_run, after.clone()).await.inspect_err(|_| {
                if !dry_run {
                    let go_on = shell::after(after.as_deref().unwrap_or_default());
                    let done = summary.done;
                    remark(format!(
                        "{done} were done, and perhaps some behind: look at those before you go on with {go_on}"
                    ));
                }
            })?;
            summary.add(&page);
            if let Some(unknown) = page.refused.iter().find(|refused| refused.error.is_unanswered()) {
                let what = format!("{} {}", self.act.verb.verb.as_str(), unknown.workflow_id);
                let problem = RemoteError::Problem(Box::new(unknown.error.clone()));
                return Err(CliFailure::to(what)(problem));
            }
            let refused = page.refused.iter().filter(|refused| !is_idle(refused));
            for refused in refused.filter(|_| pass.names_refused()) {
                self.refuse(refused, out)?;
            }
            progress.show(summary.matched);
            // A page that ends where it began would never end.
            if page.after.is_none() || page.after == after {
                break;
            }
            after = page.after;
            if interrupt.came() {
                summary.after = after;
                break;
            }
        }
        progress.end();
        Ok(summary)
    }

    async fn page(&self, dry_run: bool, after: Option<String>) -> Result<BulkResponse, CliFailure> {
        let OperateRequest { reason, redrive, cause, .. } = self.act.operation.clone();
        let (verb, filter, limit) = (self.act.verb.verb, self.filter.clone(), Some(limits::BULK_PAGE));
        let bulk = BulkRequest { verb, filter, reason, redrive, cause, dry_run, after, limit };
        let done = self.remote.operate_on_all(&self.queue, &bulk).await;
        done.map_err(CliFailure::to(format!("{} workflows of {}", self.act.verb.verb.as_str(), self.queue)))
    }

    fn refuse(&self, refused: &RefusedWorkflow, out: &Stdout) -> Result<(), CliFailure> {
        let id = &refused.workflow_id;
        remark(format!("{}/{id}: {} ({})", self.queue, refused.error.detail, refused.error.code));
        out.json(refused)?;
        Ok(())
    }
}

/// Whether there was nothing to do for a workflow, which is no refusal: it gets on by itself.
fn is_idle(refused: &RefusedWorkflow) -> bool {
    NOTHING_TO_DO.contains(&refused.error.code.as_str())
}

impl BulkSummary {
    fn add(&mut self, page: &BulkResponse) {
        self.matched += page.matched;
        self.done += page.done;
        let sum = |page: Option<u64>, before: Option<u64>| {
            page.map(|count| count + before.unwrap_or_default()).or(before)
        };
        self.purged = sum(page.purged, self.purged);
        self.put_back = sum(page.put_back, self.put_back);
        self.stayed = sum(page.stayed, self.stayed);
        let idle = page.refused.iter().filter(|refused| is_idle(refused)).count();
        self.idle += idle as u64;
        self.refused += (page.refused.len() - idle) as u64;
    }

    fn describe(&self, done: &str) -> String {
        if self.dry_run {
            let BulkSummary { matched, done, refused, .. } = self;
            let matched = if *matched == 1 { "1 matches".to_owned() } else { format!("{matched} match") };
            return format!(
                "{matched}, {done} would be done{}, {refused} refused (a dry run: nothing was changed)",
                self.idle_text()
            );
        }
        let purged = self.purged.map(|purged| format!(", {}", counted(purged, "message")));
        let redriven = self.put_back.map(|redriven| {
            let stayed = self.stayed.unwrap_or_default();
            format!(", {} put back in place, {stayed} not", counted(redriven, "dead letter"))
        });
        let purged = purged.or(redriven).unwrap_or_default();
        match self.refused {
            0 => format!("{} {done}{purged}{}", counted(self.done, "workflow"), self.idle_text()),
            refused => {
                let done = format!("{} {done}{purged}", counted(self.done, "workflow"));
                format!("{done}{}, {refused} refused", self.idle_text())
            }
        }
    }

    fn idle_text(&self) -> String {
        match self.idle {
            0 => String::new(),
            idle => format!(", {idle} needed nothing"),
        }
    }
}
