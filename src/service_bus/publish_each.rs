//! Publishing messages to a topic, each for itself and in their order.

use crate::engine::TopicMessage;
use crate::error::SendError;
use crate::message::Message;
use crate::service_bus::published::published;

/// Publishes messages, each for itself, in the order given. What is malformed is refused in its place, and keeps none of the
/// others.
pub(crate) async fn publish_each<F, P, T>(messages: Vec<Message>, publish: P) -> Vec<Result<(), SendError>>
where
    P: Fn(Vec<TopicMessage>) -> F,
    F: Future<Output = Result<T, SendError>>,
{
    let read: Vec<_> = messages.into_iter().map(published).collect();
    let good: Vec<TopicMessage> = read.iter().filter_map(|read| read.as_ref().ok().cloned()).collect();
    let mut published = publish_good(good, publish).await.into_iter();
    let answer = |read: Result<TopicMessage, _>| match read {
        Ok(_) => published.next().expect("every message that was published has its answer"),
        Err(misuse) => Err(SendError::Misuse(misuse)),
    };
    read.into_iter().map(answer).collect()
}

async fn publish_good<F, P, T>(messages: Vec<TopicMessage>, publish: P) -> Vec<Result<(), SendError>>
where
    P: Fn(Vec<TopicMessage>) -> F,
    F: Future<Output = Result<T, SendError>>,
{
    if messages.is_empty() {
        return Vec::new();
    }
    // Nearly always none is refused: then they are sent as one.
    match publish(messages.clone()).await {
        Ok(_) => return messages.iter().map(|_| Ok(())).collect(),
        Err(error) if !was_not_done(&error) => return messages.iter().map(|_| Err(error.clone())).collect(),
        Err(_) => {}
    }
    let mut answers = Vec::with_capacity(messages.len());
    let mut has_failed = None;
    for message in messages {
        let answer = match &has_failed {
            // What comes after one of which nothing is known would come out of its order.
            Some(error) => Err(SendError::clone(error)),
            None => publish(vec![message]).await.map(drop),
        };
        has_failed = answer.as_ref().err().filter(|error| !was_not_done(error)).cloned();
        answers.push(answer);
    }
    answers
}

/// Whether an error says that nothing was done, and that it was for what was asked: asking less may then do better. A cluster takes
/// no messages of several partitions together, and not too many bytes.
fn was_not_done(error: &SendError) -> bool {
    match error {
        SendError::Refused(_) | SendError::Misuse(_) => true,
        SendError::Unavailable(why) => why.is_of_request(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::error::SendRefusal;
    use crate::error::Unavailable;
    use crate::id::QueueName;

    /// What was asked, and what each message was answered, by a topic that answers so.
    async fn played(
        bodies: &[&str],
        answers: impl Fn(&[String]) -> Result<(), SendError>,
    ) -> (Vec<Vec<String>>, Vec<&'static str>) {
        let asked = RefCell::new(Vec::new());
        let messages = bodies.iter().map(|body| match *body {
            "malformed" => Message::new("malformed").workflow("w".repeat(10_000)),
            body => Message::new(body.to_owned()),
        });
        let answered = publish_each(messages.collect(), |messages| {
            let body = |message: &TopicMessage| String::from_utf8(message.message.body.to_vec()).unwrap();
            asked.borrow_mut().push(messages.iter().map(body).collect::<Vec<_>>());
            let answer = answers(asked.borrow().last().unwrap());
            async move { answer }
        })
        .await;
        let word = |answer: Result<(), SendError>| match answer {
            Ok(()) => "accepted",
            Err(SendError::Refused(_)) => "refused",
            Err(SendError::Misuse(_)) => "malformed",
            Err(SendError::Unavailable(_)) => "unknown",
        };
        (asked.into_inner(), answered.into_iter().map(word).collect())
    }

    fn refused() -> SendError {
        SendError::Refused(SendRefusal::TopicChanged(QueueName::new("t").unwrap()))
    }

    fn unanswered() -> SendError {
        SendError::Unavailable(Unavailable::Unanswered("the node has gone".to_owned()))
    }

    #[tokio::test]
    async fn a_malformed_message_keeps_none_of_its_neighbours() {
        let (asked, answered) = played(&["a", "malformed", "b"], |_| Ok(())).await;
        assert_eq!(answered, ["accepted", "malformed", "accepted"]);
        assert_eq!(asked, [["a", "b"]]);
        let (asked, answered) = played(&["malformed"], |_| Ok(())).await;
        assert_eq!((answered, asked.len()), (vec!["malformed"], 0));
    }

    #[tokio::test]
    async fn what_is_refused_as_one_is_asked_one_by_one() {
        let refuses = |asked: &[String]| match asked.iter().any(|body| body == "b") {
            true => Err(refused()),
            false => Ok(()),
        };
        let (asked, answered) = played(&["a", "b", "c"], refuses).await;
        assert_eq!(answered, ["accepted", "refused", "accepted"]);
        assert_eq!(asked.concat(), ["a", "b", "c", "a", "b", "c"]);
    }

    #[tokio::test]
    async fn what_a_cluster_does_not_take_together_is_asked_one_by_one() {
        let too_large = Unavailable::TooLarge { bytes: 4, bytes_max: 3 };
        for why in [Unavailable::Unsupported("several partitions"), too_large] {
            let refuses = |asked: &[String]| match asked {
                [_] => Ok(()),
                _ => Err(SendError::Unavailable(why.clone())),
            };
            let (asked, answered) = played(&["a", "b"], refuses).await;
            assert_eq!(answered, ["accepted", "accepted"]);
            assert_eq!(asked.concat(), ["a", "b", "a", "b"]);
        }
    }

    #[tokio::test]
    async fn what_may_have_been_done_is_not_asked_again() {
        let (asked, answered) = played(&["a", "b"], |_| Err(unanswered())).await;
        assert_eq!(answered, ["unknown", "unknown"]);
        assert_eq!(asked, [["a", "b"]]);
    }

    #[tokio::test]
    async fn nothing_is_asked_after_one_that_may_have_been_done() {
        let breaks = |asked: &[String]| match asked {
            [one] if one == "b" => Err(unanswered()),
            [_] => Ok(()),
            _ => Err(refused()),
        };
        let (asked, answered) = played(&["a", "b", "c", "d"], breaks).await;
        assert_eq!(answered, ["accepted", "unknown", "unknown", "unknown"]);
        assert_eq!(asked.concat(), ["a", "b", "c", "d", "a", "b"]);
    }
}
