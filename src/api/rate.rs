//! A rate as text.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::JsonSchema;
use schemars::Schema;
use schemars::SchemaGenerator;
use schemars::json_schema;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;

use crate::api::time::NOTATION;
use crate::error::Misuse;
use crate::rate::Rate;

/// The notation of rates.
pub(crate) const RATE_NOTATION: &str = "rate";

/// How many messages in a span of time, as text: `100/s`, `30/min` or `10/h`. The burst is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireRate(pub Rate);

impl FromStr for WireRate {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<WireRate, Misuse> {
        text.parse().map(WireRate)
    }
}

impl Serialize for WireRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WireRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireRate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for WireRate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            (NOTATION): RATE_NOTATION,
            "description": "How many messages in a second, a minute or an hour: text like 100/s, 30/min or 10/h",
            "type": "string",
            "pattern": "^ *[0-9]+ */ *(s|min|h) *$",
        })
    }
}
