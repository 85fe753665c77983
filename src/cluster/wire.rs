//! What nodes say to each other, as bytes: a version, and a record in the engine's own encoding.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Timestamp;
use crate::cluster::node_overview::NodeOverview;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::LookResult;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::decode;
use crate::engine::elsewhere::encode;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::token::LockToken;

/// The version of what follows; another is not understood, and whoever asks is told so.
const VERSION: u8 = 2;

/// What one node asks another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The partition that is meant, which the other should have; `None` for those that it has.
    pub(crate) partition: Option<u16>,
    /// The epoch of the owner that is meant, if it is to be done by no other.
    pub(crate) epoch: Option<u32>,
    pub(crate) what: What,
}

impl Ask {
    /// Of a partition, whoever has it.
    pub(crate) fn of_partition(partition: u16, what: What) -> Ask {
        Ask { partition: Some(partition), epoch: None, what }
    }

    /// Of a node, whatever it has.
    pub(crate) fn of_node(what: What) -> Ask {
        Ask { partition: None, epoch: None, what }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// To do something, waiting for work so long.
    Have(Command, Duration),
    /// What would be answered.
    TryOut(Command),
    Look(LookFor),
    /// To have in force what a queue is to be at this revision of the bucket.
    Define(QueueName, u64),
    /// To do something whose answer nobody waits for.
    GiveBack(Command),
    /// To answer whoever waits under this token now.
    Withdraw(LockToken),
    /// What the node has.
    Overview,
    /// To give its partitions to others, or to take some again.
    Drain(bool),
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum NodeReply {
    /// With engine time as it is in the partition, and its epoch, if one partition was asked.
    Reply(Reply, Timestamp, Option<u32>),
    Found(Box<LookResult>),
    /// The beginning of what was found, as NATS does not take all of it at once.
    FoundBeginning(Box<LookResult>),
    Defined,
    /// The partition is another node's, this one's if it is known. Nothing was done.
    NotOwner(Option<String>),
    /// Nothing was done, because it is too large.
    TooLarge {
        bytes: usize,
        bytes_max: usize,
    },
    /// Nothing was done, because too much is under way in the partition.
    Busy,
    /// It is not known whether it was done.
    Failed(String),
    Overview(Box<NodeOverview>),
}

impl NodeReply {
    /// Why an engine has not answered.
    pub(crate) fn of(why: Unavailable) -> NodeReply {
        match why {
            Unavailable::TooLarge { bytes, bytes_max } => NodeReply::TooLarge { bytes, bytes_max },
            Unavailable::NotOwner => NodeReply::NotOwner(None),
            Unavailable::Busy => NodeReply::Busy,
            why => NodeReply::Failed(why.to_string()),
        }
    }
}

/// Writes what is asked or answered.
pub(crate) fn write<T: Serialize>(said: &T) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(encode(said));
    bytes
}

/// Reads it; `None` for another version, and for what makes no sense.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match bytes {
        [VERSION, said @ ..] => decode(said),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::elsewhere::verbs;

    #[test]
    fn what_is_asked_is_read_as_it_was_written_and_another_version_is_not() {
        let verb = verbs::DeleteQueue { name: QueueName::new("q").unwrap() };
        let what = What::Have(Command::DeleteQueue(verb), Duration::from_secs(1));
        let ask = Ask { partition: Some(3), epoch: Some(7), what };
        let mut bytes = write(&ask);
        let found: Ask = read(&bytes).unwrap();
        assert_eq!(format!("{found:?}"), format!("{ask:?}"));
        bytes[0] += 1;
        assert!(read::<Ask>(&bytes).is_none());
        assert!(read::<Ask>(&[]).is_none());
    }
}
