//! Who does something, and why.

use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;
use crate::limits;

/// Who acts, and why: what is written down of an operator.
///
/// ```
/// use seriatim::Actor;
///
/// let actor = Actor::new("ada")?.because("the customer called")?;
/// assert_eq!(actor.name(), "ada");
/// assert_eq!(actor.reason(), Some("the customer called"));
/// # Ok::<(), seriatim::Misuse>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Actor {
    name: String,
    reason: Option<String>,
}

impl Actor {
    /// Somebody of this name: a person, or a key. Any text of 1 to 128 bytes.
    ///
    /// # Errors
    /// [`Misuse`] when the name is empty or too long.
    pub fn new(name: impl Into<String>) -> Result<Actor, Misuse> {
        let name = name.into();
        if name.is_empty() {
            return Err(Misuse::new("actor", "is empty"));
        }
        check_length("actor", &name, limits::ACTOR_BYTES_MAX)?;
        Ok(Actor { name, reason: None })
    }

    /// Says why.
    ///
    /// # Errors
    /// [`Misuse`] when the reason has more than 1,024 bytes.
    pub fn because(mut self, reason: impl Into<String>) -> Result<Actor, Misuse> {
        let reason = reason.into();
        check_length("reason", &reason, limits::REASON_BYTES_MAX)?;
        self.reason = Some(reason);
        Ok(self)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why, if it was said.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

fn check_length(field: &'static str, text: &str, bytes_max: usize) -> Result<(), Misuse> {
    if text.len() > bytes_max {
        let problem = format!("has {} bytes, at most {bytes_max} are allowed", text.len());
        return Err(Misuse::new(field, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_has_a_short_name_and_perhaps_a_reason_of_one_line() {
        assert!(Actor::new("a".repeat(128)).is_ok());
        assert!(Actor::new("").is_err());
        assert!(Actor::new("a".repeat(129)).is_err());
        let ada = Actor::new("ada").unwrap();
        assert!(ada.clone().because("r".repeat(1_024)).is_ok());
        assert!(ada.because("r".repeat(1_025)).is_err());
    }
}
