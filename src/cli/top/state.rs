//! Where a person is in `top`: what was seen last, which row is chosen, which workflow is open.

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;
use seriatim::api::views::MessageEnvelope;
use seriatim::api::views::WorkflowEnvelope;
use seriatim::remote::Remote;

use crate::cli::arguments::target::WorkflowTarget;
use crate::cli::failure::CliFailure;
use crate::cli::limits;
use crate::cli::top::snapshot::DaemonSnapshot;

/// Rows that a page up or down goes.
const PAGE: usize = 10;

/// Where a person is.
pub(crate) struct TopState {
    pub(crate) url: String,
    pub(crate) snapshot: DaemonSnapshot,
    /// The row of what is blocked that is chosen.
    pub(crate) chosen: usize,
    /// The workflow that is open.
    pub(crate) open: Option<WorkflowPane>,
    /// Why what is shown is not of now.
    pub(crate) problem: Option<String>,
}

/// A workflow that is open.
pub(crate) struct WorkflowPane {
    pub(crate) target: WorkflowTarget,
    /// What is known of it: `None` before it was asked for.
    pub(crate) details: Option<Details>,
}

/// A workflow in detail.
pub(crate) struct Details {
    /// `None` when nothing is stored of it any more.
    pub(crate) workflow: Option<WorkflowEnvelope>,
    pub(crate) messages: Vec<MessageEnvelope>,
}

/// What was asked of the daemon at once.
pub(crate) struct TopView {
    snapshot: DaemonSnapshot,
    details: Option<(WorkflowTarget, Details)>,
}

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    Stay,
    /// Ask the daemon at once.
    Look,
    Quit,
}

impl TopState {
    pub(crate) fn new(url: String, snapshot: DaemonSnapshot) -> TopState {
        TopState { url, snapshot, chosen: 0, open: None, problem: None }
    }

    /// What a key does.
    pub(crate) fn press(&mut self, key: KeyEvent) -> KeyAction {
        let last = self.snapshot.blocked.len().saturating_sub(1);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return KeyAction::Quit,
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.open = None,
            _ if self.open.is_some() => {}
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(PAGE),
            KeyCode::PageDown => self.chosen = (self.chosen + PAGE).min(last),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = last,
            KeyCode::Enter | KeyCode::Right => return self.open(),
            _ => {}
        }
        KeyAction::Stay
    }

    fn open(&mut self) -> KeyAction {
        let row = self.snapshot.blocked.get(self.chosen);
        let Some((row, id)) = row.and_then(|row| Some((row, row.workflow_id.clone()?))) else {
            return KeyAction::Stay;
        };
        let target = WorkflowTarget { queue: row.queue.clone(), workflow_id: id };
        self.open = Some(WorkflowPane { target, details: None });
        KeyAction::Look
    }

    /// The workflow that is open.
    pub(crate) fn target(&self) -> Option<WorkflowTarget> {
        self.open.as_ref().map(|open| open.target.clone())
    }

    /// Takes what was seen, or why nothing was. The chosen row stays the same workflow.
    pub(crate) fn see(&mut self, seen: Result<TopView, CliFailure>) {
        let seen = match seen {
            Ok(seen) => seen,
            Err(failure) => {
                self.problem = Some(failure.to_string());
                return;
            }
        };
        self.problem = None;
        let place = |snapshot: &DaemonSnapshot, at: usize| {
            snapshot.blocked.get(at).map(|row| (row.queue.clone(), row.workflow_id.clone()))
        };
        let before = place(&self.snapshot, self.chosen);
        self.snapshot = seen.snapshot;
        let rows = 0..self.snapshot.blocked.len();
        let same = rows.clone().find(|at| before.is_some() && place(&self.snapshot, *at) == before);
        self.chosen = same.unwrap_or(self.chosen).min(rows.end.saturating_sub(1));
        if let (Some((target, details)), Some(open)) = (seen.details, &mut self.open)
            && open.target == target
        {
            open.details = Some(details);
        }
    }
}

impl TopView {
    /// Asks the daemon how it is, and for a workflow if one is open.
    pub(crate) async fn ask(remote: &Remote, target: Option<WorkflowTarget>) -> Result<TopView, CliFailure> {
        let snapshot = DaemonSnapshot::take(remote).await?;
        let Some(target) = target else { return Ok(TopView { snapshot, details: None }) };
        let failed = || CliFailure::to(format!("show {target}"));
        let (queue, id) = (&target.queue, &target.workflow_id);
        let workflow = remote.workflow(queue, id).await.map_err(failed())?;
        let messages = match workflow.as_ref().is_some_and(|workflow| workflow.ended.is_none()) {
            true => {
                let page = remote.workflow_messages(queue, id, 0, limits::TOP_MESSAGES).await;
                page.map_err(failed())?.messages
            }
            false => Vec::new(),
        };
        Ok(TopView { snapshot, details: Some((target, Details { workflow, messages })) })
    }

    #[cfg(test)]
    pub(crate) fn of(snapshot: DaemonSnapshot, details: Option<(WorkflowTarget, Details)>) -> TopView {
        TopView { snapshot, details }
    }
}
