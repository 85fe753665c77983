//! Who looks: sessions of those who have shown a key, and the tokens that tell our own forms from others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use http::HeaderMap;
use http::header;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::percent_decode_str;
use percent_encoding::utf8_percent_encode;
use sha2::Digest;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::clock::Clock;
use crate::limits;
use crate::mutex::Mutex;

/// Draws a number that nobody can guess; none when the system has no more.
pub(crate) type Draw = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// The sessions. Nothing of them is stored: they end with the process.
pub(crate) struct Sessions {
    draw: Draw,
    clock: Arc<dyn Clock>,
    port: u16,
    /// What the tokens of forms are made with.
    secret: OnceLock<[u8; 32]>,
    /// Of each session, by the hash of its ID: the key that was shown, and when it ends.
    known: Mutex<BTreeMap<[u8; 32], PageSession>>,
}

struct PageSession {
    key: Arc<str>,
    ends: Duration,
}

/// What of a cookie is known beside its value.
#[derive(Clone, Copy)]
pub(crate) enum Lifetime {
    /// Until the browser is closed.
    Browser,
    /// So many seconds.
    Seconds(u64),
}

impl Sessions {
    pub(crate) fn new(draw: Draw, clock: Arc<dyn Clock>, port: u16) -> Sessions {
        Sessions { draw, clock, port, secret: OnceLock::new(), known: Mutex::default() }
    }

    /// A text that nobody can guess.
    pub(crate) fn fresh_id(&self) -> Option<String> {
        let mut id = String::with_capacity(64);
        for _ in 0..4 {
            id.push_str(&format!("{:016x}", (self.draw)()?));
        }
        Some(id)
    }

    /// Begins a session of somebody who has shown a key.
    pub(crate) fn begin(&self, key: &str) -> Option<String> {
        let id = self.fresh_id()?;
        let ends = self.clock.elapsed() + limits::SESSION_MAX;
        let mut known = self.known.lock();
        known.retain(|_, session| session.ends > self.clock.elapsed());
        if known.len() >= limits::SESSIONS_MAX
            && let Some(oldest) = known.iter().min_by_key(|(_, session)| session.ends).map(|(id, _)| *id)
        {
            known.remove(&oldest);
        }
        known.insert(hash(&id), PageSession { key: Arc::from(key), ends });
        Some(id)
    }

    /// The key that was shown in a session.
    pub(crate) fn key_of(&self, id: &str) -> Option<Arc<str>> {
        let known = self.known.lock();
        let session = known.get(&hash(id))?;
        (session.ends > self.clock.elapsed()).then(|| session.key.clone())
    }

    pub(crate) fn end(&self, id: &str) {
        self.known.lock().remove(&hash(id));
    }

    /// The token of the forms of a session.
    pub(crate) fn form_token(&self, id: &str) -> Option<String> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.secret()?) else { return None };
        mac.update(id.as_bytes());
        Some(mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Whether a form is one of ours, made for this session.
    pub(crate) fn is_own_form(&self, id: &str, token: &str) -> bool {
        self.form_token(id).is_some_and(|own| own.as_bytes().ct_eq(token.as_bytes()).into())
    }

    fn secret(&self) -> Option<&[u8; 32]> {
        if self.secret.get().is_none() {
            let _ = self.secret.set(hash(&self.fresh_id()?));
        }
        self.secret.get()
    }

    /// The value of a cookie of ours.
    pub(crate) fn cookie(&self, headers: &HeaderMap, name: &str) -> Option<String> {
        let name = self.cookie_name(name);
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(known, _)| *known == name)?;
        percent_decode_str(value).decode_utf8().ok().map(|value| value.into_owned())
    }

    /// A `Set-Cookie` line. Without a path it is the folder of the page that is meant, whatever prefix a proxy adds.
    pub(crate) fn set_cookie(&self, name: &str, value: &str, lifetime: Lifetime, is_secure: bool) -> String {
        let (name, value) = (self.cookie_name(name), utf8_percent_encode(value, NON_ALPHANUMERIC));
        let secure = if is_secure { "; Secure" } else { "" };
        let lasts = match lifetime {
            Lifetime::Browser => String::new(),
            Lifetime::Seconds(seconds) => format!("; Max-Age={seconds}"),
        };
        format!("{name}={value}; HttpOnly; SameSite=Strict{secure}{lasts}")
    }

    fn cookie_name(&self, name: &str) -> String {
        format!("seriatim_{name}_{}", self.port)
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::clock::Timestamp;
    use crate::testing::ManualClock;

    fn sessions() -> (Sessions, ManualClock) {
        let (clock, drawn) = (ManualClock::new(Timestamp::from_millis(0)), AtomicU64::new(1));
        let draw: Draw = Arc::new(move || Some(drawn.fetch_add(1, Ordering::Relaxed)));
        (Sessions::new(draw, Arc::new(clock.clone()), 7700), clock)
    }

    #[test]
    fn a_session_ends_with_its_time_or_when_it_is_told_to() {
        let (sessions, clock) = sessions();
        let [first, second] = [sessions.begin("k1").unwrap(), sessions.begin("k2").unwrap()];
        assert_eq!((sessions.key_of(&first).as_deref(), sessions.key_of("other")), (Some("k1"), None));
        sessions.end(&first);
        assert_eq!((sessions.key_of(&first), sessions.key_of(&second).as_deref()), (None, Some("k2")));
        clock.advance(limits::SESSION_MAX);
        assert_eq!(sessions.key_of(&second), None);
    }

    #[test]
    fn sessions_are_limited_in_number() {
        let (sessions, clock) = sessions();
        let first = sessions.begin("k").unwrap();
        clock.advance(Duration::from_secs(1));
        for _ in 0..limits::SESSIONS_MAX {
            sessions.begin("k").unwrap();
        }
        assert_eq!((sessions.key_of(&first), sessions.known.lock().len()), (None, limits::SESSIONS_MAX));
    }

    #[test]
    fn a_form_belongs_to_one_session() {
        let (sessions, _) = sessions();
        let token = sessions.form_token("a").unwrap();
        assert!(sessions.is_own_form("a", &token));
        assert!(!sessions.is_own_form("b", &token) && !sessions.is_own_form("a", ""));
    }

    #[test]
    fn a_cookie_is_read_back_and_kept_from_scripts() {
        let (sessions, _) = sessions();
        let line = sessions.set_cookie("notice", "a; b=\u{e9}", Lifetime::Seconds(5), true);
        assert!(line.ends_with("; HttpOnly; SameSite=Strict; Secure; Max-Age=5"), "{line}");
        let mut headers = HeaderMap::new();
        let sent = format!("x=y; {}", line.split(';').next().unwrap());
        headers.insert(header::COOKIE, sent.parse().unwrap());
        assert_eq!(sessions.cookie(&headers, "notice").as_deref(), Some("a; b=\u{e9}"));
        assert_eq!(sessions.cookie(&headers, "session"), None);
    }
}
