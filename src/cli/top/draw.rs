//! What `top` looks like: from a state to a frame, and nothing else.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;
use ratatui::text::Text;
use ratatui::widgets::Cell;
use ratatui::widgets::Paragraph;
use ratatui::widgets::Row;
use ratatui::widgets::Table;
use ratatui::widgets::TableState;
use ratatui::widgets::Wrap;
use seriatim::api::views::BlockedCause;
use seriatim::api::views::BlockedView;
use seriatim::api::views::Colour;
use seriatim::api::views::CountsView;
use seriatim::api::views::QueueEnvelope;
use seriatim::api::views::QueueRatesView;

use crate::cli::blocked;
use crate::cli::moment::LocalTime;
use crate::cli::out::printable;
use crate::cli::strip::strip;
use crate::cli::strip::what;
use crate::cli::top::snapshot::DaemonSnapshot;
use crate::cli::top::state::Details;
use crate::cli::top::state::TopState;
use crate::cli::top::state::WorkflowPane;
use crate::cli::word::word;

/// Minutes of the last hour that a line of bars shows.
const MINUTES: usize = 20;

/// Bars, from nothing to the most.
const BARS: [char; 9] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

const QUIET: Style = Style::new().fg(Color::DarkGray);
const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws a state.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &TopState, present: &LocalTime) {
    let rows = Layout::vertical([Constraint::Length(3), Constraint::Min(3), Constraint::Length(1)]);
    let [head, body, foot] = rows.areas(frame.area());
    draw_head(frame, head, state, present);
    match &state.open {
        Some(open) => draw_workflow(frame, body, open, present),
        None => draw_lists(frame, body, state, present),
    }
    let keys = match state.open {
        Some(_) => " esc back   q quit",
        None => " \u{2191}\u{2193} choose   enter open   q quit",
    };
    frame.render_widget(Paragraph::new(Line::styled(keys, QUIET)), foot);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, state: &TopState, present: &LocalTime) {
    let status = &state.snapshot.status;
    let is_well = status.state == "ready" && state.problem.is_none();
    let tone = if is_well { Color::Green } else { Color::Red };
    let mut first = vec![
        Span::styled(format!(" seriatim {}", printable(&status.version)), HEADING),
        Span::raw("  "),
        Span::styled(printable(&status.state), Style::new().fg(tone)),
        Span::raw(format!("  since {}  ", present.age(status.started_at))),
        Span::styled(printable(&state.url), QUIET),
    ];
    if let Some(environment) = &status.environment {
        let badge = Style::new().fg(Color::White).bg(badge(environment.colour));
        first.insert(0, Span::styled(format!(" {} ", printable(&environment.name)), badge));
    }
    if let Some(problem) = &state.problem {
        let problem = format!(" {}", printable(problem));
        first = vec![Span::styled(problem, Style::new().fg(Color::Red).add_modifier(Modifier::BOLD))];
    }
    let figures = Line::raw(format!(" {}", state.snapshot.figures().join("  \u{b7}  ")));
    frame.render_widget(Paragraph::new(vec![Line::from(first), figures]), area);
}

fn badge(colour: Colour) -> Color {
    match colour {
        Colour::Red => Color::Red,
        Colour::Amber => Color::Rgb(138, 83, 0),
        Colour::Green => Color::Rgb(27, 110, 60),
        Colour::Blue => Color::Blue,
        Colour::Grey => Color::DarkGray,
    }
}

fn draw_lists(frame: &mut Frame<'_>, area: Rect, state: &TopState, present: &LocalTime) {
    let snapshot = &state.snapshot;
    let wanted = u16::try_from(snapshot.queues.len()).unwrap_or(u16::MAX).saturating_add(2);
    let queues_height = wanted.min((area.height / 2).max(3));
    let areas = Layout::vertical([Constraint::Length(queues_height), Constraint::Min(0)]);
    let [above, below] = areas.areas(area);
    draw_queues(frame, above, snapshot);
    draw_blocked(frame, below, state, present);
}

/// What the columns of a queue are told from.
struct QueueFigures<'a> {
    counts: &'a CountsView,
    rates: Option<&'a QueueRatesView>,
    blocked: u64,
}

/// A column of numbers: the name, the width, whether any of it is bad, and the number of a queue.
type NumberColumn = (&'static str, u16, bool, fn(&QueueFigures<'_>) -> u64);

const NUMBERS: [NumberColumn; 7] = [
    ("in/min", 7, false, |queue| queue.rates.map_or(0, |rates| last_minute(&rates.accepted))),
    ("done/min", 8, false, |queue| queue.rates.map_or(0, |rates| last_minute(&rates.completed))),
    ("waiting", 8, false, |queue| queue.counts.waiting()),
    ("at work", 7, false, |queue| queue.counts.locked),
    ("blocked", 7, true, |queue| queue.blocked),
    ("deferred", 8, false, |queue| queue.counts.deferred()),
    ("dead", 7, true, |queue| queue.counts.dead_lettered),
];

fn draw_queues(frame: &mut Frame<'_>, area: Rect, snapshot: &DaemonSnapshot) {
    let texts = ["queue", "last 20 minutes"].map(Cell::from);
    let numbers = NUMBERS.map(|(name, ..)| Cell::from(Text::raw(name).right_aligned()));
    let heading = Row::new(texts.into_iter().chain(numbers));
    let rows = snapshot.queues.iter().map(|queue| queue_row(snapshot, queue));
    let widths = [Constraint::Min(12), Constraint::Length(MINUTES as u16)];
    let widths = widths.into_iter().chain(NUMBERS.map(|(_, width, ..)| Constraint::Length(width)));
    frame.render_widget(Table::new(rows, widths).header(heading.style(QUIET)), area);
}

fn queue_row(snapshot: &DaemonSnapshot, queue: &QueueEnvelope) -> Row<'static> {
    let rates = snapshot.rates_of(&queue.name);
    let blocked = snapshot.status.blocked_for(Some(&queue.name), None);
    let figures = QueueFigures { counts: &queue.counts, rates, blocked };
    let paused = if queue.paused == Some(true) { " (paused)" } else { "" };
    let bars = Text::styled(rates.map(bars).unwrap_or_default(), Style::new().fg(Color::Cyan));
    let texts = [Cell::from(format!(" {}{paused}", printable(&queue.name))), Cell::from(bars)];
    let numbers = NUMBERS.map(|(_, _, is_bad, number)| {
        let number = number(&figures);
        let style = if is_bad && number > 0 { Style::new().fg(Color::Red) } else { Style::new() };
        Cell::from(Text::styled(number.to_string(), style).right_aligned())
    });
    Row::new(texts.into_iter().chain(numbers))
}

/// The last minute that is over.
fn last_minute(minutes: &[u64]) -> u64 {
    minutes.iter().rev().nth(1).copied().unwrap_or_default()
}

/// What was completed in the last minutes, as bars.
fn bars(rates: &QueueRatesView) -> String {
    let from = rates.completed.len().saturating_sub(MINUTES);
    let minutes = &rates.completed[from..];
    let max = minutes.iter().copied().max().unwrap_or_default().max(1);
    let top = BARS.len() as u64 - 1;
    // What is not nothing can be seen.
    minutes.iter().map(|minute| BARS[(minute * top).div_ceil(max) as usize]).collect()
}

fn draw_blocked(frame: &mut Frame<'_>, area: Rect, state: &TopState, present: &LocalTime) {
    let snapshot = &state.snapshot;
    if snapshot.blocked.is_empty() {
        let text = match snapshot.has_more {
            true => Line::styled(" None among those looked at (all: seriatim blocked).", QUIET),
            false => Line::styled(" Nothing is stuck.", Style::new().fg(Color::Green)),
        };
        frame.render_widget(Paragraph::new(vec![Line::raw(""), text]), area);
        return;
    }
    let more = if snapshot.has_more { "blocked (more: seriatim blocked)" } else { "blocked" };
    let heading = Row::new([
        Cell::from(format!(" {more}")),
        Cell::from("cause"),
        Cell::from("since"),
        Cell::from(Text::raw("waiting").right_aligned()),
        Cell::from("next"),
        Cell::from("last error"),
    ]);
    let rows = snapshot.blocked.iter().map(|row| blocked_row(row, present));
    let widths = [
        Constraint::Fill(3),
        Constraint::Length(24),
        Constraint::Length(12),
        Constraint::Length(7),
        Constraint::Length(18),
        Constraint::Fill(4),
    ];
    let table = Table::new(rows, widths)
        .header(heading.style(QUIET).top_margin(1))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut chosen = TableState::new().with_selected(state.chosen);
    frame.render_stateful_widget(table, area, &mut chosen);
}

fn blocked_row(row: &BlockedView, present: &LocalTime) -> Row<'static> {
    let error = row.last_error.as_deref().or(row.hold_reason.as_deref()).unwrap_or_default();
    Row::new([
        Cell::from(format!(" {}", printable(&blocked::place(row)))),
        Cell::from(Text::styled(printable(&blocked::cause(row)), Style::new().fg(tone(row.cause)))),
        Cell::from(row.since.map(|since| present.age(since)).unwrap_or_default()),
        Cell::from(Text::raw(row.waiting.to_string()).right_aligned()),
        Cell::from(printable(&blocked::next(row, present))),
        Cell::from(printable(error)),
    ])
}

fn tone(cause: BlockedCause) -> Color {
    match cause {
        BlockedCause::Retry | BlockedCause::Held | BlockedCause::CannotStart => Color::Red,
        BlockedCause::Gap | BlockedCause::TooLarge | BlockedCause::PrefetchWindow => Color::Yellow,
        BlockedCause::Deferred | BlockedCause::Locked | BlockedCause::RateLimited => Color::Cyan,
    }
}

fn draw_workflow(frame: &mut Frame<'_>, area: Rect, open: &WorkflowPane, present: &LocalTime) {
    let mut lines = vec![Line::styled(format!(" {}", printable(&open.target.to_string())), HEADING)];
    match &open.details {
        None => lines.push(Line::styled(" Asking the daemon.", QUIET)),
        Some(details) => lines.extend(details_of(details, present)),
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

fn details_of(details: &Details, present: &LocalTime) -> Vec<Line<'static>> {
    let line = |text: String| Line::raw(format!(" {}", printable(&text)));
    let Some(workflow) = &details.workflow else {
        return vec![Line::raw(" Nothing is stored of it any more.")];
    };
    let mut lines = Vec::new();
    match &workflow.blocked {
        None => lines.push(line(word(&workflow.status))),
        Some(row) => {
            let since = row.since.map(|since| format!(", since {}", present.full(since))).unwrap_or_default();
            let why = format!(" {}{since}", printable(&blocked::cause(row)));
            lines.push(Line::styled(why, Style::new().fg(tone(row.cause))));
            let error = row.last_error.as_ref().or(row.hold_reason.as_ref());
            lines.extend(error.map(|error| line(format!("last error: {error}"))));
            lines.push(line(format!("next: {}", row.next)));
        }
    }
    let holds = workflow.holds.iter();
    lines.extend(holds.map(|hold| line(format!("held: {} {}", word(&hold.cause), hold.reason))));
    lines.push(Line::raw(""));
    lines.push(line(strip(workflow, &details.messages, present)));
    lines.push(Line::raw(""));
    for (at, message) in details.messages.iter().enumerate() {
        let place = message.position.map(|position| format!("{position} ")).unwrap_or_default();
        let last = message.attempts.last().map(|attempt| format!(": {}", attempt.reason));
        let what = what(message, at == 0, present);
        lines.push(line(format!("{place}#{} {what}{}", message.sequence_number, last.unwrap_or_default())));
    }
    lines
}
