//! What somebody is about to do, and to what: read from a link or a form, and written into the next form.

use maud::Markup;
use maud::html;
use percent_encoding::percent_decode_str;

use crate::api::Problem;
use crate::api::views::BlockedCause;
use crate::id::QueueName;
use crate::page::api::ApiRefusal;
use crate::page::fields::FormFields;
use crate::remote::RequestPath;

/// Something that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageAction {
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
    DrainNode,
    UndrainNode,
    MovePartition,
    /// The hash decides again who has it.
    UnmovePartition,
}

/// How an act is shown: its word in links, its name on buttons, whether a reason is wanted or required, and whether
/// something is lost by it.
struct ActionFacts {
    act: PageAction,
    word: &'static str,
    name: &'static str,
    reason: ReasonRule,
    is_loss: bool,
}

/// Whether somebody says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasonRule {
    /// It is written down, and the API takes no reason.
    No,
    May,
    Must,
}

const fn facts(
    act: PageAction,
    word: &'static str,
    name: &'static str,
    reason: ReasonRule,
    is_loss: bool,
) -> ActionFacts {
    ActionFacts { act, word, name, reason, is_loss }
}

const FACTS: [ActionFacts; 24] = [
    facts(PageAction::Hold, "hold", "Hold", ReasonRule::May, false),
    facts(PageAction::Resume, "resume", "Resume", ReasonRule::May, false),
    facts(PageAction::ResumeAndRedrive, "resume_and_redrive", "Redrive and resume", ReasonRule::May, false),
    facts(PageAction::Retry, "retry", "Retry now", ReasonRule::May, false),
    facts(PageAction::Skip, "skip", "Skip", ReasonRule::Must, true),
    facts(PageAction::Void, "void", "Void a gap", ReasonRule::Must, true),
    facts(PageAction::SkipGap, "skip_gap", "Give up the gap", ReasonRule::Must, true),
    facts(PageAction::ReleaseLock, "release_lock", "Release lock", ReasonRule::May, false),
    facts(PageAction::Purge, "purge", "Purge", ReasonRule::Must, true),
    facts(PageAction::Redrive, "redrive", "Redrive", ReasonRule::May, false),
    facts(PageAction::Edit, "edit", "Redrive as edited", ReasonRule::May, false),
    facts(PageAction::RedriveMany, "redrive_many", "Redrive", ReasonRule::May, false),
    facts(PageAction::PurgeDeadLetters, "purge_letters", "Discard all", ReasonRule::Must, true),
    facts(PageAction::PurgeQueue, "purge_queue", "Purge the queue", ReasonRule::Must, true),
    facts(PageAction::Cancel, "cancel", "Cancel", ReasonRule::No, true),
    facts(PageAction::CancelAndVoid, "cancel_and_void", "Cancel and void", ReasonRule::No, true),
    facts(PageAction::Pause, "pause", "Pause handlers", ReasonRule::No, false),
    facts(PageAction::Unpause, "unpause", "Let handlers go on", ReasonRule::No, false),
    facts(PageAction::RunNow, "run_now", "Run now", ReasonRule::May, false),
    facts(PageAction::Reload, "reload", "Read the files again", ReasonRule::No, false),
    facts(PageAction::DrainNode, "drain_node", "Drain", ReasonRule::No, false),
    facts(PageAction::UndrainNode, "undrain_node", "Let it take partitions", ReasonRule::No, false),
    facts(PageAction::MovePartition, "move_partition", "Move", ReasonRule::No, false),
    facts(PageAction::UnmovePartition, "unmove_partition", "Leave it to the hash", ReasonRule::No, false),
];

impl PageAction {
    fn facts(self) -> &'static ActionFacts {
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

    pub(crate) fn reason(self) -> ReasonRule {
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
            PageAction::Hold
                | PageAction::Resume
                | PageAction::ResumeAndRedrive
                | PageAction::Retry
                | PageAction::Skip
                | PageAction::Void
                | PageAction::SkipGap
                | PageAction::ReleaseLock
                | PageAction::Purge
        )
    }

    /// Whether it is done to the cluster of which the daemon is a node.
    pub(crate) fn is_of_cluster(self) -> bool {
        matches!(
            self,
            PageAction::DrainNode
                | PageAction::UndrainNode
                | PageAction::MovePartition
                | PageAction::UnmovePartition
        )
    }

    /// The verb of the API, and whether dead letters are put back with it.
    pub(crate) fn verb(self) -> (&'static str, bool) {
        match self {
            PageAction::ResumeAndRedrive => ("resume", true),
            other => (other.word(), false),
        }
    }

    /// The causes for which it helps, if it is done to everything that does not go on.
    pub(crate) fn causes(self) -> &'static [BlockedCause] {
        match self {
            PageAction::Retry => &[BlockedCause::Retry, BlockedCause::Deferred],
            PageAction::Resume | PageAction::ResumeAndRedrive => &[BlockedCause::Held],
            PageAction::SkipGap => &[BlockedCause::Gap],
            PageAction::ReleaseLock => &[BlockedCause::Locked],
            PageAction::Skip => &[BlockedCause::Retry, BlockedCause::Deferred, BlockedCause::Held],
            _ => &[BlockedCause::Retry, BlockedCause::Deferred, BlockedCause::Gap, BlockedCause::Held],
        }
    }
}

/// What somebody is about to do.
#[derive(Clone, Debug)]
pub(crate) struct ActionPlan {
    pub(crate) act: PageAction,
    fields: Vec<(&'static str, String)>,
}

/// The field of a form that has a whole plan in it.
const WRITTEN: &str = "plan";

/// The fields of a plan, in the order in which they are written.
const FIELDS: [&str; 18] = [
    "queue",
    "id",
    "number",
    "pick",
    "head",
    "cause",
    "text",
    "dead_letter_reason",
    "all",
    "from",
    "to",
    "position",
    "body",
    "schedule",
    "node",
    "partition",
    "back",
    "after",
];

impl ActionPlan {
    /// What is meant to be done to a queue, or to nothing in particular.
    pub(crate) fn new(act: PageAction) -> ActionPlan {
        ActionPlan { act, fields: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> ActionPlan {
        self.fields.push((name, value.to_string()));
        self
    }

    /// Reads what a link or a form means; refused when it is nothing that can be done, or is for many and names no queue.
    pub(crate) fn read(fields: &FormFields) -> Result<ActionPlan, ApiRefusal> {
        let refusal = |why| Box::new(Problem::new("misuse", why));
        let written = fields.one(WRITTEN).and_then(|plan| plan.split_once('?'));
        let written = written.map(|(_, fields)| FormFields::read(fields)).unwrap_or_default();
        let word = written.one("do").or_else(|| fields.one("do"));
        let facts = FACTS.iter().find(|facts| Some(facts.word) == word);
        let facts = facts.ok_or_else(|| refusal("nothing that can be done is meant"))?;
        let mut plan = ActionPlan::new(facts.act);
        for name in FIELDS {
            let asked = fields.all(name).map(|value| match name {
                "pick" => read_pick(value),
                _ => value.to_owned(),
            });
            let values = written.all(name).map(str::to_owned).chain(asked).filter(|value| !value.is_empty());
            plan.fields.extend(values.map(|value| (name, value)));
        }
        // So a browser without scripts sends the form of a list in which nothing is selected.
        if plan.is_bulk() && plan.one("queue").is_none() {
            return Err(refusal("nothing is selected: go back and select what is meant"));
        }
        Ok(plan)
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

    /// The message that was seen at the head of a workflow, if the plan is about that.
    pub(crate) fn head(&self, queue: &str, id: &str) -> Option<u64> {
        self.all("head").find_map(|field| {
            let (number, of) = field.split_once('/')?;
            (split_pick(of)? == (queue, id)).then(|| number.parse().ok())?
        })
    }

    /// Whether a whole filter is meant, and not single workflows.
    pub(crate) fn is_bulk(&self) -> bool {
        match self.act {
            PageAction::RedriveMany => true,
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

    /// The plan as a field of a form, with `more`: what is done already, and what is at the heads of workflows, which is looked at anew
    /// each time. It is one field and percent-encoded, as browsers end the lines of a field in their own way, and a workflow ID or a
    /// reason may have several lines.
    pub(crate) fn hidden<'a>(&'a self, more: impl IntoIterator<Item = (&'static str, &'a str)>) -> Markup {
        let kept = self.fields().filter(|(name, _)| !["after", "head"].contains(name));
        let written = self.review_of(kept.chain(more));
        html! { input type="hidden" name=(WRITTEN) value=(written.as_str()); }
    }

    fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Where the plan is reviewed, with these fields.
    fn review_of<'a>(&self, fields: impl Iterator<Item = (&'static str, &'a str)>) -> RequestPath {
        let place = RequestPath::new("review").query("do", Some(self.act.word()));
        fields.fold(place, |place, (name, value)| place.query(name, Some(value)))
    }

    /// A link to the review of the plan, as a button.
    pub(crate) fn button(&self) -> Markup {
        self.button_named(self.act.name())
    }

    pub(crate) fn button_named(&self, name: &str) -> Markup {
        let place = self.review_of(self.fields());
        let tone = if self.act.is_loss() { "button loss" } else { "button" };
        html! { a class=(tone) href=(place.as_str()) { (name) } }
    }
}

/// The message at the head of a workflow, as a field of a plan.
pub(crate) fn head_field(number: u64, queue: &str, id: &str) -> String {
    format!("{number}/{queue}/{id}")
}

/// A workflow as a field of a form in which several are selected: its ID is percent-encoded, as it may have several lines.
pub(crate) fn pick_field(queue: &str, id: &str) -> String {
    RequestPath::new(queue).data(id).as_str().to_owned()
}

/// A pick as it is in a plan.
fn read_pick(field: &str) -> String {
    match split_pick(field) {
        Some((queue, id)) => format!("{queue}/{}", percent_decode_str(id).decode_utf8_lossy()),
        None => field.to_owned(),
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
        let back = |place: &str| ActionPlan::new(PageAction::Retry).with("back", place).back().to_owned();
        assert_eq!(back("workflow?queue=a&id=b/c"), "workflow?queue=a&id=b/c");
        for foreign in
            ["//evil.example", "https://evil.example", "/x", "../x", "javascript:alert(1)", "", "\\\\x"]
        {
            assert_eq!(back(foreign), "./", "{foreign}");
        }
    }

    #[test]
    fn a_plan_survives_a_form() {
        let fields =
            FormFields::read("do=skip&queue=orders&pick=orders%2Fa&pick=b%2Fc%2Fd&form_token=x&after=y");
        let plan = ActionPlan::read(&fields).unwrap();
        assert_eq!((plan.act, plan.is_bulk()), (PageAction::Skip, false));
        assert_eq!(plan.picks().collect::<Vec<_>>(), [("orders", "a"), ("b", "c/d")]);
        let hidden = plan.hidden([]).into_string();
        assert!(hidden.contains("pick=b%2Fc%2Fd") && !hidden.contains("after"), "{hidden}");
        let head = head_field(7, "t/subscriptions/s", "c/d");
        let plan = ActionPlan::new(PageAction::Skip).with("head", head_field(6, "b", "c")).with("head", head);
        assert_eq!((plan.head("t/subscriptions/s", "c/d"), plan.head("b", "c/d")), (Some(7), None));
        for meaningless in ["do=explode", "do=retry", "do=redrive_many&all=true"] {
            assert!(ActionPlan::read(&FormFields::read(meaningless)).is_err(), "{meaningless}");
        }
    }

    #[test]
    fn every_act_is_in_the_table() {
        for facts in &FACTS {
            assert_eq!(
                ActionPlan::read(&FormFields::read(&format!("queue=q&do={}", facts.word))).unwrap().act,
                facts.act
            );
        }
    }
}
