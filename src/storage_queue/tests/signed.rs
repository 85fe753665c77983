//! Who may ask.

use crate::clock::Clock;
use crate::storage_queue::tests::fixture::Answered;
use crate::storage_queue::tests::fixture::Fixture;
use crate::storage_queue::tests::fixture::message;
use crate::storage_queue::tests::fixture::sign;
use crate::storage_queue::tests::fixture::signed_fields;
use crate::storage_queue::times::date;

pub(crate) const MANAGE: &str = "rights = [\"manage\"]";

/// An instant so many seconds from now, as headers have it.
fn date_of(fixture: &Fixture, later: i64) -> String {
    let now = fixture.clock.now().as_millis().cast_signed() + later * 1_000;
    date(crate::clock::Timestamp::from_millis(now.cast_unsigned()))
}

/// Asks with the signature of the whole request, made with a date so many seconds from now.
pub(crate) async fn ask_signed(
    fixture: &Fixture,
    method: &str,
    path: &str,
    body: &str,
    later: i64,
) -> Answered {
    let date = date_of(fixture, later);
    let length = if body.is_empty() { String::new() } else { body.len().to_string() };
    let (bare, fields) = path.split_once('?').unwrap_or((path, ""));
    let mut fields: Vec<String> = fields.split('&').map(|field| field.replacen('=', ":", 1)).collect();
    fields.sort();
    let fields: String =
        fields.iter().filter(|field| !field.is_empty()).map(|field| format!("\n{field}")).collect();
    let text = format!(
        "{method}\n\n\n{length}\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-12-02\n/shop{bare}{fields}"
    );
    let authorization = format!("SharedKey shop:{}", sign(&text));
    let headers = [
        ("host", "127.0.0.1:10001"),
        ("x-ms-version", "2021-12-02"),
        ("x-ms-date", date.as_str()),
        ("content-length", length.as_str()),
        ("authorization", authorization.as_str()),
    ];
    let headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    fixture.ask_with(method, path, &headers, body).await
}

/// The fields of a signature that gives away a part of one queue.
fn part(permissions: &str, expiry: &str) -> String {
    signed_fields(&[("sp", permissions), ("se", expiry)])
}

/// The same of one that is for some protocols only.
fn part_for(protocols: &str) -> String {
    signed_fields(&[("sp", "a"), ("se", LATER), ("spr", protocols)])
}

/// Asks for something with a signature of another scheme or path than the request has.
async fn ask_signed_as(fixture: &Fixture, path: &str, text: &str, scheme: &str) -> Answered {
    let authorization = format!("{scheme} shop:{}", sign(text));
    let date = date_of(fixture, 0);
    let headers = [
        ("host", "queue.example.org"),
        ("x-ms-date", date.as_str()),
        ("authorization", authorization.as_str()),
    ];
    fixture.ask_with("GET", path, &headers, "").await
}

/// A day after every instant that a server's clock shows.
pub(crate) const LATER: &str = "2100-01-01T00:00:00Z";

#[tokio::test]
async fn with_keys_every_request_is_signed() {
    let fixture = Fixture::keyed(MANAGE).await;
    let refused = fixture.ask("GET", "/shop?comp=list", "").await;
    assert_eq!((refused.status, refused.code()), (403, "NoAuthenticationInformation"));
    assert_eq!(ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await.status, 201);
    assert_eq!(ask_signed(&fixture, "GET", "/shop?comp=list", "", 0).await.texts("Name"), ["orders"]);
    let put = ask_signed(&fixture, "POST", "/shop/orders/messages", &message("a"), 0).await;
    assert_eq!(put.status, 201);
    let audit = fixture.engine.client().audit(0, 10).await.unwrap();
    assert_eq!(audit[0].actor, "shop", "who made the queue is written down");
}

#[tokio::test]
async fn a_signature_is_for_one_request_and_a_limited_time() {
    let fixture = Fixture::keyed(MANAGE).await;
    for late in [-901, 901] {
        assert_eq!(
            ask_signed(&fixture, "PUT", "/shop/orders", "", late).await.code(),
            "AuthenticationFailed"
        );
    }
    let authorization = format!("SharedKey shop:{}", sign("another"));
    let headers = [("authorization", authorization.as_str()), ("x-ms-date", "Sun, 06 Nov 1994 08:49:37 GMT")];
    assert_eq!(fixture.ask_with("PUT", "/shop/orders", &headers, "").await.code(), "AuthenticationFailed");
    for wrong in ["SharedKey shop", "SharedKey other:x", "Bearer x", "SharedKey shop:?"] {
        let refused = fixture.ask_with("PUT", "/shop/orders", &[("authorization", wrong)], "").await;
        assert_eq!(refused.code(), "AuthenticationFailed", "{wrong}");
    }
}

#[tokio::test]
async fn a_part_that_was_given_away_allows_that_part() {
    let fixture = Fixture::keyed(MANAGE).await;
    ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await;
    ask_signed(&fixture, "PUT", "/shop/other", "", 0).await;
    let (add, read) = (part("a", LATER), part("r", LATER));
    let put = fixture.ask("POST", &format!("/shop/orders/messages?{add}"), &message("a")).await;
    assert_eq!(put.status, 201, "{put:?}");
    let peek = fixture.ask("GET", &format!("/shop/orders/messages?peekonly=true&{read}"), "").await;
    assert_eq!(peek.status, 200);
    for (method, path) in [
        ("GET", format!("/shop/orders/messages?{read}")),
        ("POST", format!("/shop/orders/messages?{read}")),
        ("PUT", format!("/shop/orders?{add}")),
        ("GET", format!("/shop/orders?comp=acl&{read}")),
    ] {
        assert_eq!(fixture.ask(method, &path, "").await.code(), "AuthorizationPermissionMismatch", "{path}");
    }
    for path in [
        format!("/shop/other/messages?{add}"),
        format!("/shop/orders/messages?{}", add.replace("sp=a", "sp=apru")),
        format!("/shop/orders/messages?{}", part("a", "1970-01-01")),
        format!("/shop/orders/messages?si=policy&{add}"),
    ] {
        assert_eq!(fixture.ask("POST", &path, &message("a")).await.code(), "AuthenticationFailed", "{path}");
    }
}

#[tokio::test]
async fn a_key_allows_what_its_file_says() {
    let fixture = Fixture::keyed("rights = [\"send\"]\nqueues = [\"orders\"]").await;
    fixture.engine.client().create_queue("orders", Default::default()).await.unwrap();
    fixture.engine.client().create_queue("other", Default::default()).await.unwrap();
    assert_eq!(ask_signed(&fixture, "POST", "/shop/orders/messages", &message("a"), 0).await.status, 201);
    for (method, path) in
        [("POST", "/shop/other/messages"), ("GET", "/shop/orders/messages"), ("PUT", "/shop/orders")]
    {
        assert_eq!(
            ask_signed(&fixture, method, path, &message("a"), 0).await.code(),
            "AuthorizationFailure",
            "{path}"
        );
    }
}

#[tokio::test]
async fn only_a_key_that_may_listen_is_told_of_queues_and_of_the_service() {
    let service = [
        "/shop?comp=list",
        "/shop?comp=list&include=metadata",
        "/shop?comp=properties&restype=service",
        "/shop?comp=stats&restype=service",
    ];
    for (right, may_listen) in [("send", false), ("listen", true)] {
        let fixture = Fixture::keyed(&format!("rights = [\"{right}\"]\nqueues = [\"orders\"]")).await;
        fixture.engine.client().create_queue("orders", Default::default()).await.unwrap();
        fixture.engine.client().create_queue("other", Default::default()).await.unwrap();
        for path in service {
            let answered = ask_signed(&fixture, "GET", path, "", 0).await;
            match may_listen {
                true => assert_eq!(answered.status, 200, "{path}: {answered:?}"),
                false => {
                    assert_eq!((answered.status, answered.code()), (403, "AuthorizationFailure"), "{path}")
                }
            }
        }
        if may_listen {
            assert_eq!(ask_signed(&fixture, "GET", "/shop?comp=list", "", 0).await.texts("Name"), ["orders"]);
        }
    }
}

#[tokio::test]
async fn without_keys_no_web_page_may_ask_and_a_wrong_signature_is_no_use() {
    let fixture = Fixture::open().await;
    for headers in [
        &[("host", "queue.example.org")][..],
        &[("host", "localhost"), ("origin", "https://example.org")],
        &[("host", "localhost"), ("authorization", "SharedKey shop:x")],
    ] {
        let refused = fixture.ask_with("PUT", "/shop/orders", headers, "").await;
        assert_eq!((refused.status, refused.code()), (403, "AuthenticationFailed"), "{headers:?}");
    }
    assert_eq!(ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await.status, 201);
}

#[tokio::test]
async fn a_signature_that_everybody_can_make_lets_no_web_page_in_but_by_a_rule() {
    let fixture = Fixture::open().await;
    fixture.make("orders").await;
    let messages = format!("/shop/orders/messages?{}", part("ap", LATER));
    let foreign = [
        [("host", "127.0.0.1:10001"), ("sec-fetch-site", "cross-site")],
        [("host", "127.0.0.1:10001"), ("origin", "https://example.org")],
        [("host", "evil.example"), ("sec-fetch-site", "same-origin")],
    ];
    for (method, body) in [("GET", String::new()), ("POST", message("a"))] {
        for headers in &foreign {
            let refused = fixture.ask_with(method, &messages, headers, &body).await;
            assert_eq!(
                (refused.status, refused.code()),
                (403, "AuthenticationFailed"),
                "{method} {headers:?}"
            );
        }
        assert!(fixture.ask(method, &messages, &body).await.status < 300, "a program may: {method}");
    }
    let rules = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://example.org</AllowedOrigins>\
        <AllowedMethods>GET</AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>1</MaxAgeInSeconds>\
        </CorsRule></Cors></StorageServiceProperties>";
    let set = fixture.ask("PUT", "/shop?restype=service&comp=properties", rules).await;
    assert_eq!(set.status, 202, "{set:?}");
    let page = &foreign[1];
    assert_eq!(fixture.ask_with("GET", &messages, page, "").await.status, 200);
    assert_eq!(fixture.ask_with("POST", &messages, page, &message("a")).await.status, 403);
    let unsigned = fixture.ask_with("GET", "/shop/orders/messages", page, "").await;
    assert_eq!(unsigned.status, 403);
}

#[tokio::test]
async fn a_signature_for_https_only_is_no_use_over_http() {
    let fixture = Fixture::keyed(MANAGE).await;
    ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await;
    let path = format!("/shop/orders/messages?{}", part_for("https"));
    let refused = fixture.ask("POST", &path, &message("a")).await;
    assert_eq!((refused.status, refused.code()), (403, "AuthorizationProtocolMismatch"));
    assert_eq!(fixture.ask_over_tls("POST", &path, &message("a")).await.status, 201);
    let either = format!("/shop/orders/messages?{}", part_for("https,http"));
    assert_eq!(fixture.ask("POST", &either, &message("a")).await.status, 201);
    let altered = path.replace("spr=https", "spr=https,http");
    assert_eq!(fixture.ask("POST", &altered, &message("a")).await.code(), "AuthenticationFailed");
}

/// A signature that is for some addresses only.
fn part_from(addresses: &str) -> String {
    format!("/shop/orders/messages?{}", signed_fields(&[("sp", "a"), ("se", LATER), ("sip", addresses)]))
}

#[tokio::test]
async fn a_signature_for_some_addresses_is_no_use_from_others() {
    let fixture = Fixture::keyed(MANAGE).await;
    ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await;
    let put = async |from: &str, path: &str| fixture.ask_from(from, "POST", path, &message("a")).await;
    let (one, range) = (part_from("168.1.5.65"), part_from("168.1.5.60-168.1.5.70"));
    assert_eq!(put("168.1.5.65", &one).await.status, 201);
    assert_eq!(put("::ffff:168.1.5.65", &one).await.status, 201);
    for (from, path) in [("168.1.5.66", &one), ("168.1.5.71", &range), ("::1", &range)] {
        let refused = put(from, path).await;
        assert_eq!((refused.status, refused.code()), (403, "AuthorizationSourceIPMismatch"), "{from}");
    }
    assert_eq!(put("168.1.5.70", &range).await.status, 201);
    assert_eq!(fixture.ask("POST", &one, &message("a")).await.code(), "AuthorizationSourceIPMismatch");
    assert_eq!(put("1.2.3.4", &part_from("1.2.3.0/24")).await.code(), "AuthenticationFailed");
}

#[tokio::test]
async fn a_request_may_be_signed_by_the_lighter_scheme() {
    let fixture = Fixture::keyed(MANAGE).await;
    ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await;
    let head = format!("GET\n\n\n\nx-ms-date:{}\n/shop", date_of(&fixture, 0));
    let (metadata, peek) = ("/shop/orders?comp=metadata", "/shop/orders/messages?peekonly=true");
    let described = ask_signed_as(&fixture, metadata, &format!("{head}{metadata}"), "SharedKeyLite").await;
    assert_eq!(described.status, 200, "{described:?}");
    let peeked =
        ask_signed_as(&fixture, peek, &format!("{head}/shop/orders/messages"), "SharedKeyLite").await;
    assert_eq!(peeked.status, 200, "of the fields only comp is signed: {peeked:?}");
    for (scheme, text) in
        [("SharedKeyLite", format!("{head}/shop/orders")), ("SharedKey", format!("{head}{metadata}"))]
    {
        let refused = ask_signed_as(&fixture, metadata, &text, scheme).await;
        assert_eq!(refused.code(), "AuthenticationFailed", "{scheme}");
    }
}

#[tokio::test]
async fn the_secondary_endpoint_is_read_with_the_signatures_of_the_account() {
    let fixture = Fixture::keyed(MANAGE).await;
    ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await;
    let text = |path: &str| {
        format!(
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{}\n/shop{path}/orders\ncomp:metadata",
            date_of(&fixture, 0)
        )
    };
    let path = "/shop-secondary/orders?comp=metadata";
    for signed in ["/shop", "/shop-secondary"] {
        let described = ask_signed_as(&fixture, path, &text(signed), "SharedKey").await;
        assert_eq!(
            described.status, 200,
            "some clients sign the path of the primary endpoint: {signed} {described:?}"
        );
    }
    let refused = ask_signed_as(&fixture, path, &text("/other"), "SharedKey").await;
    assert_eq!(refused.code(), "AuthenticationFailed");
    let read = format!("/shop-secondary/orders/messages?peekonly=true&{}", part("r", LATER));
    assert_eq!(fixture.ask("GET", &read, "").await.status, 200);
    let put = format!("/shop-secondary/orders/messages?{}", part("a", LATER));
    let refused = fixture.ask("POST", &put, &message("a")).await;
    assert_eq!((refused.status, refused.code()), (403, "InsufficientAccountPermissions"));
}
