//! Why the definition files as they are now are not in force.

use std::path::PathBuf;

use crate::daemon::error::DaemonError;
use crate::definition::Definition;
use crate::definition::LoadError;

/// Why the definition files as they are now are not in force: the last reload changed nothing.
#[derive(Clone, Debug)]
pub(crate) struct ReloadProblem {
    /// Every mistake, a line for each.
    pub(crate) text: String,
    /// The mistakes of each file.
    of_files: Vec<(PathBuf, String)>,
    /// What is in the way of the definitions of queues.
    of_queues: Vec<(String, String)>,
}

impl ReloadProblem {
    pub(crate) fn of(error: &DaemonError) -> ReloadProblem {
        let mut found = ReloadProblem { text: explain(error), of_files: Vec::new(), of_queues: Vec::new() };
        match error {
            DaemonError::Definitions(LoadError::Mistakes(mistakes)) => {
                let of_file = mistakes.iter().map(|mistake| (mistake.file.clone(), mistake.to_string()));
                found.of_files = of_file.collect();
            }
            DaemonError::Apply { queue, .. } => found.of_queues.push((queue.clone(), error.to_string())),
            _ => {}
        }
        found
    }

    /// This one and another, unless it says that already.
    pub(crate) fn and(mut self, other: ReloadProblem) -> ReloadProblem {
        if other.of_queues.iter().any(|problem| !self.of_queues.contains(problem)) {
            self.text = format!("{}\n{}", self.text, other.text);
            self.of_files.extend(other.of_files);
            self.of_queues.extend(other.of_queues);
        }
        self
    }

    /// Why the file of a definition that is in force is not in force as it is now.
    pub(crate) fn of_definition(&self, definition: &Definition) -> Option<String> {
        let of_file = self.of_files.iter().filter(|(file, _)| *file == definition.file);
        let of_queue = self.of_queues.iter().filter(|(queue, _)| *queue == definition.name.as_str());
        let found: Vec<&str> =
            of_file.map(|(_, text)| text.as_str()).chain(of_queue.map(|(_, text)| text.as_str())).collect();
        (!found.is_empty()).then(|| found.join("\n"))
    }
}

/// Everything an error has to say, mistake by mistake.
pub(crate) fn explain(error: &DaemonError) -> String {
    match error {
        DaemonError::Definitions(LoadError::Mistakes(mistakes)) => {
            mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
        DaemonError::Several(errors) => errors.iter().map(explain).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}
