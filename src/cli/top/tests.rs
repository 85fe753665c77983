//! Frames of `top`, drawn on a terminal that is none.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;
use serde_json::Value;
use serde_json::json;
use seriatim::api::views::RatesView;
use seriatim::api::views::StatusView;

use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::top::draw::draw;
use crate::cli::top::snapshot::DaemonSnapshot;
use crate::cli::top::state::Details;
use crate::cli::top::state::KeyAction;
use crate::cli::top::state::TopState;
use crate::cli::top::state::TopView;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn row(id: &str) -> Value {
    json!({ "queue": "orders", "workflow_id": id, "cause": "retry", "since": 808_000, "waiting": 7,
        "delivery_count": 3, "last_error": "no route\u{1b}[2J to host", "next": "message 16 is tried again",
        "next_action": "retry", "next_at": 1_240_000 })
}

fn snapshot(ids: &[&str]) -> DaemonSnapshot {
    let status: StatusView = read(json!({ "version": "1.2.3", "state": "ready", "started_at": 400_000,
        "file_bytes": 12 << 20, "storage_free_bytes": 3_u64 << 30, "definitions": 1, "handlers_running": 2,
        "blocked": [{ "queue": "orders", "cause": "retry", "workflows": ids.len() }] }));
    let minutes: Vec<u64> = (0..60).collect();
    let rates: RatesView = read(json!({ "commit_ms_mean": 1.25,
        "queues": [{ "queue": "orders", "accepted": minutes, "completed": minutes }] }));
    let counts = json!({ "stored": 30, "ready": 17, "locked": 2, "early": 3, "retry": 1, "exhausted": 0, "by_consumer": 0,
        "scheduled": 4, "dead_lettered": 5, "completed": 90, "expired": 0, "cancelled": 0, "purged": 0, "accepted": 120 });
    let queue = json!({ "name": "orders", "created_at": 0, "counts": counts, "options": {}, "paused": true });
    let blocked = ids.iter().map(|id| read(row(id))).collect();
    DaemonSnapshot { status, rates, queues: vec![read(queue)], blocked, has_more: false }
}

fn state(ids: &[&str]) -> TopState {
    TopState::new("http://127.0.0.1:7700".to_owned(), snapshot(ids))
}

/// The frame of a state, line by line.
fn frame(state: &TopState, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, &LocalTime::at(1_000_000))).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(state: &mut TopState, code: KeyCode) -> KeyAction {
    state.press(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn a_frame_shows_queues_what_is_blocked_commits_and_the_disk() {
    let frame = frame(&state(&["4711"]), (130, 12));
    let expected = [
        " seriatim 1.2.3  ready  since 10m ago  http://127.0.0.1:7700",
        " blocked: 1 retry  \u{b7}  commit 1.2 ms  \u{b7}  store 12 MiB  \u{b7}  disk free 3.0 GiB  \u{b7}  2 handlers at work",
        "",
    ];
    assert_eq!(frame[..3], expected, "{frame:#?}");
    let queue: Vec<&str> = frame[4].split_whitespace().collect();
    assert_eq!((queue[0], queue[1]), ("orders", "(paused)"), "{frame:#?}");
    assert_eq!(queue[3..], ["58", "58", "21", "2", "1", "4", "5"], "{frame:#?}");
    assert!(frame[4].contains('\u{2588}') && frame[4].contains('\u{2586}'), "the rate as bars: {frame:#?}");
    let blocked = frame.iter().find(|line| line.contains("orders/4711")).unwrap();
    for word in ["retry (3x)", "3m 12s ago", "7", "retry in 4m", "no route [2J to host"] {
        assert!(blocked.contains(word), "{word}: {frame:#?}");
    }
    assert!(frame[11].contains("q quit"));
}

#[test]
fn a_row_is_chosen_opened_and_left() {
    let mut state = state(&["a", "b", "c"]);
    for (key, chosen) in [
        (KeyCode::Down, 1),
        (KeyCode::PageDown, 2),
        (KeyCode::Down, 2),
        (KeyCode::Up, 1),
        (KeyCode::Home, 0),
        (KeyCode::Up, 0),
        (KeyCode::End, 2),
    ] {
        assert_eq!((press(&mut state, key), state.chosen), (KeyAction::Stay, chosen), "{key}");
    }
    assert_eq!(press(&mut state, KeyCode::Enter), KeyAction::Look);
    assert!(frame(&state, (60, 8))[3].contains("orders/c"));
    assert_eq!(press(&mut state, KeyCode::Esc), KeyAction::Stay);
    assert!(state.open.is_none());
    assert_eq!(press(&mut state, KeyCode::Char('q')), KeyAction::Quit);
    assert_eq!(state.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyAction::Quit);
}

#[test]
fn a_workflow_is_shown_with_what_stands_in_its_line() {
    let mut state = state(&["4711"]);
    press(&mut state, KeyCode::Enter);
    let attempt = json!({ "delivery_count": 3, "at": 990_000, "lasted": 1_500, "reason": "bank is closed" });
    let message = |position: u64, status: &str, attempts: Value| {
        json!({ "queue": "orders", "sequence_number": position + 100, "workflow_id": "4711", "position": position,
            "status": status, "accepted_at": 0, "delivery_count": 3, "until": 1_240_000, "attempts": attempts })
    };
    let messages = vec![read(message(16, "retry", json!([attempt]))), read(message(17, "ready", json!([])))];
    let workflow =
        read(json!({ "workflow_id": "4711", "status": "blocked", "messages": 2, "early": 0, "set_aside": 0,
        "dead_letters": 0, "next_position": 16, "has_state": false, "blocked": row("4711") }));
    let target = WorkflowTarget { queue: "orders".to_owned(), workflow_id: "4711".to_owned() };
    let details = Details { workflow: Some(workflow), messages };
    state.see(Ok(TopView::of(snapshot(&["4711"]), Some((target, details)))));
    let shown = frame(&state, (100, 16)).join("\n");
    for word in ["..15 done | 16 FAILED 3x", "#116", "bank is closed", "17 #117", "next: message 16"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn the_chosen_workflow_stays_chosen_and_trouble_is_told_over_what_was_seen_last() {
    let mut state = state(&["b", "c"]);
    press(&mut state, KeyCode::Down);
    state.see(Ok(TopView::of(snapshot(&["a", "b", "c"]), None)));
    assert_eq!(state.chosen, 2, "a row has come before it");
    state.see(Ok(TopView::of(snapshot(&["a"]), None)));
    assert_eq!(state.chosen, 0);
    state.see(Err(CliFailure::Refused("ask the daemon how it is: nobody answers".to_owned())));
    let shown = frame(&state, (100, 10));
    assert!(shown[0].contains("cannot ask the daemon how it is: nobody answers"), "{shown:#?}");
    assert!(shown.join("\n").contains("orders/a"), "{shown:#?}");
    state.see(Ok(TopView::of(snapshot(&[]), None)));
    assert!(frame(&state, (40, 10)).join("\n").contains("Nothing is stuck."));
}

#[test]
fn nothing_is_stuck_only_when_all_were_looked_at() {
    let some = DaemonSnapshot { has_more: true, ..snapshot(&[]) };
    let shown = frame(&TopState::new(String::new(), some), (80, 10)).join("\n");
    assert!(shown.contains("None among those looked at") && !shown.contains("Nothing is stuck"), "{shown}");
}

#[test]
fn a_frame_fits_the_smallest_terminal() {
    for size in [(1, 1), (5, 3), (20, 4), (300, 100)] {
        assert_eq!(frame(&state(&["a", "b"]), size).len(), usize::from(size.1));
    }
}
