//! The terminal of `top`: keys come in, frames go out, and the daemon is asked each second.

use std::future::Future;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event;
use ratatui::crossterm::event::Event;
use ratatui::crossterm::event::KeyEventKind;
use seriatim::remote::Remote;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::moment::LocalTime;
use crate::cli::top::draw::draw;
use crate::cli::top::state::KeyAction;
use crate::cli::top::state::TopState;
use crate::cli::top::state::TopView;

/// How long the reader of keys waits before it looks whether anybody wants them.
const KEY_WAIT: Duration = Duration::from_millis(200);

type Asking<'a> = Pin<Box<dyn Future<Output = Result<TopView, CliFailure>> + 'a>>;

/// Shows the state until somebody quits. The terminal is afterwards as it was, also after a panic.
pub(crate) async fn show(remote: &Remote, state: TopState) -> Result<(), CliFailure> {
    let terminal = ratatui::try_init();
    let mut terminal =
        terminal.map_err(|error| io::Error::new(error.kind(), format!("use the terminal: {error}")))?;
    let shown = watch(remote, state, &mut terminal).await;
    ratatui::restore();
    shown
}

async fn watch(
    remote: &Remote,
    mut state: TopState,
    terminal: &mut DefaultTerminal,
) -> Result<(), CliFailure> {
    let mut keys = keys();
    let mut ticks = tokio::time::interval(limits::TOP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first is at once, and what is shown is of now.
    ticks.tick().await;
    let mut asking: Option<Asking<'_>> = None;
    loop {
        terminal.draw(|frame| draw(frame, &state, &LocalTime::here()))?;
        tokio::select! {
            event = keys.recv() => {
                let step = match event {
                    None => KeyAction::Quit,
                    Some(Event::Key(key)) if key.kind != KeyEventKind::Release => state.press(key),
                    Some(_) => KeyAction::Stay,
                };
                match step {
                    KeyAction::Quit => return Ok(()),
                    KeyAction::Look => asking = Some(Box::pin(TopView::ask(remote, state.target()))),
                    KeyAction::Stay => {}
                }
            }
            seen = answer(&mut asking) => {
                asking = None;
                state.see(seen);
            }
            _ = ticks.tick() => {
                asking.get_or_insert_with(|| Box::pin(TopView::ask(remote, state.target())));
            }
        }
    }
}

/// The answer to what is asked; none ever while nothing is.
async fn answer(asking: &mut Option<Asking<'_>>) -> Result<TopView, CliFailure> {
    match asking {
        Some(asking) => asking.await,
        None => pending().await,
    }
}

/// What is typed. The reader ends when nobody wants keys any more.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(limits::KEYS_WAITING);
    tokio::task::spawn_blocking(move || {
        while !sender.is_closed() {
            match event::poll(KEY_WAIT) {
                Ok(false) => {}
                Ok(true) => match event::read() {
                    Ok(event) => {
                        if sender.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    });
    receiver
}
