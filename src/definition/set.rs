//! All definitions of a folder, and what differs between two readings of it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::definition::definition::Definition;
use crate::definition::diagnostic::Diagnostic;
use crate::definition::read::FileReading;
use crate::definition::read::read;
use crate::definition::together;
use crate::id::QueueName;
use crate::intake::IntakeRule;
use crate::limits;

/// Says which file defines a queue, if one does.
pub(crate) type DefiningFile = Arc<dyn Fn(&QueueName) -> Option<String> + Send + Sync>;

/// All definitions of a folder, by the name of their queue.
///
/// Cheap to clone. Two sets are equal when their definitions are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    by_name: BTreeMap<QueueName, Arc<Definition>>,
}

/// Why the definitions of a folder could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The folder could not be read.
    #[error("cannot read the folder of definitions {folder}: {error}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the operating system says.
        #[source]
        error: io::Error,
    },
    /// The files have mistakes; all of them, in the order of files and lines.
    #[error("cannot load the definitions: {} in them", counted(.0.len()))]
    Mistakes(Vec<Diagnostic>),
}

fn counted(mistakes: usize) -> String {
    if mistakes == 1 { "1 mistake is".to_owned() } else { format!("{mistakes} mistakes are") }
}

/// What differs between two sets of definitions, each in order of name.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SetDifference {
    /// Queues that have a definition now.
    pub added: Vec<QueueName>,
    /// Queues whose definition says something else.
    pub changed: Vec<QueueName>,
    /// Queues that have no definition any more.
    pub removed: Vec<QueueName>,
}

impl SetDifference {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl Definitions {
    /// Reads every `*.toml` file that stands directly in a folder. Files whose name begins with a dot are not looked at.
    ///
    /// It is all or nothing: one mistake, and none of the definitions is loaded.
    ///
    /// # Errors
    /// [`LoadError`] with every mistake of every file, and of all files together.
    pub fn load(folder: impl AsRef<Path>) -> Result<Definitions, LoadError> {
        let folder = folder.as_ref();
        let files = files(folder).map_err(|error| LoadError::Folder { folder: folder.to_owned(), error })?;
        if files.len() > limits::DEFINITIONS_MAX {
            let message =
                format!("{} definitions, at most {} are allowed", files.len(), limits::DEFINITIONS_MAX);
            return Err(LoadError::Mistakes(vec![Diagnostic::of_file(folder, message, None)]));
        }
        let mut readings = Vec::new();
        let mut mistakes = Vec::new();
        for file in files {
            match text(&file) {
                Ok(text) => readings.push((file.clone(), read(&file, &text))),
                Err(message) => mistakes.push(Diagnostic::of_file(&file, message, None)),
            }
        }
        Definitions::of(readings, mistakes)
    }

    /// Reads definitions from texts, as if they were files of these names.
    ///
    /// # Errors
    /// As [`Definitions::load`].
    pub fn from_texts<'t>(
        texts: impl IntoIterator<Item = (&'t Path, &'t str)>,
    ) -> Result<Definitions, LoadError> {
        let readings = texts.into_iter().map(|(file, text)| (file.to_owned(), read(file, text)));
        Definitions::of(readings.collect(), Vec::new())
    }

    /// With the mistakes of files that could not be read.
    fn of(
        readings: Vec<(PathBuf, FileReading)>,
        mut mistakes: Vec<Diagnostic>,
    ) -> Result<Definitions, LoadError> {
        let are_all_read = mistakes.is_empty();
        mistakes.extend(together::mistakes(&readings, are_all_read));
        let mut by_name = BTreeMap::new();
        for (_, reading) in readings {
            match reading.result {
                Ok(definition) => {
                    by_name.insert(definition.name.clone(), Arc::new(definition));
                }
                Err(found) => mistakes.extend(found),
            }
        }
        if mistakes.is_empty() {
            return Ok(Definitions { by_name });
        }
        mistakes.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        Err(LoadError::Mistakes(mistakes))
    }

    /// The definition of a queue.
    pub fn get(&self, queue: impl AsRef<str>) -> Option<&Arc<Definition>> {
        self.by_name.get(queue.as_ref())
    }

    /// All definitions, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.by_name.values()
    }

    /// All but those of these queues.
    pub(crate) fn without(mut self, queues: &BTreeSet<QueueName>) -> Definitions {
        self.by_name.retain(|name, _| !queues.contains(name));
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The rules of all queues, for the intake.
    pub fn rules(&self) -> BTreeMap<QueueName, Arc<IntakeRule>> {
        let rules = self.by_name.iter().map(|(name, definition)| (name.clone(), definition.rule.clone()));
        rules.collect()
    }

    /// What a newer reading has changed.
    pub fn changes(&self, newer: &Definitions) -> SetDifference {
        let names: BTreeSet<&QueueName> = self.by_name.keys().chain(newer.by_name.keys()).collect();
        let mut changes = SetDifference::default();
        for name in names {
            match (self.by_name.get(name), newer.by_name.get(name)) {
                (None, Some(_)) => changes.added.push(name.clone()),
                (Some(_), None) => changes.removed.push(name.clone()),
                (before, after) if before != after => changes.changed.push(name.clone()),
                _ => {}
            }
        }
        changes
    }
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.extension().is_some_and(|extension| extension == "toml") && !is_hidden && !path.is_dir() {
            files.push(path);
        }
        if files.len() > limits::DEFINITIONS_MAX {
            break;
        }
    }
    files.sort();
    Ok(files)
}

/// The text of a file, if it is not too large to be one.
fn text(file: &Path) -> Result<String, String> {
    let mut text = Vec::new();
    // What is no file, a pipe say, might keep us waiting for ever.
    if std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return Err("is no file".to_owned());
    }
    let opened = File::open(file).and_then(|file| {
        // One byte more, to see that there is more.
        file.take(limits::DEFINITION_BYTES_MAX + 1).read_to_end(&mut text)
    });
    match opened {
        Err(error) => Err(format!("cannot be read: {error}")),
        Ok(bytes) if bytes as u64 > limits::DEFINITION_BYTES_MAX => {
            Err(format!("has more than {} bytes", limits::DEFINITION_BYTES_MAX))
        }
        Ok(_) => String::from_utf8(text).map_err(|_| "is not UTF-8 text".to_owned()),
    }
}
