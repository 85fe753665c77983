//! Values found in a JSON body in one reading of it.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde::de::Deserializer;
use serde::de::Error as _;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::value::RawValue;

use crate::intake::source::Pointer;

/// What was found at a pointer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum PointerValue<'body> {
    /// Nothing.
    #[default]
    Nothing,
    /// A value, as it is written.
    Value(&'body RawValue),
    /// An object on the way names the same member twice: nobody can say which is meant.
    Twice,
}

/// The values wanted of a body: a tree of the tokens of all pointers, so that the body is read once, and only what
/// is wanted is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointerTree {
    /// Numbers of the answers that this very value is.
    answers: Vec<usize>,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    token: String,
    /// The token as the index of an array.
    index: Option<usize>,
    wanted: PointerTree,
}

impl PointerTree {
    /// Also wants the value at a pointer, as the answer of this number.
    pub(crate) fn add(&mut self, pointer: &Pointer, answer: usize) {
        let mut wanted = self;
        for token in pointer.tokens() {
            let known = wanted.members.iter().position(|member| member.token == *token);
            let at = known.unwrap_or_else(|| {
                let member =
                    Member { token: token.clone(), index: index(token), wanted: PointerTree::default() };
                wanted.members.push(member);
                wanted.members.len() - 1
            });
            wanted = &mut wanted.members[at].wanted;
        }
        wanted.answers.push(answer);
    }

    /// Whether nothing is wanted, so that the body need not be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.members.is_empty()
    }

    /// Reads a body.
    pub(crate) fn find<'body>(
        &self,
        body: &'body [u8],
        found: &mut [PointerValue<'body>],
    ) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        BodySearch { wanted: self, found }.deserialize(&mut deserializer)?;
        deserializer.end()
    }

    /// Records that an object has this member twice, for all that is wanted of it.
    fn is_twice(&self, found: &mut [PointerValue<'_>]) {
        for answer in &self.answers {
            found[*answer] = PointerValue::Twice;
        }
        for member in &self.members {
            member.wanted.is_twice(found);
        }
    }
}

/// An index as RFC 6901 writes it: digits, without zeros in front.
fn index(token: &str) -> Option<usize> {
    let is_digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits && (token == "0" || !token.starts_with('0')) { token.parse().ok() } else { None }
}

/// One value of the body, and what is wanted of it.
struct BodySearch<'search, 'body> {
    wanted: &'search PointerTree,
    found: &'search mut [PointerValue<'body>],
}

impl<'body> DeserializeSeed<'body> for BodySearch<'_, 'body> {
    type Value = ();

    fn deserialize<D: Deserializer<'body>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.wanted.answers.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let value = <&RawValue>::deserialize(deserializer)?;
        for answer in &self.wanted.answers {
            self.found[*answer] = PointerValue::Value(value);
        }
        // One pointer may lead into what another one points to.
        if !self.wanted.members.is_empty() {
            let mut inner = serde_json::Deserializer::from_str(value.get());
            inner.deserialize_any(self).map_err(D::Error::custom)?;
        }
        Ok(())
    }
}

impl<'body> Visitor<'body> for BodySearch<'_, 'body> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'body>>(self, mut map: A) -> Result<(), A::Error> {
        let members = &self.wanted.members;
        let mut seen = 0_u64;
        while let Some(member) = map.next_key_seed(Which { members })? {
            let Some(at) = member else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let wanted = &members[at].wanted;
            // At most four sources, so at most four members: a bit for each.
            if seen & (1 << at) != 0 {
                map.next_value::<IgnoredAny>()?;
                wanted.is_twice(self.found);
                continue;
            }
            seen |= 1 << at;
            map.next_value_seed(BodySearch { wanted, found: self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'body>>(self, mut sequence: A) -> Result<(), A::Error> {
        for at in 0.. {
            let member = self.wanted.members.iter().find(|member| member.index == Some(at));
            let element = match member {
                Some(Member { wanted, .. }) => {
                    sequence.next_element_seed(BodySearch { wanted, found: self.found })?
                }
                None => sequence.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if element.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Which of the members a key names, without a copy of the key.
struct Which<'search> {
    members: &'search [Member],
}

impl<'body> DeserializeSeed<'body> for Which<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'body>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Which<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.members.iter().position(|member| member.token == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found at these pointers: the text of the value, `-` for nothing, `twice`.
    fn found(body: &str, pointers: &[&str]) -> Result<Vec<String>, serde_json::Error> {
        let mut wanted = PointerTree::default();
        for (answer, pointer) in pointers.iter().enumerate() {
            wanted.add(&Pointer::new(pointer).unwrap(), answer);
        }
        let mut found = vec![PointerValue::Nothing; pointers.len()];
        wanted.find(body.as_bytes(), &mut found)?;
        let text = |found: &PointerValue<'_>| match found {
            PointerValue::Nothing => "-".to_owned(),
            PointerValue::Value(value) => value.get().to_owned(),
            PointerValue::Twice => "twice".to_owned(),
        };
        Ok(found.iter().map(text).collect())
    }

    #[test]
    fn all_values_are_found_in_one_reading_as_they_are_written() {
        let body = r#"{"z":[{}],"order":{"id":1.50,"version":7},"tags":["a","b"],"order_id":"o\u002d1"}"#;
        let pointers = ["/order_id", "/order/version", "/order/id", "/tags/1"];
        assert_eq!(found(body, &pointers).unwrap(), [r#""o\u002d1""#, "7", "1.50", r#""b""#]);
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        for body in ["{}", "[]", "7", r#""text""#, "null", "true", "1.5", "-1", r#"{"a":3,"b":{"c":[]}}"#] {
            assert_eq!(found(body, &["/a/b", "/b/c/0", "/01"]).unwrap(), ["-", "-", "-"], "{body}");
        }
    }

    #[test]
    fn one_pointer_may_lead_into_what_another_points_to() {
        let body = r#"{"a":{"b":{"c":1}}}"#;
        let pointers = ["/a", "/a/b", "/a/b/c", "/a/b/c"];
        assert_eq!(found(body, &pointers).unwrap(), [r#"{"b":{"c":1}}"#, r#"{"c":1}"#, "1", "1"]);
    }

    #[test]
    fn a_member_that_is_there_twice_is_no_answer() {
        let body = r#"{"id":1,"o":{"v":1},"id":1,"o":{"v":2},"x":1,"x":2}"#;
        assert_eq!(found(body, &["/id", "/o/v"]).unwrap(), ["twice", "twice"]);
    }

    #[test]
    fn all_of_the_body_has_to_be_json() {
        for body in ["", "{", r#"{"a":1}x"#, r#"{"a":1,}"#, "{\"a\":1,\"b\":\u{1}}"] {
            assert!(found(body, &["/a"]).is_err(), "{body}");
        }
    }

    #[test]
    fn a_body_that_is_nested_without_end_is_read_or_refused_but_never_too_deep() {
        let deep = format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(found(&deep, &["/a"]).unwrap(), ["1"]);
    }
}
