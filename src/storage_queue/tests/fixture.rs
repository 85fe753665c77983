//! A server with this endpoint, asked without a network.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use http::Request;
use http::Response;
use http_body_util::BodyExt;
use sha2::Sha256;
use tower::ServiceExt;

use crate::engine::Engine;
use crate::id::QueueName;
use crate::inbound::connection::FromAddress;
use crate::inbound::connection::OverTls;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::live_value::LiveValue;
use crate::inbound::timeouts::Timeouts;
use crate::intake::Intake;
use crate::sas::Keys;
use crate::sas::Signatures;
use crate::storage_queue::meters::StorageMeters;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::route::router;
use crate::storage_queue::shared::StorageState as Shared;
use crate::testing::ManualClock;

/// The key of the account `shop`, as its text.
pub(crate) const KEY: &str = "c2VyaWF0aW0tdGVzdC1rZXktMDEyMzQ1Njc4OWFiY2RlZmdoaWo=";

/// An engine in memory with this endpoint.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    pub(crate) meters: StorageMeters,
    router: Router,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answered {
    pub(crate) fn code(&self) -> &str {
        self.headers.get("x-ms-error-code").map_or("", String::as_str)
    }

    /// The texts of all elements of a name.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let tag = format!("<{name}>");
        self.body.split(&tag).skip(1).map(|part| part.split("</").next().unwrap_or_default()).collect()
    }

    /// The text of the first element of a name, which may be empty.
    pub(crate) fn text(&self, name: &str) -> &str {
        if self.body.contains(&format!("<{name} />")) {
            return "";
        }
        self.texts(name).first().unwrap_or_else(|| panic!("{name} is in {self:?}"))
    }
}

impl Fixture {
    /// Without keys.
    pub(crate) async fn open() -> Fixture {
        Fixture::with(None).await
    }

    /// With one key, which may do what a line of a keys file says.
    pub(crate) async fn keyed(rights: &str) -> Fixture {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "[[key]]\nname = \"shop\"\nkey_env = \"K\"\n{rights}\n").unwrap();
        Fixture::with(Some(Keys::read(file.path(), |_| Some(KEY.to_owned())).unwrap())).await
    }

    async fn with(keys: Option<Keys>) -> Fixture {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        Fixture::on(engine, clock, keys).await
    }

    /// On an engine of its own.
    pub(crate) async fn on(engine: Engine, clock: ManualClock, keys: Option<Keys>) -> Fixture {
        RECORDS.open(engine.client()).await.unwrap();
        let meters = StorageMeters::default();
        let shared = Shared {
            intake: Intake::new(engine.client().clone()),
            keys: LiveValue::new(keys),
            everybodys: Signatures::of_everybody("shop", KEY),
            defined: Arc::new(|queue: &QueueName| {
                (queue.as_str() == "defined").then(|| "defined.toml".to_owned())
            }),
            reading: Arc::new(BodyLimits::new(1024 * 1024, Timeouts::default())),
            clock: Arc::new(clock.clone()),
            meters: meters.clone(),
            changing: Default::default(),
        };
        Fixture { engine, clock, meters, router: router(&Arc::new(shared)) }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Answered {
        self.ask_with(method, path, &[("host", "127.0.0.1:10001")], body).await
    }

    pub(crate) async fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.answer(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Asks over a connection with TLS.
    pub(crate) async fn ask_over_tls(&self, method: &str, path: &str, body: &str) -> Answered {
        let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:10001");
        self.answer(request.extension(OverTls).body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Asks from an address.
    pub(crate) async fn ask_from(&self, address: &str, method: &str, path: &str, body: &str) -> Answered {
        let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:10001");
        let from = FromAddress(address.parse().unwrap());
        self.answer(request.extension(from).body(Body::from(body.to_owned())).unwrap()).await
    }

    async fn answer(&self, request: Request<Body>) -> Answered {
        let response: Response<Body> = self.router.clone().oneshot(request).await.unwrap();
        let named = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        let (status, headers) = (response.status().as_u16(), response.headers().iter().map(named).collect());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answered { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// Makes a queue.
    pub(crate) async fn make(&self, name: &str) {
        assert_eq!(self.ask("PUT", &format!("/shop/{name}"), "").await.status, 201);
    }

    /// Puts a message.
    pub(crate) async fn put(&self, queue: &str, text: &str) -> Answered {
        self.ask("POST", &format!("/shop/{queue}/messages"), &message(text)).await
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// The body of a request with a message.
pub(crate) fn message(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

/// The fields of a signature that gives away a part of the queue `orders`, with the signature; those without a value are left out.
pub(crate) fn signed_fields(fields: &[(&str, &str)]) -> String {
    let value = |name| fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
    let [permissions, expiry, policy, addresses, protocols] = ["sp", "se", "si", "sip", "spr"].map(value);
    let text = format!(
        "{permissions}\n\n{expiry}\n/queue/shop/orders\n{policy}\n{addresses}\n{protocols}\n2021-12-02"
    );
    let signature = sign(&text).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let given = fields.iter().filter(|(_, value)| !value.is_empty());
    let given: String = given.map(|(name, value)| format!("&{name}={value}")).collect();
    format!("sv=2021-12-02{given}&sig={signature}")
}

/// A signature with the key.
pub(crate) fn sign(text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&BASE64.decode(KEY).unwrap()).unwrap();
    mac.update(text.as_bytes());
    BASE64.encode(mac.finalize().into_bytes())
}
