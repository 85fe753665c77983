//! The time of a workflow as a picture: when its messages came, when each was tried and how that went, what comes next.

use maud::Markup;
use maud::html;

use crate::api::WireTime;
use crate::api::views::AuditView;
use crate::api::views::EndingWord;
use crate::api::views::HistoryView;
use crate::api::views::MessageEnvelope;
use crate::api::views::WorkflowEnvelope;
use crate::clock::whole_millis;
use crate::page::present::Present;
use crate::page::present::lasted;
use crate::page::text::brief;

/// Lanes of the picture: the head and what stands around it.
const LANES: usize = 9;

const LANE: u64 = 26;
const TOP: u64 = 24;

/// Thousandths of the width that are left to the names of the lanes.
const GUTTER: u64 = 80;

/// Something at an instant.
struct TimelineMark {
    at: u64,
    /// How long it lasted, in milliseconds.
    lasted: u64,
    kind: &'static str,
    says: String,
}

/// What happened to a message.
struct TimelineLane {
    name: String,
    marks: Vec<TimelineMark>,
}

/// The span that is shown, in milliseconds since 1970.
struct Axis {
    from: u64,
    to: u64,
}

impl Axis {
    /// Where an instant is, in thousandths of the width.
    fn at(&self, instant: u64) -> u64 {
        let length = (self.to - self.from).max(1);
        let along = instant.clamp(self.from, self.to).saturating_sub(self.from);
        GUTTER + along.saturating_mul(1_000 - GUTTER) / length
    }
}

/// A part of the width, as SVG writes it.
fn percent(thousandths: u64) -> String {
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}

/// The picture; nothing where nothing has happened.
pub(crate) fn show(
    workflow: &WorkflowEnvelope,
    messages: &[MessageEnvelope],
    ended: &[HistoryView],
    acts: &[AuditView],
    present: Present,
) -> Markup {
    let mut lanes: Vec<TimelineLane> = ended.iter().rev().filter_map(ended_lane).collect();
    let behind = lanes.len().saturating_sub(3);
    lanes.drain(..behind);
    lanes.extend(messages.iter().take(LANES - lanes.len()).map(lane));
    lanes.extend(around(workflow));
    lanes.extend(operators(acts));
    let instants =
        || lanes.iter().flat_map(|lane| &lane.marks).flat_map(|mark| [mark.at, mark.at + mark.lasted]);
    let now = present.0.as_millis();
    let (Some(from), Some(to)) = (instants().min(), instants().max()) else { return html! {} };
    // A little room on both sides, so that what is at the edge can be seen.
    let (from, to) = (from.min(now), to.max(now));
    let room = ((to - from) / 40).max(500);
    let axis = Axis { from: from.saturating_sub(room), to: to + room };
    let height = TOP + LANE * lanes.len() as u64 + 8;
    html! {
        figure.timeline {
            div.scroll tabindex="0" role="region" aria-label="Timeline" {
                svg width="100%" height=(height) role="img" aria-labelledby="timeline-title" {
                    title #timeline-title { "What happened to the messages around the head, and what comes next" }
                    (ticks(&axis, height, present))
                    @for (row, lane) in lanes.iter().enumerate() { (show_lane(&axis, lane, TOP + LANE * row as u64)) }
                    @let here = percent(axis.at(now));
                    line.now x1=(here) x2=(here) y1=(TOP - 6) y2=(height) {}
                }
            }
            figcaption {
                span.key.arrival { "came" } span.key.failure { "failed" } span.key.success { "completed" }
                @if !acts.is_empty() { span.key.act { "an operator" } }
                span.key.ahead { "comes next" } span.key.now { "now" }
            }
        }
    }
}

fn ticks(axis: &Axis, height: u64, present: Present) -> Markup {
    let step = (axis.to - axis.from) / 4;
    let ticks: Vec<u64> = (0..=3).map(|tick| axis.from + step * tick).collect();
    html! {
        @for tick in ticks {
            @let here = percent(axis.at(tick));
            line.tick x1=(here) x2=(here) y1="16" y2=(height) {}
            text.tick x=(here) y="11" dx="3" { (present.clock(WireTime(crate::clock::Timestamp::from_millis(tick)))) }
        }
    }
}

fn show_lane(axis: &Axis, lane: &TimelineLane, top: u64) -> Markup {
    html! {
        line.lane x1=(percent(GUTTER)) x2="100%" y1=(top + 13) y2=(top + 13) {}
        @for mark in &lane.marks {
            @let (from, to) = (axis.at(mark.at), axis.at(mark.at + mark.lasted));
            g.mark.(mark.kind) {
                title { (mark.says) }
                @if mark.lasted > 0 && to > from + 8 {
                    rect x=(percent(from)) y=(top + 7) width=(percent(to - from)) height="12" rx="3" {}
                } @else {
                    circle cx=(percent(from)) cy=(top + 13) r="5" {}
                }
            }
        }
        text.lane x="4" y=(top + 17) { (lane.name) }
    }
}

fn millis(at: WireTime) -> u64 {
    at.0.as_millis()
}

fn name(position: Option<u64>, number: u64) -> String {
    position.map_or_else(|| format!("#{number}"), |position| position.to_string())
}

fn lane(message: &MessageEnvelope) -> TimelineLane {
    let mut marks = vec![arrival(message.accepted_at)];
    for attempt in &message.attempts {
        let how_long = whole_millis(attempt.lasted.0);
        let (took, why) = (lasted(attempt.lasted.0), brief(&attempt.reason, 120));
        let says = format!("attempt {} failed after {took}: {why}", attempt.delivery_count);
        marks.push(TimelineMark { at: millis(attempt.at), lasted: how_long, kind: "failure", says });
    }
    if let Some(until) = message.until {
        let says = format!("comes next: {until}");
        marks.push(TimelineMark { at: millis(until), lasted: 0, kind: "ahead", says });
    }
    TimelineLane { name: name(message.position, message.sequence_number), marks }
}

fn arrival(at: WireTime) -> TimelineMark {
    TimelineMark { at: millis(at), lasted: 0, kind: "arrival", says: format!("came: {at}") }
}

fn ended_lane(entry: &HistoryView) -> Option<TimelineLane> {
    let number = entry.sequence_number?;
    let mut marks: Vec<TimelineMark> = entry.accepted_at.into_iter().map(arrival).collect();
    let kind = if entry.ending == EndingWord::Completed { "success" } else { "failure" };
    let says = format!("{}: {}", crate::page::labels::of_ending(entry.ending).2, entry.at);
    marks.push(TimelineMark { at: millis(entry.at), lasted: 0, kind, says });
    Some(TimelineLane { name: name(entry.positions.map(|(first, _)| first), number), marks })
}

/// What belongs to the workflow itself: holds, and a gap with the instant at which something becomes of it.
fn around(workflow: &WorkflowEnvelope) -> Vec<TimelineLane> {
    let mut lanes = Vec::new();
    if !workflow.holds.is_empty() {
        let hold = |hold: &crate::api::views::HoldView| {
            let says =
                format!("held: {} ({})", crate::page::labels::hold(hold.cause), brief(&hold.reason, 120));
            TimelineMark { at: millis(hold.since), lasted: 0, kind: "failure", says }
        };
        lanes
            .push(TimelineLane { name: "held".to_owned(), marks: workflow.holds.iter().map(hold).collect() });
    }
    if let Some(gap) = &workflow.gap {
        let mut marks = vec![TimelineMark {
            at: millis(gap.since),
            lasted: 0,
            kind: "failure",
            says: format!("messages wait behind the gap since {}", gap.since),
        }];
        if let Some(due) = gap.due {
            let says = format!("the gap policy acts: {due}");
            marks.push(TimelineMark { at: millis(due), lasted: 0, kind: "ahead", says });
        }
        lanes.push(TimelineLane { name: "gap".to_owned(), marks });
    }
    lanes
}

/// What operators did.
fn operators(acts: &[AuditView]) -> Option<TimelineLane> {
    let mark = |act: &AuditView| {
        let refused = if act.refusal.is_some() { " (refused)" } else { "" };
        let why = act.reason.as_deref().map(|reason| format!(": {}", brief(reason, 120))).unwrap_or_default();
        let says = format!("{} by {}{refused}{why}: {}", act.verb, brief(&act.actor, 40), act.at);
        TimelineMark { at: millis(act.at), lasted: 0, kind: "act", says }
    };
    let lane = TimelineLane { name: "operator".to_owned(), marks: acts.iter().map(mark).collect() };
    (!acts.is_empty()).then_some(lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_stand_within_the_width() {
        let axis = Axis { from: 1_000, to: 2_000 };
        assert_eq!((axis.at(1_000), axis.at(1_500), axis.at(9_000), axis.at(0)), (80, 540, 1_000, 80));
        assert_eq!(percent(1_000), "100.0%");
        assert_eq!(Axis { from: 5, to: 5 }.at(5), 80);
    }
}
