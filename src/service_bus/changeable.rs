//! What no client may change, and what none may be called, whichever protocol it speaks.

use std::fmt;

use crate::error::Misuse;
use crate::id::QueueName;
use crate::service_bus::slashed::entity_name;
use crate::xml::can_be_written;

/// What was to be changed is defined by a file, and is changed there.
#[derive(Debug)]
pub(crate) struct DefinedByFile {
    entity: String,
    file: String,
}

impl DefinedByFile {
    pub(crate) fn new(name: &QueueName, file: String) -> DefinedByFile {
        DefinedByFile { entity: entity_name(name.as_str()).into_owned(), file }
    }
}

impl fmt::Display for DefinedByFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is defined by {}: change or remove that file", self.entity, self.file)
    }
}

/// Refuses a name with which a rule could not be listed for administration clients.
pub(crate) fn check_rule_name(name: &str) -> Result<(), Misuse> {
    match can_be_written(name) {
        true => Ok(()),
        false => Err(Misuse::new("the name of the rule", "has characters that no document can say")),
    }
}
