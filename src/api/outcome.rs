//! What a handler in another language answers, as JSON.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::deliveries::CompleteRequest;
use crate::api::message::SendEnvelope;
use crate::api::time::WireDuration;
use crate::api::time::WireTime;
use crate::error::Misuse;
use crate::message::Message;
use crate::processor::Failure;
use crate::processor::NO_REASON;
use crate::processor::Outcome;

/// How a handler says its attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    /// The message is done.
    #[default]
    Complete,
    /// It failed, and is tried again in its place.
    Retry,
    /// It is set aside; the workflow goes on without it.
    Defer,
    /// It is moved aside for good.
    DeadLetter,
}

/// What a handler answers. Everything but `outcome` is optional; the new state and the messages to send are one
/// transaction with a `complete`, and refused with any other outcome.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeEnvelope {
    /// Which request is answered; only a persistent handler has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// How it ended.
    #[serde(default)]
    pub outcome: OutcomeWord,
    /// Delay of the next attempt; without it, what the definition says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<WireDuration>,
    /// Instant of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<WireTime>,
    /// With `defer`: when it comes back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `dead_letter`: what else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The workflow's new state, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub state: Option<Box<RawValue>>,
    /// The workflow's new state, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_base64: Option<String>,
    /// Clears the workflow's state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clear_state: bool,
    /// Messages to send, each with the queue it goes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<SendEnvelope>,
}

impl OutcomeEnvelope {
    /// Every field there is.
    pub(crate) const FIELDS: [&str; 11] = [
        "id",
        "outcome",
        "retry_after",
        "retry_at",
        "until",
        "reason",
        "description",
        "state",
        "state_base64",
        "clear_state",
        "send",
    ];

    /// The outcome for the processor. `place` gives each message its workflow and position, as the definition of its
    /// queue says.
    ///
    /// # Errors
    /// [`Misuse`] names a field that does not go with the outcome or is not allowed.
    pub fn read(
        self,
        place: impl Fn(&str, Message) -> Result<Message, Misuse>,
    ) -> Result<Result<Outcome, Failure>, Misuse> {
        self.check()?;
        let reason = self.reason.clone().unwrap_or_else(|| NO_REASON.to_owned());
        Ok(match (self.outcome, self.retry_after, self.retry_at) {
            (OutcomeWord::Complete, ..) => {
                let OutcomeEnvelope { state, state_base64, clear_state, send, .. } = self;
                let request = CompleteRequest { state, state_base64, clear_state, send };
                Ok(Outcome::CompleteWith(request.completion(place)?))
            }
            (OutcomeWord::Retry, Some(after), _) => Err(Failure::new(reason).retry_after(after.0)),
            (OutcomeWord::Retry, None, Some(at)) => Err(Failure::new(reason).retry_at(at.0)),
            (OutcomeWord::Retry, None, None) => Err(Failure::new(reason)),
            (OutcomeWord::Defer, ..) => Ok(match self.until {
                Some(until) => Outcome::DeferUntil(until.0),
                None => Outcome::Defer,
            }),
            (OutcomeWord::DeadLetter, ..) => Ok(Outcome::DeadLetter {
                reason: self.reason.unwrap_or_else(|| "DeadLetteredByHandler".to_owned()),
                description: self.description.unwrap_or_default(),
            }),
        })
    }

    fn check(&self) -> Result<(), Misuse> {
        let completes = self.outcome == OutcomeWord::Complete;
        let has_state = self.state.is_some() || self.state_base64.is_some() || self.clear_state;
        let retries = self.outcome == OutcomeWord::Retry;
        let wrong = [
            ("state", has_state && !completes),
            ("send", !self.send.is_empty() && !completes),
            ("retry_after", self.retry_after.is_some() && !retries),
            ("retry_at", self.retry_at.is_some() && !retries),
            ("until", self.until.is_some() && self.outcome != OutcomeWord::Defer),
        ];
        match wrong.into_iter().find(|(_, is_wrong)| *is_wrong) {
            Some((field, _)) => Err(Misuse::new(field, "does not go with this outcome")),
            None if self.retry_after.is_some() && self.retry_at.is_some() => {
                Err(Misuse::new("retry_at", "is given together with retry_after"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Result<Outcome, Failure>, Misuse> {
        serde_json::from_str::<OutcomeEnvelope>(json).unwrap().read(|_, message| Ok(message))
    }

    #[test]
    fn an_answer_says_how_it_ended() {
        assert!(matches!(read("{}"), Ok(Ok(Outcome::CompleteWith(_)))));
        let failure = read(r#"{"outcome":"retry","retry_after":"5m","reason":"busy"}"#).unwrap().unwrap_err();
        assert_eq!(failure.reason(), "busy");
        assert!(matches!(read(r#"{"outcome":"defer"}"#), Ok(Ok(Outcome::Defer))));
        assert!(matches!(read(r#"{"outcome":"dead_letter"}"#), Ok(Ok(Outcome::DeadLetter { .. }))));
    }

    #[test]
    fn the_list_of_fields_is_complete() {
        let schema = schemars::schema_for!(OutcomeEnvelope).to_value();
        let known: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(known.len(), OutcomeEnvelope::FIELDS.len());
        assert!(known.iter().all(|field| OutcomeEnvelope::FIELDS.contains(&field.as_str())), "{known:?}");
    }

    #[test]
    fn every_field_is_documented() {
        let document = include_str!("../../docs/definitions.md");
        let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
        for field in OutcomeEnvelope::FIELDS {
            let named = format!("`{field}`");
            let heads = |row: &&str| row.split('|').nth(1).is_some_and(|cell| cell.contains(&named));
            assert!(rows.iter().any(heads), "{field} is in no table");
        }
    }

    #[test]
    fn what_does_not_go_with_the_outcome_is_refused_by_name() {
        let field = |json| read(json).unwrap_err().field().to_owned();
        assert_eq!(field(r#"{"outcome":"retry","state":1}"#), "state");
        assert_eq!(field(r#"{"outcome":"defer","send":[{"queue":"q"}]}"#), "send");
        assert_eq!(field(r#"{"retry_after":"1s"}"#), "retry_after");
        assert_eq!(field(r#"{"state":1,"state_base64":"AA=="}"#), "state");
    }

    #[test]
    fn an_answer_that_contradicts_itself_is_refused_by_name() {
        let field = |json| read(json).map(drop).unwrap_err().field().to_owned();
        assert_eq!(field(r#"{"outcome":"retry","retry_after":"1s","retry_at":1}"#), "retry_at");
        assert_eq!(field(r#"{"state":1,"clear_state":true}"#), "clear_state");
        assert_eq!(field(r#"{"state_base64":"AA==","clear_state":true}"#), "clear_state");
    }

    #[test]
    fn what_is_null_is_as_if_it_were_left_out_as_typed_programs_write_it() {
        for answer in [
            r#"{"outcome":"dead_letter","reason":"x","state":null,"retry_after":null}"#,
            r#"{"outcome":"retry","retry_after":"1h","state":null}"#,
            r#"{"clear_state":true,"state":null,"state_base64":null}"#,
            r#"{"outcome":"complete","state":null}"#,
        ] {
            drop(read(answer).expect(answer));
        }
        assert!(serde_json::from_str::<OutcomeEnvelope>(r#"{"state":null}"#).unwrap().state.is_none());
    }
}
