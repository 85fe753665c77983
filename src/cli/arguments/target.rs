//! How queues, workflows and messages are named on the command line.

use std::fmt;
use std::str::FromStr;

use seriatim::Misuse;
use seriatim::QueueName;
use seriatim::WorkflowId;

/// `QUEUE`, `QUEUE/WORKFLOW` or `QUEUE#NUMBER`. The name of a queue has neither sign, so that everything behind the first
/// of them is data: `orders/a/b#c` is the workflow `a/b#c`. Only that of a subscription has slashes,
/// `orders/subscriptions/billing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetArgument {
    Queue(String),
    Workflow(WorkflowTarget),
    Message(String, u64),
}

/// `QUEUE/WORKFLOW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkflowTarget {
    pub(crate) queue: String,
    pub(crate) workflow_id: String,
}

/// `QUEUE#NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageTarget {
    pub(crate) queue: String,
    pub(crate) number: u64,
}

impl TargetArgument {
    pub(crate) fn queue(&self) -> &str {
        match self {
            TargetArgument::Queue(queue) | TargetArgument::Message(queue, _) => queue,
            TargetArgument::Workflow(workflow) => &workflow.queue,
        }
    }
}

impl FromStr for TargetArgument {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<TargetArgument, Misuse> {
        let from = QueueName::topic_len(text);
        let Some(sign) = text[from..].find(['/', '#']) else {
            return Ok(TargetArgument::Queue(queue(text)?));
        };
        let sign = from + sign;
        let (name, rest) = (queue(&text[..sign])?, &text[sign + 1..]);
        if text[sign..].starts_with('/') {
            let workflow_id = WorkflowId::new(rest)?.to_string();
            return Ok(TargetArgument::Workflow(WorkflowTarget { queue: name, workflow_id }));
        }
        let number = rest.parse();
        let number =
            number.map_err(|_| Misuse::new("message", format!("{rest:?} is not a sequence number")))?;
        Ok(TargetArgument::Message(name, number))
    }
}

impl FromStr for WorkflowTarget {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<WorkflowTarget, Misuse> {
        match text.parse()? {
            TargetArgument::Workflow(workflow) => Ok(workflow),
            _ => Err(Misuse::new("workflow", format!("{text:?} is not like QUEUE/WORKFLOW"))),
        }
    }
}

impl FromStr for MessageTarget {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<MessageTarget, Misuse> {
        match text.parse()? {
            TargetArgument::Message(queue, number) => Ok(MessageTarget { queue, number }),
            _ => Err(Misuse::new("message", format!("{text:?} is not like QUEUE#NUMBER"))),
        }
    }
}

impl fmt::Display for MessageTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.queue, self.number)
    }
}

/// Positions from one to another, both included: `19`, `19..22`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl FromStr for Positions {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<Positions, Misuse> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        match (from.parse(), to.trim_start_matches('=').parse()) {
            (Ok(from), Ok(to)) if from <= to => Ok(Positions { from, to }),
            _ => Err(Misuse::new("positions", format!("{text:?} is not like 19 or 19..22"))),
        }
    }
}

fn queue(text: &str) -> Result<String, Misuse> {
    Ok(QueueName::new(text)?.to_string())
}

impl fmt::Display for WorkflowTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.workflow_id)
    }
}

impl fmt::Display for TargetArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetArgument::Queue(queue) => f.write_str(queue),
            TargetArgument::Workflow(workflow) => workflow.fmt(f),
            TargetArgument::Message(queue, number) => write!(f, "{queue}#{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_one_or_from_one_to_another() {
        let parse = |text: &str| text.parse::<Positions>();
        assert_eq!(parse("19").unwrap(), Positions { from: 19, to: 19 });
        assert_eq!(parse("19..22").unwrap(), Positions { from: 19, to: 22 });
        for wrong in ["", "a", "22..19", "19..", "..3", "1..2..3", "-1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn everything_behind_the_first_sign_is_data() {
        let parse = |text: &str| text.parse::<TargetArgument>();
        assert_eq!(parse("orders").unwrap(), TargetArgument::Queue("orders".to_owned()));
        assert_eq!(parse("orders#17").unwrap(), TargetArgument::Message("orders".to_owned(), 17));
        for id in ["a/b#c", "#1", "/", " "] {
            let Ok(TargetArgument::Workflow(workflow)) = parse(&format!("orders/{id}")) else {
                panic!("{id}")
            };
            assert_eq!(workflow.workflow_id, id);
        }
        for wrong in ["", "/a", "orders/", "orders#", "orders#a", "or ders"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
