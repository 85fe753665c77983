//! Requests to a storage account: signed whole with its key, or carrying a signature that gives a part of it away.

use http::HeaderMap;
use jiff::Timestamp as Instant;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::clock::Timestamp;
use crate::limits;
use crate::sas::signatures::Refusal;
use crate::sas::signatures::Rights;
use crate::sas::signatures::Signatures;

/// The headers whose values are signed, in this order. The date of HTTP is not, where the account's own is sent.
const SIGNED_HEADERS: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// The version from which on signatures for a whole account have one line more.
const ENCRYPTION_SCOPE_SINCE: &str = "2020-12-06";

/// A request as it is signed.
pub(crate) struct StorageRequest<'a> {
    pub(crate) method: &'a str,
    /// The path as it came.
    pub(crate) path: &'a str,
    /// Account and queue, decoded.
    pub(crate) account: &'a str,
    pub(crate) queue: Option<&'a str>,
    /// The fields of the query, decoded.
    pub(crate) query: &'a [(String, String)],
    pub(crate) headers: &'a HeaderMap,
}

/// What a request is about, as signatures for an account name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Service,
    Queue,
    Message,
}

/// What the signature of a request allows.
#[derive(Clone, Debug)]
pub(crate) struct StorageRights {
    pub(crate) rights: Rights,
    /// Permissions and scopes, one letter each; everything the key may, when it signed the request itself.
    part: Option<(String, String)>,
}

impl StorageRights {
    /// Whether it gives one of these permissions for something of this scope.
    pub(crate) fn gives(&self, permissions: &str, scope: Scope) -> bool {
        let Some((given, scopes)) = &self.part else { return true };
        let letter = match scope {
            Scope::Service => 's',
            Scope::Queue => 'c',
            Scope::Message => 'o',
        };
        scopes.contains(letter) && permissions.chars().any(|permission| given.contains(permission))
    }

    /// Whether the key itself signed, as what no signature can give away demands.
    pub(crate) fn is_whole(&self) -> bool {
        self.part.is_none()
    }
}

impl StorageRequest<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
    }

    /// Whether it shows any signature.
    pub(crate) fn is_signed(&self) -> bool {
        self.headers.contains_key("authorization") || self.field("sig").is_some()
    }

    /// What is signed with the account's key.
    fn signed(&self) -> String {
        let mut text = format!("{}\n", self.method);
        for name in SIGNED_HEADERS {
            let value = match (name, self.header(name)) {
                ("content-length", "0") => "",
                ("date", _) if self.headers.contains_key("x-ms-date") => "",
                (_, value) => value,
            };
            text.push_str(value);
            text.push('\n');
        }
        let mut own: Vec<&str> = self.headers.keys().map(http::HeaderName::as_str).collect();
        own.retain(|name| name.starts_with("x-ms-"));
        own.sort_unstable();
        for name in own {
            text.push_str(&format!("{name}:{}\n", self.header(name)));
        }
        text.push_str(&format!("/{}{}", self.account.trim_end_matches("-secondary"), self.path));
        let mut fields: Vec<(String, &str)> =
            self.query.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str())).collect();
        fields.sort_unstable();
        for (name, value) in fields {
            text.push_str(&format!("\n{name}:{value}"));
        }
        text
    }

    /// What is signed of a signature that gives away a part of one queue.
    fn signed_for_queue(&self, queue: &str) -> String {
        let field = |name| self.field(name).unwrap_or_default();
        let account = self.account;
        let resource = format!("/queue/{account}/{queue}");
        let [permissions, start, expiry] = ["sp", "st", "se"].map(field);
        let [policy, address, protocol, version] = ["si", "sip", "spr", "sv"].map(field);
        [permissions, start, expiry, &resource, policy, address, protocol, version].join("\n")
    }

    /// What is signed of a signature that gives away a part of the account.
    fn signed_for_account(&self) -> String {
        let mut text = format!("{}\n", self.account);
        for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
            text.push_str(self.field(name).unwrap_or_default());
            text.push('\n');
        }
        if self.field("sv").is_some_and(|version| version >= ENCRYPTION_SCOPE_SINCE) {
            text.push('\n');
        }
        text
    }
}

impl Signatures {
    /// Checks what a request shows: the signature of its account's key, or one that the key has made.
    pub(crate) fn check_storage(
        &self,
        request: &StorageRequest<'_>,
        now: Timestamp,
    ) -> Result<StorageRights, Refusal> {
        match request.headers.contains_key("authorization") {
            true => self.check_shared_key(request, now),
            false => self.check_part(request, now),
        }
    }

    fn check_shared_key(
        &self,
        request: &StorageRequest<'_>,
        now: Timestamp,
    ) -> Result<StorageRights, Refusal> {
        let shown = request.header("authorization");
        let (account, signature) = shown
            .strip_prefix("SharedKey ")
            .and_then(|shown| shown.split_once(':'))
            .ok_or(Refusal::Malformed)?;
        if account != request.account.trim_end_matches("-secondary") {
            return Err(Refusal::Elsewhere);
        }
        let (key, secret) = self.signing(account).ok_or(Refusal::Unknown)?;
        if !secret.has_signed_for_storage(&request.signed(), signature) {
            return Err(Refusal::Unknown);
        }
        let date = match request.header("x-ms-date") {
            "" => request.header("date"),
            date => date,
        };
        let date = DateTimeParser::new().parse_timestamp(date).map_err(|_| Refusal::Malformed)?;
        let date = millis(date);
        // Whoever overhears a request could repeat it for ever otherwise.
        if date + limits::REQUEST_AGE_MAX < now || now + limits::REQUEST_AGE_MAX < date {
            return Err(Refusal::Expired);
        }
        let until = date + limits::REQUEST_AGE_MAX;
        Ok(StorageRights { rights: Rights::new(key.clone(), until), part: None })
    }

    fn check_part(&self, request: &StorageRequest<'_>, now: Timestamp) -> Result<StorageRights, Refusal> {
        let (Some(signature), Some(expiry), Some(permissions)) =
            (request.field("sig"), request.field("se"), request.field("sp"))
        else {
            return Err(Refusal::Malformed);
        };
        let (key, secret) = self.signing(request.account).ok_or(Refusal::Unknown)?;
        let (signed, scopes) = match (request.field("srt"), request.queue) {
            (Some(scopes), _) => (request.signed_for_account(), scopes),
            (None, Some(queue)) => (request.signed_for_queue(queue), "co"),
            (None, None) => return Err(Refusal::Elsewhere),
        };
        if !secret.has_signed_for_storage(&signed, signature) {
            return Err(Refusal::Unknown);
        }
        // Stored policies and addresses are not kept here; what they limit must not be given away whole.
        if request.field("si").is_some() || request.field("sip").is_some() {
            return Err(Refusal::Malformed);
        }
        if request.field("ss").is_some_and(|services| !services.contains('q')) {
            return Err(Refusal::Elsewhere);
        }
        let until = instant(expiry)?;
        let begins = request.field("st").filter(|start| !start.is_empty()).map(instant).transpose()?;
        if until <= now || begins.is_some_and(|begins| now < begins) {
            return Err(Refusal::Expired);
        }
        let part = Some((permissions.to_owned(), scopes.to_owned()));
        Ok(StorageRights { rights: Rights::new(key.clone(), until), part })
    }
}

fn instant(text: &str) -> Result<Timestamp, Refusal> {
    let whole = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    let instant: Instant = whole.parse().map_err(|_| Refusal::Malformed)?;
    Ok(millis(instant))
}

fn millis(instant: Instant) -> Timestamp {
    Timestamp::from_millis(u64::try_from(instant.as_millisecond()).unwrap_or_default())
}
