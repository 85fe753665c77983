//! What a message is called in the tests with real processes, and what is in it: both follow from its place.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;
use seriatim::Message;

use crate::random::Random;

/// Workflows from here on are fed by completions of the queue by position, not by senders.
const FOLLOW_UPS: u32 = 1_000;

/// Longest body's filling in bytes: small enough for many commits in a second, large enough for several pages.
const FILLING_BYTES_MAX: u64 = 300;

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Ordered {
    Position,
    Arrival,
}

impl Ordered {
    pub(crate) const BOTH: [Ordered; 2] = [Ordered::Position, Ordered::Arrival];

    /// The name of the queue.
    pub(crate) fn queue(self) -> &'static str {
        match self {
            Ordered::Position => "position",
            Ordered::Arrival => "arrival",
        }
    }
}

/// A message, by its place: what the ledger and the process that is killed both know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Name {
    pub(crate) ordered: Ordered,
    pub(crate) workflow: u32,
    pub(crate) number: u64,
}

impl Name {
    pub(crate) fn new(ordered: Ordered, workflow: u32, number: u64) -> Name {
        Name { ordered, workflow, number }
    }

    /// Whether completions of its workflow may send follow-ups. Nothing of such a workflow is set aside: what is fetched
    /// later would send its follow-up later, too.
    pub(crate) fn may_send(self) -> bool {
        self.ordered == Ordered::Position && self.workflow.is_multiple_of(3)
    }

    /// The message that the completion of this one may send, in the same transaction.
    pub(crate) fn follow_up(self) -> Name {
        Name::new(Ordered::Arrival, FOLLOW_UPS + self.workflow, self.number)
    }

    /// Whether a message must be there at every number before it.
    pub(crate) fn has_positions(self) -> bool {
        self.ordered == Ordered::Position
    }

    pub(crate) fn workflow_id(self) -> String {
        format!("w{}", self.workflow)
    }

    /// What is in the message: its name, and a filling that the seed decides.
    pub(crate) fn body(self, seed: u64) -> String {
        let mut random = Random::new(seed ^ self.number << 24 ^ u64::from(self.workflow) << 4);
        let filling =
            (0..random.below(FILLING_BYTES_MAX)).map(|_| random.pick(&['a', 'b', 'c', 'd', 'e', 'f']));
        format!("{self} {}", filling.collect::<String>())
    }

    pub(crate) fn message(self, seed: u64) -> Message {
        let message = Message::new(self.body(seed)).workflow(self.workflow_id()).message_id(self.to_string());
        match self.ordered {
            Ordered::Position => message.position(self.number),
            Ordered::Arrival => message,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.ordered.queue(), self.workflow, self.number)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        let unknown = || format!("{text:?} names no message of these tests");
        let mut parts = text.split('/');
        let mut part = || parts.next().ok_or_else(unknown);
        let (queue, workflow, number) = (part()?, part()?, part()?);
        let ordered = Ordered::BOTH.into_iter().find(|ordered| ordered.queue() == queue);
        let name = Name {
            ordered: ordered.ok_or_else(unknown)?,
            workflow: workflow.parse().map_err(|_| unknown())?,
            number: number.parse().map_err(|_| unknown())?,
        };
        if name.to_string() == text { Ok(name) } else { Err(unknown()) }
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Name, String> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.to_string()
    }
}
