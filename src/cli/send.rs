//! `seriatim send`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::IsTerminal;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use seriatim::api::ReceiptStatus;
use seriatim::api::ReceiptView;
use seriatim::api::SendEnvelope;
use seriatim::api::WireProperty;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;

use crate::cli::arguments::send::HeaderArguments;
use crate::cli::arguments::send::SendArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::feed::FeedLine;
use crate::cli::feed::LineFeed;
use crate::cli::feed::why_unread;
use crate::cli::limits;
use crate::cli::out::Stdout;
use crate::cli::topics;

/// Sends one message, or one a line.
pub(crate) async fn run(arguments: SendArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::of_work(arguments.daemon.json);
    if arguments.ndjson {
        let input = lines_of(arguments.body.as_deref())?;
        let (queue, from_line) = (arguments.queue, arguments.feed.from_line);
        let feed = LineFeed { remote, queue: queue.clone(), from_line, sets_cursors_last: false, out };
        return feed.run(input, &|line| read_line(&queue, line)).await;
    }
    let message = message(&arguments)?;
    let failed = CliFailure::to(format!("send to {}", arguments.queue));
    if arguments.topic {
        let (topic, messages) = (&arguments.queue, [message]);
        let answer = match &arguments.headers.idempotency_key {
            Some(key) => remote.publish_once(topic, key, &messages).await,
            None => remote.publish(topic, &messages).await,
        };
        let answer = answer.map_err(failed)?;
        out.json(&answer)?;
        if answer.copies.is_empty() {
            out.say("no subscription wants it: nothing was stored")?;
        }
        for copy in &answer.copies {
            out.say(describe(&copy.queue, &copy.receipt))?;
        }
        return Ok(true);
    }
    let receipt = match send(&remote, &arguments, message).await {
        Ok(receipt) => receipt,
        Err(error) if is_topic(&remote, &arguments.queue, &error).await => {
            let topic = &arguments.queue;
            return Err(CliFailure::Refused(format!(
                "send to {topic}: it is a topic, not a queue; add --topic"
            )));
        }
        Err(error) => return Err(failed(error)),
    };
    out.json(&receipt)?;
    out.say(describe(&arguments.queue, &receipt))?;
    Ok(true)
}

/// Whether the queue that is not there is a topic.
async fn is_topic(remote: &Remote, name: &str, error: &RemoteError) -> bool {
    let is_missing = error.problem().is_some_and(|problem| problem.code == "queue_not_found");
    is_missing && topics::all(remote).await.is_ok_and(|all| all.iter().any(|topic| topic.name == name))
}

async fn send(
    remote: &Remote,
    arguments: &SendArguments,
    message: SendEnvelope,
) -> Result<ReceiptView, RemoteError> {
    let queue = &arguments.queue;
    let Some(key) = &arguments.headers.idempotency_key else { return remote.send(queue, &message).await };
    let receipts = remote.send_once(queue, key, std::slice::from_ref(&message)).await?;
    receipts.into_iter().next().ok_or_else(|| RemoteError::Malformed {
        request: format!("a message for {queue}"),
        detail: "it is empty".to_owned(),
    })
}

fn describe(queue: &str, receipt: &ReceiptView) -> String {
    let number = receipt.sequence_number.map(|number| format!("{queue}#{number}")).unwrap_or_default();
    match receipt.status {
        ReceiptStatus::Accepted => format!("accepted as {number}"),
        ReceiptStatus::Duplicate => format!("a duplicate of {number}, which was accepted before"),
        ReceiptStatus::AlreadySettled => "its place was settled before: nothing was stored".to_owned(),
        ReceiptStatus::DeadLettered => {
            format!("stored as dead letter {number}: its place was given up before it came")
        }
    }
}

fn message(arguments: &SendArguments) -> Result<SendEnvelope, CliFailure> {
    let body = body(arguments.body.as_deref())?;
    let HeaderArguments { message_id, subject, content_type, correlation_id, reply_to, .. } =
        &arguments.headers;
    let content_type = content_type.clone().or_else(|| is_json(&body).then(|| "application/json".to_owned()));
    // As text, so that it stays as it is byte for byte, line ends included.
    let (body_text, body_base64) = match String::from_utf8(body) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(BASE64.encode(error.into_bytes()))),
    };
    Ok(SendEnvelope {
        workflow_id: arguments.place.workflow.clone(),
        position: arguments.place.position,
        after: arguments.place.after.clone(),
        first: arguments.place.first,
        message_id: message_id.clone(),
        subject: subject.clone(),
        content_type,
        correlation_id: correlation_id.clone(),
        reply_to: reply_to.clone(),
        properties: properties(&arguments.headers.properties)?,
        time_to_live: arguments.headers.time_to_live,
        schedule_at: arguments.headers.schedule_at,
        delay: arguments.headers.delay,
        body_text,
        body_base64,
        ..SendEnvelope::default()
    })
}

/// The bytes of a body: text, `@FILE`, or `-` for stdin.
pub(crate) fn body(body: Option<&str>) -> Result<Vec<u8>, CliFailure> {
    let mut bytes = Vec::new();
    let max = limits::BODY_BYTES_MAX + 1;
    match body {
        Some(text) if text == "-" || text.starts_with('@') => {
            input(text)?.take(max).read_to_end(&mut bytes)?;
        }
        Some(text) => bytes.extend_from_slice(text.as_bytes()),
        None if io::stdin().is_terminal() => {
            return Err(CliFailure::Argument(
                "find a body: give it as text, as @FILE, or on stdin".to_owned(),
            ));
        }
        None => {
            io::stdin().lock().take(max).read_to_end(&mut bytes)?;
        }
    }
    match bytes.len() as u64 > limits::BODY_BYTES_MAX {
        true => {
            Err(CliFailure::Argument(format!("send a body of more than {} bytes", limits::BODY_BYTES_MAX)))
        }
        false => Ok(bytes),
    }
}

fn lines_of(body: Option<&str>) -> Result<Box<dyn Read + Send>, CliFailure> {
    match body {
        Some(text) if text == "-" || text.starts_with('@') => input(text),
        Some(_) => Err(CliFailure::Argument("find lines: give them as @FILE or on stdin".to_owned())),
        None => Ok(Box::new(io::stdin())),
    }
}

/// `-` is stdin, `@path` a file.
fn input(text: &str) -> Result<Box<dyn Read + Send>, CliFailure> {
    let Some(path) = text.strip_prefix('@') else { return Ok(Box::new(io::stdin())) };
    let file = File::open(path).map_err(|error| CliFailure::Argument(format!("open {path}: {error}")))?;
    Ok(Box::new(file))
}

/// Whether a body is a JSON object or array: a lone word or number may be meant as text.
fn is_json(body: &[u8]) -> bool {
    let begins = body.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(begins, Some(b'{' | b'[')) && serde_json::from_slice::<Value>(body).is_ok()
}

fn properties(texts: &[String]) -> Result<BTreeMap<String, WireProperty>, CliFailure> {
    let read = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), property(name, value)?)),
        _ => Err(CliFailure::Argument(format!("read the property {text:?}: it is not like NAME=VALUE"))),
    };
    texts.iter().map(read).collect()
}

fn property(name: &str, text: &str) -> Result<WireProperty, CliFailure> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && text.parse::<i64>().is_err() {
        return Err(CliFailure::Argument(format!(
            "read the property {name:?}: {text} has more than 64 bits; as text it is {name}='\"{text}\"'"
        )));
    }
    Ok(serde_json::from_str(text).unwrap_or_else(|_| WireProperty::Text(text.to_owned())))
}

/// A line of `send --ndjson`.
fn read_line(queue: &str, line: &[u8]) -> Result<FeedLine, String> {
    let mut message: SendEnvelope = serde_json::from_slice(line).map_err(|error| why_unread(&error))?;
    match message.queue.take() {
        Some(other) if other != queue => Err(format!("it names the queue {other}")),
        _ => Ok(FeedLine::Message(Box::new(message))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_is_a_number_or_truth_value_if_it_looks_like_one() {
        let read = |text: &str| properties(&[text.to_owned()]).unwrap()["a"].clone();
        assert_eq!(read("a=1"), WireProperty::Integer(1));
        assert_eq!(read("a=true"), WireProperty::Boolean(true));
        assert_eq!(read("a=\"1\""), WireProperty::Text("1".to_owned()));
        assert_eq!(read("a=b=c"), WireProperty::Text("b=c".to_owned()));
        assert_eq!(read("a=[1]"), WireProperty::Text("[1]".to_owned()));
        assert!(properties(&["=1".to_owned()]).is_err() && properties(&["a".to_owned()]).is_err());
    }

    #[test]
    fn a_property_that_is_too_large_a_whole_number_is_refused_by_name() {
        for number in ["9223372036854775808", "-9223372036854775809", "18446744073709551616"] {
            let error = properties(&[format!("count={number}")]).unwrap_err().to_string();
            assert!(error.contains("\"count\"") && error.contains(number), "{error}");
        }
        let read = |text: &str| properties(&[text.to_owned()]).unwrap()["a"].clone();
        assert_eq!(read("a=9223372036854775807"), WireProperty::Integer(i64::MAX));
        assert_eq!(read("a=007"), WireProperty::Text("007".to_owned()));
    }

    #[test]
    fn only_an_object_or_array_is_taken_for_json() {
        assert!(is_json(b" {\"a\": 1}\n") && is_json(b"[]"));
        assert!(!is_json(b"17") && !is_json(b"{a}") && !is_json(b""));
    }
}
