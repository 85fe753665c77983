//! Who may come in.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::net::UnixStream;

use crate::inbound::tls::TlsFiles;
use crate::queue::QueueOptions;
use crate::remote::Remote;
use crate::remote::RemoteOptions;
use crate::sas::Keys;
use crate::server::Server;
use crate::server::ServerError;
use crate::server::ServerOptions;
use crate::server::tests::fixture::FakeHost;
use crate::server::tests::fixture::FakePlace;
use crate::server::tests::fixture::Fixture;
use crate::tls_connector::tls_connector;

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/key.pem");
/// A certificate that may sign others, as `openssl req -x509` makes it if nothing else is said.
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/authority.pem");
const AUTHORITY_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/authority_key.pem");

/// A key as it may stand in the environment.
fn key(name: &str) -> String {
    format!("{name}-{}", "0123456789".repeat(5))
}

fn keys() -> Keys {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let entry = |name: &str, rights: &str, queues: &str| {
        format!(
            "[[key]]\nname = \"{name}\"\nkey_env = \"{name}\"\nrights = [{rights}]\nqueues = [{queues}]\n"
        )
    };
    let text = [
        entry("sender", "\"send\"", "\"orders\""),
        entry("listener", "\"listen\"", "\"orders\", \"eu.*\""),
        entry("owner", "\"manage\"", "\"orders\""),
        entry("europe", "\"manage\"", "\"eu.*\""),
        entry("root", "\"manage\"", "\"*\""),
    ];
    file.write_all(text.concat().as_bytes()).unwrap();
    Keys::read(file.path(), |name| Some(key(name))).unwrap()
}

/// What is wrong with a file of a queue that only the key `root` reaches.
const MISTAKE: &str = "others.toml:3:1: unknown key `ordr`";

async fn locked_fixture() -> Fixture {
    let fixture = Fixture::open_with(|options, host| {
        options.keys = Some(keys());
        host.reload_problem = Some(MISTAKE.to_owned());
    })
    .await;
    for name in ["orders", "others", "eu.orders"] {
        fixture.create(name, QueueOptions::default()).await;
    }
    fixture
}

/// The status a caller with a key is answered with.
async fn status(fixture: &Fixture, who: &str, method: &str, path: &str) -> u16 {
    let bearer = format!("Bearer {}", key(who));
    fixture.call(method, path, &[("authorization", &bearer)], "").await.status.as_u16()
}

#[tokio::test]
async fn without_a_key_only_health_is_told() {
    let fixture = locked_fixture().await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(fixture.get(path).await.status, 200, "{path}");
    }
    let refused = fixture.get("/v1/queues").await;
    assert_eq!((refused.status.as_u16(), refused.code()), (401, "unauthorized".to_owned()));
    assert!(refused.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
    for wrong in ["Bearer ", "Bearer wrong", "Basic abc", "x"] {
        let refused = fixture.call("GET", "/v1/queues", &[("authorization", wrong)], "").await;
        assert_eq!(refused.status, 401, "{wrong}");
    }
    assert_eq!(fixture.get("/metrics").await.status, 401);
}

#[tokio::test]
async fn a_key_allows_what_it_says_where_it_says() {
    let fixture = locked_fixture().await;
    let send = "/v1/queues/orders/messages";
    let receive = "/v1/queues/orders/receive";
    for (who, method, path, expected) in [
        ("sender", "POST", send, 201),
        ("sender", "POST", receive, 403),
        ("sender", "POST", "/v1/queues/others/messages", 403),
        ("sender", "GET", "/v1/queues", 403),
        ("listener", "POST", receive, 200),
        ("listener", "POST", send, 403),
        ("listener", "POST", "/v1/queues/eu.orders/receive", 200),
        ("listener", "DELETE", "/v1/queues/orders", 403),
        ("listener", "GET", "/v1/blocked", 200),
        ("listener", "GET", "/v1/blocked?queue=others", 403),
        ("listener", "GET", "/v1/events?queue=others", 403),
        ("listener", "POST", "/v1/backup", 403),
        ("listener", "GET", "/metrics", 403),
        ("owner", "POST", send, 201),
        ("owner", "POST", receive, 200),
        ("owner", "PUT", "/v1/queues/orders", 200),
        ("owner", "PUT", "/v1/queues/mine", 403),
        ("owner", "POST", "/v1/definitions/reload", 403),
        ("owner", "GET", "/v1/audit", 403),
        ("root", "PUT", "/v1/queues/any", 201),
        ("root", "POST", "/v1/definitions/reload", 200),
        ("root", "GET", "/metrics", 200),
    ] {
        assert_eq!(status(&fixture, who, method, path).await, expected, "{who} {method} {path}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_right_that_is_missing() {
    let fixture = locked_fixture().await;
    let bearer = format!("bearer {}", key("sender"));
    let refused = fixture.call("POST", "/v1/queues/orders/receive", &[("authorization", &bearer)], "").await;
    assert_eq!(refused.code(), "forbidden");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("`listen`") && detail.contains("orders") && detail.contains("sender"),
        "{detail}"
    );
}

#[tokio::test]
async fn a_listing_shows_only_what_the_key_reaches() {
    let fixture = locked_fixture().await;
    let bearer = format!("Bearer {}", key("listener"));
    let described = fixture.call("GET", "/v1/queues?limit=1", &[("authorization", &bearer)], "").await.json();
    assert_eq!(
        (&described["queues"][0]["name"], &described["after"]),
        (&json!("eu.orders"), &json!("eu.orders"))
    );
    let described =
        fixture.call("GET", "/v1/queues?after=eu.orders", &[("authorization", &bearer)], "").await.json();
    assert_eq!(described["queues"].as_array().unwrap().len(), 1);
    let described = fixture.call("GET", "/v1/definitions", &[("authorization", &bearer)], "").await.json();
    assert_eq!(described["definitions"], json!([]));
}

#[tokio::test]
async fn the_mistakes_of_definition_files_are_told_to_keys_that_reach_every_queue() {
    let fixture = locked_fixture().await;
    for (path, field) in [("/v1/status", "reload_problem"), ("/v1/definitions", "problem")] {
        for (who, told) in [("listener", json!(null)), ("owner", json!(null)), ("root", json!(MISTAKE))] {
            let bearer = format!("Bearer {}", key(who));
            let answered = fixture.call("GET", path, &[("authorization", &bearer)], "").await.json();
            assert_eq!(answered[field], told, "{who} {path}");
        }
    }
}

#[tokio::test]
async fn a_page_of_topics_is_full_of_what_the_key_reaches() {
    let fixture = locked_fixture().await;
    for name in ["a.prices", "b.prices", "eu.prices", "us.prices"] {
        fixture.engine.client().create_topic(name).await.unwrap();
    }
    let bearer = format!("Bearer {}", key("listener"));
    let headers = [("authorization", bearer.as_str())];
    let page = fixture.call("GET", "/v1/topics?limit=1", &headers, "").await.json();
    let first = (&page["topics"][0]["name"], &page["after"]);
    assert_eq!(first, (&json!("eu.prices"), &json!("eu.prices")), "{page}");
    let rest = fixture.call("GET", "/v1/topics?limit=1&after=eu.prices", &headers, "").await.json();
    assert_eq!(rest, json!({ "topics": [] }), "no name of another is told");
}

#[tokio::test]
async fn a_key_allows_what_it_says_with_topics_of_the_names_that_it_reaches() {
    let fixture = locked_fixture().await;
    assert_eq!(status(&fixture, "root", "PUT", "/v1/topics/us.prices").await, 201);
    for (method, rest, expected) in [
        ("PUT", "", 201),
        ("PUT", "/subscriptions/s", 201),
        ("PUT", "/subscriptions/s/rules/r", 201),
        ("DELETE", "/subscriptions/s/rules/r", 204),
        ("POST", "/messages", 201),
        ("GET", "", 200),
    ] {
        let path = |topic: &str| format!("/v1/topics/{topic}{rest}");
        assert_eq!(status(&fixture, "europe", method, &path("eu.prices")).await, expected, "{method} {rest}");
        assert_eq!(status(&fixture, "europe", method, &path("us.prices")).await, 403, "{method} {rest}");
    }
    for (who, method, path, expected) in [
        ("listener", "GET", "/v1/topics/eu.prices", 200),
        ("listener", "GET", "/v1/topics/us.prices", 403),
        ("listener", "POST", "/v1/topics/eu.prices/messages", 403),
        ("listener", "DELETE", "/v1/topics/eu.prices", 403),
        ("europe", "DELETE", "/v1/topics/us.prices", 403),
        ("europe", "DELETE", "/v1/topics/eu.prices", 204),
    ] {
        assert_eq!(status(&fixture, who, method, path).await, expected, "{who} {method} {path}");
    }
}

#[tokio::test]
async fn a_completion_sends_only_where_the_key_may_send() {
    let fixture = locked_fixture().await;
    fixture.engine.client().queue("orders").unwrap().send(crate::message::Message::new("x")).await.unwrap();
    let authorization = format!("Bearer {}", key("owner"));
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let received = fixture.call("POST", "/v1/queues/orders/receive", &headers, "").await.json();
    let id = received["deliveries"][0]["delivery"].as_str().unwrap();
    let path = format!("/v1/queues/orders/deliveries/{id}/complete");
    let sent = fixture.call("POST", &path, &headers, r#"{"send":[{"queue":"others"}]}"#).await;
    assert_eq!(sent.code(), "forbidden");
    assert_eq!(fixture.call("POST", &path, &headers, r#"{"send":[{"queue":"orders"}]}"#).await.status, 200);
}

#[tokio::test]
async fn without_keys_a_page_in_a_browser_gets_nothing() {
    let fixture = Fixture::open().await;
    let own = format!("http://{}", fixture.address);
    let refused = [
        ("origin", "http://example.com"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    for header in refused {
        let described = fixture.call("GET", "/v1/queues", &[header], "").await;
        assert_eq!(
            (described.status.as_u16(), described.code()),
            (403, "forbidden".to_owned()),
            "{header:?}"
        );
    }
    for host in ["example.com", "127.0.0.1.example.com:7700", "10.0.0.1"] {
        let described = fixture.call("GET", "/v1/queues", &[("host", host)], "").await;
        assert_eq!((described.status.as_u16(), described.code()), (421, "wrong_host".to_owned()), "{host}");
    }
    for header in [("origin", own.as_str()), ("sec-fetch-site", "same-origin"), ("host", "localhost:1")] {
        assert_eq!(fixture.call("GET", "/v1/queues", &[header], "").await.status, 200, "{header:?}");
    }
}

#[tokio::test]
async fn an_address_others_can_reach_needs_keys_and_tls() {
    let fixture = Fixture::open().await;
    let bind = async |keys: bool, tls: bool| {
        let mut options = ServerOptions::new(SocketAddr::from(([0, 0, 0, 0], 0)));
        options.keys = keys.then(self::keys);
        options.tls = tls.then(tls_files);
        let (place, host) = (Arc::new(FakePlace), Arc::new(FakeHost::default()));
        Server::bind(options, fixture.engine.client().clone(), place, host).await
    };
    for (keys, tls) in [(false, false), (true, false), (false, true)] {
        let error = bind(keys, tls).await.err().unwrap();
        assert!(matches!(error, ServerError::Unprotected(_)));
        assert!(error.to_string().contains("keys file"), "{error}");
    }
    assert!(bind(true, true).await.is_ok());
}

#[tokio::test]
async fn keys_are_changed_while_the_server_runs() {
    let (engine, _clock) = crate::testing::engine().await.unwrap();
    let mut options = ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.keys = Some(keys());
    let (place, host) = (Arc::new(FakePlace), Arc::new(FakeHost::default()));
    let server = Server::bind(options, engine.client().clone(), place, host).await.unwrap();
    let (address, credential_reloader) = (server.address(), server.credential_reloader());
    tokio::spawn(server.run(Default::default()));
    let ask = async || {
        let request = Request::get("/v1/queues").header("host", "localhost").body(Full::default());
        crate::server::tests::fixture::ask(address, request.unwrap()).await.status
    };
    assert_eq!(ask().await, 401);
    credential_reloader.change(None, None).unwrap();
    assert_eq!(ask().await, 200);
    let wrong = TlsFiles { certificate: KEY.into(), ..tls_files() };
    assert!(credential_reloader.change(Some(keys()), Some(&wrong)).is_err());
    assert_eq!(ask().await, 200, "what cannot be used changes nothing");
    credential_reloader.change(Some(keys()), None).unwrap();
    assert_eq!(ask().await, 401);
}

fn tls_files() -> TlsFiles {
    TlsFiles { certificate: CERTIFICATE.into(), key: KEY.into(), client_ca: None }
}

#[tokio::test]
async fn with_tls_the_same_is_said_unheard() {
    let fixture = Fixture::open_with(|options, _| options.tls = Some(tls_files())).await;
    let tls = tls_connector(Some(CERTIFICATE.as_ref())).unwrap();
    let stream = TcpStream::connect(fixture.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = tls.connect(name, stream).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/healthz").header("host", "localhost").body(Full::new(Bytes::new()));
    assert_eq!(sender.send_request(request.unwrap()).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_client_is_told_what_is_wrong_with_the_certificate_of_a_server() {
    let refused = async |files: TlsFiles, roots: &str| {
        let fixture = Fixture::open_with(|options, _| options.tls = Some(files)).await;
        let options = RemoteOptions { ca_file: Some(roots.into()) };
        let url = format!("https://localhost:{}", fixture.address.port());
        let remote = Remote::connect_with(&url, None, &options).unwrap();
        remote.status().await.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let authority = TlsFiles { certificate: AUTHORITY.into(), key: AUTHORITY_KEY.into(), client_ca: None };
    let text = refused(authority, AUTHORITY).await;
    assert!(text.contains("peer certificate") && text.contains("CA:FALSE"), "{text}");
    let text = refused(tls_files(), AUTHORITY).await;
    assert!(text.contains("peer certificate") && text.contains("--ca-file"), "{text}");
    assert_eq!(refused(tls_files(), CERTIFICATE).await, "");
}

#[test]
fn files_that_are_no_certificate_say_which_is_wrong() {
    let wrong = |certificate: &str, key: &str| {
        let files = TlsFiles { certificate: certificate.into(), key: key.into(), client_ca: None };
        files.read().unwrap_err().to_string()
    };
    assert!(wrong("/nowhere.pem", KEY).contains("/nowhere.pem"));
    assert!(wrong(KEY, KEY).contains("key.pem"), "{}", wrong(KEY, KEY));
    assert!(wrong(CERTIFICATE, CERTIFICATE).contains("certificate.pem"));
}

#[tokio::test]
async fn the_socket_in_the_file_system_is_for_its_owner_and_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seriatim.sock");
    let fixture = Fixture::open_with(|options, _| options.socket = Some(path.clone())).await;
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let stream = UnixStream::connect(&path).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/v1/queues").header("host", "seriatim").body(Full::new(Bytes::new()));
    let response = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap();
    drop(sender);
    fixture.stopping.cancel();
    fixture.ended.await.unwrap();
    assert!(!path.exists());
}
