//! Requests to a storage account, and what of them is signed.

use std::net::IpAddr;

use http::HeaderMap;
use jiff::Timestamp as Instant;

use crate::clock::Timestamp;
use crate::sas::refusal::SignatureRefusal;
use crate::sas::signatures::Rights;

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

/// The same where less is signed.
const SIGNED_HEADERS_LITE: [&str; 3] = ["content-md5", "content-type", "date"];

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
    /// Whether nobody else can read it.
    pub(crate) over_tls: bool,
    /// The address it came from, if it came over the network.
    pub(crate) peer: Option<IpAddr>,
}

/// How much of a request its account's key has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    SharedKey,
    SharedKeyLite,
}

/// What a request is about, as signatures for an account name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureScope {
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
    /// All that a key may, which has signed the request itself.
    pub(crate) fn of_whole(rights: Rights) -> StorageRights {
        StorageRights { rights, part: None }
    }

    /// What a signature gives that gives a part away.
    pub(crate) fn of_part(rights: Rights, permissions: String, scopes: String) -> StorageRights {
        StorageRights { rights, part: Some((permissions, scopes)) }
    }

    /// Whether it gives one of these permissions for something of this scope.
    pub(crate) fn gives(&self, permissions: &str, scope: SignatureScope) -> bool {
        let Some((given, scopes)) = &self.part else { return true };
        let character = match scope {
            SignatureScope::Service => 's',
            SignatureScope::Queue => 'c',
            SignatureScope::Message => 'o',
        };
        scopes.contains(character) && permissions.chars().any(|permission| given.contains(permission))
    }

    /// Whether the key itself signed, as what no signature can give away demands.
    pub(crate) fn is_whole(&self) -> bool {
        self.part.is_none()
    }
}

impl StorageRequest<'_> {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
    }

    /// Whether it shows any signature.
    pub(crate) fn is_signed(&self) -> bool {
        self.headers.contains_key("authorization") || self.field("sig").is_some()
    }

    /// What is signed with the account's key, below a path.
    pub(crate) fn signed(&self, scheme: Scheme, account: &str, path: &str) -> String {
        let names = match scheme {
            Scheme::SharedKey => &SIGNED_HEADERS[..],
            Scheme::SharedKeyLite => &SIGNED_HEADERS_LITE[..],
        };
        let mut text = format!("{}\n", self.method);
        for &name in names {
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
        text.push_str(&format!("/{account}{path}"));
        match scheme {
            Scheme::SharedKey => text.push_str(&self.signed_fields()),
            Scheme::SharedKeyLite => {
                text.push_str(&self.field("comp").map_or_else(String::new, |comp| format!("?comp={comp}")));
            }
        }
        text
    }

    fn signed_fields(&self) -> String {
        let mut fields: Vec<(String, &str)> =
            self.query.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str())).collect();
        fields.sort_unstable();
        fields.into_iter().map(|(name, value)| format!("\n{name}:{value}")).collect()
    }

    /// The paths that may have been signed: as it came, and for the secondary endpoint that of the primary one. There are SDKs
    /// of either kind.
    pub(crate) fn paths(&self, account: &str) -> Vec<String> {
        let mut paths = vec![self.path.to_owned()];
        if let Some(rest) = self.path.trim_start_matches('/').strip_prefix(self.account)
            && account != self.account
        {
            paths.push(format!("/{account}{rest}"));
        }
        paths
    }

    /// What is signed of a signature that gives away a part of one queue.
    pub(crate) fn signed_for_queue(&self, account: &str, queue: &str) -> String {
        let field = |name| self.field(name).unwrap_or_default();
        let resource = format!("/queue/{account}/{queue}");
        let [permissions, start, expiry] = ["sp", "st", "se"].map(field);
        let [policy, address, protocol, version] = ["si", "sip", "spr", "sv"].map(field);
        [permissions, start, expiry, &resource, policy, address, protocol, version].join("\n")
    }

    /// What is signed of a signature that gives away a part of the account.
    pub(crate) fn signed_for_account(&self, account: &str) -> String {
        let mut text = format!("{account}\n");
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

/// An instant as signatures and policies write it: a day, or a time of it.
pub(crate) fn parse_instant(text: &str) -> Result<Instant, SignatureRefusal> {
    let whole = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    whole.parse().map_err(|_| SignatureRefusal::Malformed)
}

/// The same, as time is counted here.
pub(crate) fn read_instant(text: &str) -> Result<Timestamp, SignatureRefusal> {
    parse_instant(text).map(millis)
}

pub(crate) fn millis(instant: Instant) -> Timestamp {
    Timestamp::from_millis(u64::try_from(instant.as_millisecond()).unwrap_or_default())
}
