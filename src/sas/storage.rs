//! Requests to a storage account: signed whole with its key, or carrying a signature that gives a part of it away.

use std::net::IpAddr;

use http::HeaderMap;
use jiff::Timestamp as Instant;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::clock::Timestamp;
use crate::limits;
use crate::sas::refusal::SignatureRefusal;
use crate::sas::shared_access::SharedAccess;
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

/// The same where less is signed.
const SIGNED_HEADERS_LITE: [&str; 3] = ["content-md5", "content-type", "date"];

/// What the name of an account ends with in the paths of its secondary endpoint.
const SECONDARY: &str = "-secondary";

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
enum Scheme {
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

/// A signature that a key has made.
#[derive(Clone, Debug)]
pub(crate) enum StorageSignature {
    /// The key signed the request itself.
    Whole(StorageRights),
    /// It gave a part away to who asks.
    Part(SharedAccess),
}

impl StorageRights {
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

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
    }

    /// Whether it shows any signature.
    pub(crate) fn is_signed(&self) -> bool {
        self.headers.contains_key("authorization") || self.field("sig").is_some()
    }

    /// What is signed with the account's key, below a path.
    fn signed(&self, scheme: Scheme, account: &str, path: &str) -> String {
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
    fn paths(&self, account: &str) -> Vec<String> {
        let mut paths = vec![self.path.to_owned()];
        if let Some(rest) = self.path.trim_start_matches('/').strip_prefix(self.account)
            && account != self.account
        {
            paths.push(format!("/{account}{rest}"));
        }
        paths
    }

    /// What is signed of a signature that gives away a part of one queue.
    fn signed_for_queue(&self, account: &str, queue: &str) -> String {
        let field = |name| self.field(name).unwrap_or_default();
        let resource = format!("/queue/{account}/{queue}");
        let [permissions, start, expiry] = ["sp", "st", "se"].map(field);
        let [policy, address, protocol, version] = ["si", "sip", "spr", "sv"].map(field);
        [permissions, start, expiry, &resource, policy, address, protocol, version].join("\n")
    }

    /// What is signed of a signature that gives away a part of the account.
    fn signed_for_account(&self, account: &str) -> String {
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

impl Signatures {
    /// The account that the first part of a path names: itself, or the one whose secondary endpoint it is.
    pub(crate) fn account<'a>(&self, named: &'a str) -> &'a str {
        match named.strip_suffix(SECONDARY) {
            Some(account) if self.signing(named).is_none() => account,
            _ => named,
        }
    }

    /// Checks what a request shows: the signature of its account's key, or one that the key has made.
    pub(crate) fn check_storage(
        &self,
        request: &StorageRequest<'_>,
        now: Timestamp,
    ) -> Result<StorageSignature, SignatureRefusal> {
        match request.headers.contains_key("authorization") {
            true => self.check_shared_key(request, now).map(StorageSignature::Whole),
            false => self.check_part(request).map(StorageSignature::Part),
        }
    }

    fn check_shared_key(
        &self,
        request: &StorageRequest<'_>,
        now: Timestamp,
    ) -> Result<StorageRights, SignatureRefusal> {
        let (scheme, shown) =
            request.header("authorization").split_once(' ').ok_or(SignatureRefusal::Malformed)?;
        let scheme = match scheme {
            "SharedKey" => Scheme::SharedKey,
            "SharedKeyLite" => Scheme::SharedKeyLite,
            _ => return Err(SignatureRefusal::Malformed),
        };
        let (account, signature) = shown.split_once(':').ok_or(SignatureRefusal::Malformed)?;
        if account != self.account(request.account) {
            return Err(SignatureRefusal::Elsewhere);
        }
        let (key, secret) = self.signing(account).ok_or(SignatureRefusal::Unknown)?;
        let is_signed =
            |path: &String| secret.has_signed_for_storage(&request.signed(scheme, account, path), signature);
        if !request.paths(account).iter().any(is_signed) {
            return Err(SignatureRefusal::Unknown);
        }
        let date = match request.header("x-ms-date") {
            "" => request.header("date"),
            date => date,
        };
        let date = DateTimeParser::new().parse_timestamp(date).map_err(|_| SignatureRefusal::Malformed)?;
        let date = millis(date);
        // Whoever overhears a request could repeat it for ever otherwise.
        if date + limits::REQUEST_AGE_MAX < now || now + limits::REQUEST_AGE_MAX < date {
            return Err(SignatureRefusal::Expired);
        }
        let until = date + limits::REQUEST_AGE_MAX;
        Ok(StorageRights { rights: Rights::new(key.clone(), until), part: None })
    }

    fn check_part(&self, request: &StorageRequest<'_>) -> Result<SharedAccess, SignatureRefusal> {
        let signature = request.field("sig").ok_or(SignatureRefusal::Malformed)?;
        let account = self.account(request.account);
        let (key, secret) = self.signing(account).ok_or(SignatureRefusal::Unknown)?;
        let (signed, scopes) = match (request.field("srt"), request.queue) {
            (Some(scopes), _) => (request.signed_for_account(account), scopes),
            (None, Some(queue)) => (request.signed_for_queue(account, queue), "co"),
            (None, None) => return Err(SignatureRefusal::Elsewhere),
        };
        match secret.has_signed_for_storage(&signed, signature) {
            true => SharedAccess::read(request, key, scopes),
            false => Err(SignatureRefusal::Unknown),
        }
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

fn millis(instant: Instant) -> Timestamp {
    Timestamp::from_millis(u64::try_from(instant.as_millisecond()).unwrap_or_default())
}
