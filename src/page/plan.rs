//! What somebody is about to do, and to what: read from a link or a form, and written into the next form.

use maud::Markup;
use maud::html;

use crate::api::views::BlockedCause;
use crate::id::QueueName;
use crate::page::fields::Fields;

/// Something that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Hold,
    Resume,
    ResumeAndRedrive,
    Retry,
    Skip,
    Void,
    SkipGap,
    ReleaseLock,
    Purge,
    Redrive,
    /// Redrive with another body.
    Edit,
    RedriveMany,
    PurgeDeadLetters,
    PurgeQueue,
    Cancel,
    CancelAndVoid,
    Pause,
    Unpause,
    RunNow,
    Reload,
}

/// What is said of an act: its word in links, its name on buttons, whether a reason is wanted or required, and whether
/// something is lost by it.
struct Facts {
    act: Act,
    word: &'static str,
    name: &'static str,
    reason: Reason,
    is_loss: bool,
}

/// Whether somebody says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is written down, and the API takes no reason.
    No,
    May,
    Must,
}

const fn facts(act: Act, word: &'static str, name: &'static str, reason: Reason, is_loss: bool) -> Facts {
    Facts { act, word, name, reason, is_loss }
}

const FACTS: [Facts; 20] = [
    facts(Act::Hold, "hold", "Hold", Reason::May, false),
    facts(Act::Resume, "resume", "Resume", Reason::May, false),
    facts(Act::ResumeAndRedrive, "resume_and_redrive", "Redrive and resume", Reason::May, false),
    facts(Act::Retry, "retry", "Retry now", Reason::May, false),
    facts(Act::Skip, "skip", "Skip", Reason::Must, true),
    facts(Act::Void, "void", "Void a gap", Reason::Must, true),
    facts(Act::SkipGap, "skip_gap", "Give up the gap", Reason::Must, true),
    facts(Act::ReleaseLock, "release_lock", "Release lock", Reason::May, false),
    facts(Act::Purge, "purge", "Purge", Reason::Must, true),
    facts(Act::Redrive, "redrive", "Redrive", Reason::May, false),
    facts(Act::Edit, "edit", "Redrive as edited", Reason::May, false),
    facts(Act::RedriveMany, "redrive_many", "Redrive", Reason::May, false),
    facts(Act::PurgeDeadLetters, "purge_letters", "Discard all", Reason::Must, true),
    facts(Act::PurgeQueue, "purge_queue", "Purge the queue", Reason::Must, true),
    facts(Act::Cancel, "cancel", "Cancel", Reason::No, true),
    facts(Act::CancelAndVoid, "cancel_and_void", "Cancel and void", Reason::No, true),
    facts(Act::Pause, "pause", "Pause handlers", Reason::No, false),
    facts(Act::Unpause, "unpause", "Let handlers go on", Reason::No, false),
    facts(Act::RunNow, "run_now", "Run now", Reason::May, false),
    facts(Act::Reload, "reload", "Read the files again", Reason::No, false),
];

impl Act {
    fn facts(self) -> &'static Facts {
        FACTS.iter().find(|facts| facts.act == self).expect("every act has its facts")
    }

    /// Its word in links and forms; of what is done to workflows, the verb of the API.
    pub(crate) fn word(self) -> &'static str {
        self.facts().word
    }

    /// What a button says.
    pub(crate) fn name(self) -> &'static str {
        self.facts().name
    }

    pub(crate) fn reason(self) -> Reason {
        self.facts().reason
    }

    /// Whether messages or places are given up.
    pub(crate) fn is_loss(self) -> bool {
        self.facts().is_loss
    }

    /// Whether it is done to workflows.
    pub(crate) fn is_of_workflows(self) -> bool {
        matches!(
            self,
            Act::Hold
                | Act::Resume
                | Act::ResumeAndRedrive
                | Act::Retry
                | Act::Skip
                | Act::Void
                | Act::SkipGap
                | Act::ReleaseLock
                | Act::Purge
        )
    }

    /// The verb of the API, and whether dead letters are put back with it.
    pub(crate) fn verb(self) -> (&'static str, bool) {
        match self {
            Act::ResumeAndRedrive => ("resume", true),
            other => (other.word(), false),
        }
    }

    /// The causes for which it helps, if it is done to everything that does not go on.
    pub(crate) fn causes(self) -> &'static [BlockedCause] {
        match self {
            Act::Retry => &[BlockedCause::Retry, BlockedCause::Deferred],
            Act::Resume | Act::ResumeAndRedrive => &[BlockedCause::Held],
            Act::SkipGap => &[BlockedCause::Gap],
            Act::ReleaseLock => &[BlockedCause::Locked],
            Act::Skip => &[BlockedCause::Retry, BlockedCause::Deferred, BlockedCause::Held],
            _ => &[BlockedCause::Retry, BlockedCause::Deferred, BlockedCause::Gap, BlockedCause::Held],
        }
    }
}

/// What somebody is about to do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) act: Act,
    fields: Vec<(&'static str, String)>,
}

/// The fields of a plan, in the order in which they are written.
const FIELDS: [&str; 15] = [
    "queue",
    "id",
    "number",
    "pick",
    "cause",
    "text",
    "dead_letter_reason",
    "all",
    "from",
    "to",
    "position",
    "body",
    "schedule",
    "back",
    "after",
];

impl Plan {
    /// What is meant to be done to a queue, or to nothing in particular.
    pub(crate) fn new(act: Act) -> Plan {
        Plan { act, fields: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Plan {
        self.fields.push((name, value.to_string()));
        self
    }

    /// Reads what a link or a form means; `None` when it is nothing that can be done.
    pub(crate) fn read(fields: &Fields) -> Option<Plan> {
        let word = fields.one("do")?;
        let act = FACTS.iter().find(|facts| facts.word == word)?.act;
        let mut plan = Plan::new(act);
        for name in FIELDS {
            plan.fields.extend(
                fields.all(name).filter(|value| !value.is_empty()).map(|value| (name, value.to_owned())),
            );
        }
        Some(plan)
    }

    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.one(name)?.trim().parse().ok()
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn queue(&self) -> &str {
        self.one("queue").unwrap_or_default()
    }

    /// Workflows that were selected one by one, each with its queue.
    pub(crate) fn picks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all("pick").filter_map(split_pick)
    }

    /// Whether a whole filter is meant, and not single workflows.
    pub(crate) fn is_bulk(&self) -> bool {
        match self.act {
            Act::RedriveMany => true,
            act => act.is_of_workflows() && self.one("id").is_none() && self.one("pick").is_none(),
        }
    }

    /// Where to go afterwards: a screen of ours, never another site.
    pub(crate) fn back(&self) -> &str {
        let is_screen = |place: &&str| {
            let name = place.split(['?', '#']).next().unwrap_or_default();
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        self.one("back").filter(is_screen).unwrap_or("./")
    }

    /// The plan as fields of a form, going on after what is done already.
    pub(crate) fn hidden(&self, after: Option<&str>) -> Markup {
        html! {
            input type="hidden" name="do" value=(self.act.word());
            @for (name, value) in &self.fields {
                @if *name != "after" { input type="hidden" name=(name) value=(value); }
            }
            @if let Some(after) = after { input type="hidden" name="after" value=(after); }
        }
    }

    /// A link to the review of the plan, as a button.
    pub(crate) fn button(&self) -> Markup {
        self.button_named(self.act.name())
    }

    pub(crate) fn button_named(&self, name: &str) -> Markup {
        let mut place = crate::remote::Route::new("review").query("do", Some(self.act.word()));
        for (name, value) in &self.fields {
            place = place.query(name, Some(value));
        }
        let tone = if self.act.is_loss() { "button loss" } else { "button" };
        html! { a class=(tone) href=(place.as_str()) { (name) } }
    }
}

/// The queue and the workflow of a pick.
fn split_pick(pick: &str) -> Option<(&str, &str)> {
    let from = QueueName::topic_len(pick);
    let at = from + pick[from..].find('/')?;
    Some((&pick[..at], &pick[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn afterwards_one_is_on_a_screen_of_ours() {
        let back = |place: &str| Plan::new(Act::Retry).with("back", place).back().to_owned();
        assert_eq!(back("workflow?queue=a&id=b/c"), "workflow?queue=a&id=b/c");
        for foreign in
            ["//evil.example", "https://evil.example", "/x", "../x", "javascript:alert(1)", "", "\\\\x"]
        {
            assert_eq!(back(foreign), "./", "{foreign}");
        }
    }

    #[test]
    fn a_plan_survives_a_form() {
        let fields = Fields::read("do=skip&queue=orders&pick=orders%2Fa&pick=b%2Fc%2Fd&form_token=x&after=y");
        let plan = Plan::read(&fields).unwrap();
        assert_eq!((plan.act, plan.is_bulk()), (Act::Skip, false));
        assert_eq!(plan.picks().collect::<Vec<_>>(), [("orders", "a"), ("b", "c/d")]);
        let hidden = plan.hidden(None).into_string();
        assert!(hidden.contains("value=\"b/c/d\"") && !hidden.contains("after"), "{hidden}");
        assert!(Plan::read(&Fields::read("do=explode")).is_none());
    }

    #[test]
    fn every_act_is_in_the_table() {
        for facts in &FACTS {
            assert_eq!(Plan::read(&Fields::read(&format!("do={}", facts.word))).unwrap().act, facts.act);
        }
    }
}
