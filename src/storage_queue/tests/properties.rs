//! Properties of the service.

use crate::storage_queue::tests::fixture::Fixture;
use crate::storage_queue::tests::signed::ask_signed;

const PATH: &str = "/shop?restype=service&comp=properties";

const KEPT: &str = "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>";
const RULE: &str = "<CorsRule><AllowedOrigins>https://a.example,*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
                    <AllowedHeaders>x-ms-meta-*</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>60</MaxAgeInSeconds>\
                    </CorsRule>";

fn document(inside: &str) -> String {
    format!("<?xml version=\"1.0\"?><StorageServiceProperties>{inside}</StorageServiceProperties>")
}

fn logging(kept: &str) -> String {
    format!(
        "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>{kept}</Logging>"
    )
}

#[tokio::test]
async fn properties_are_told_as_they_were_set_and_what_is_not_said_stays() {
    let fixture = Fixture::open().await;
    let before = fixture.ask("GET", PATH, "").await;
    assert_eq!((before.status, before.texts("Enabled")), (200, vec!["false"; 5]), "{before:?}");
    for part in [
        logging(KEPT),
        format!(
            "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>{KEPT}</HourMetrics>"
        ),
        format!("<Cors>{RULE}</Cors>"),
    ] {
        assert_eq!(fixture.ask("PUT", PATH, &document(&part)).await.status, 202, "{part}");
    }
    let described = fixture.ask("GET", PATH, "").await;
    for part in [&logging(KEPT), RULE, "<IncludeAPIs>true</IncludeAPIs>"] {
        assert!(described.body.contains(part), "{part} is in {described:?}");
    }
    assert_eq!(fixture.ask("PUT", PATH, &described.body).await.status, 202, "what was told can be set");
    assert_eq!(fixture.ask("GET", PATH, "").await.body, described.body);
    fixture.ask("PUT", PATH, &document("<Cors />")).await;
    let described = fixture.ask("GET", PATH, "").await;
    assert!(!described.body.contains("CorsRule") && described.body.contains(KEPT), "{described:?}");
}

#[tokio::test]
async fn wrong_properties_are_refused_by_name_and_change_nothing() {
    let fixture = Fixture::open().await;
    let before = fixture.ask("GET", PATH, "").await.body;
    let metrics = |inside: &str| format!("<MinuteMetrics><Version>1.0</Version>{inside}</MinuteMetrics>");
    for (inside, code) in [
        (logging(""), "MissingRequiredXmlNode"),
        (logging(&KEPT.replace('7', "366")), "InvalidXmlNodeValue"),
        (logging(&KEPT.replace("<Days>7</Days>", "")), "MissingRequiredXmlNode"),
        (logging(KEPT).replace("1.0", "2.0"), "InvalidXmlNodeValue"),
        (metrics("<Enabled>true</Enabled>"), "MissingRequiredXmlNode"),
        (metrics("<Enabled>perhaps</Enabled>"), "InvalidXmlNodeValue"),
        (format!("<Cors>{}</Cors>", RULE.repeat(6)), "InvalidXmlDocument"),
        (format!("<Cors>{}</Cors>", RULE.replace("a.example", &"x".repeat(2_048))), "InvalidXmlDocument"),
        (format!("<Cors>{}</Cors>", RULE.replace("GET", "STEAL")), "InvalidXmlNodeValue"),
        (format!("<Cors>{}</Cors>", RULE.replace("<ExposedHeaders />", "")), "MissingRequiredXmlNode"),
        ("<DefaultServiceVersion>2021-12-02</DefaultServiceVersion>".to_owned(), "UnsupportedXmlNode"),
    ] {
        let refused = fixture
            .ask("PUT", PATH, &document(&format!("<Cors />{inside}")).replacen("<Cors /><Cors>", "<Cors>", 1))
            .await;
        assert_eq!((refused.status, refused.code()), (400, code), "{inside}");
    }
    assert_eq!(fixture.ask("PUT", PATH, "<a/>").await.code(), "InvalidXmlDocument");
    assert_eq!(fixture.ask("GET", PATH, "").await.body, before);
}

#[tokio::test]
async fn properties_are_set_by_keys_that_manage_everything() {
    let body = document(&logging(KEPT));
    for (rights, status) in [
        ("rights = [\"manage\"]", 202),
        ("rights = [\"send\", \"listen\"]", 403),
        ("rights = [\"manage\"]\nqueues = [\"orders\"]", 403),
    ] {
        let fixture = Fixture::keyed(rights).await;
        assert_eq!(ask_signed(&fixture, "PUT", PATH, &body, 0).await.status, status, "{rights}");
    }
}

#[tokio::test]
async fn a_page_of_another_origin_may_do_what_a_rule_says_and_nothing_else() {
    let fixture = Fixture::open().await;
    fixture.make("orders").await;
    let messages = "/shop/orders/messages";
    let preflight = async |origin: &str, method: &str, headers: &str| {
        let request = [
            ("host", "127.0.0.1:10001"),
            ("origin", origin),
            ("access-control-request-method", method),
            ("access-control-request-headers", headers),
        ];
        fixture.ask_with("OPTIONS", messages, &request, "").await
    };
    let refused = preflight("https://a.example", "GET", "").await;
    assert_eq!((refused.status, refused.code()), (403, "CorsPreflightFailure"), "there is no rule");
    let rules = "<Cors><CorsRule><AllowedOrigins>https://a.example,https://b.example</AllowedOrigins>\
        <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-*,x-ms-version</AllowedHeaders>\
        <ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>200</MaxAgeInSeconds></CorsRule></Cors>";
    assert_eq!(fixture.ask("PUT", PATH, &document(rules)).await.status, 202);
    let allowed = preflight("https://b.example", "PUT", "X-MS-Meta-Color, x-ms-version").await;
    assert_eq!(allowed.status, 200, "{allowed:?}");
    let header = |name: &str| allowed.headers.get(name).map_or("", String::as_str);
    assert_eq!(header("access-control-allow-origin"), "https://b.example");
    assert_eq!(header("access-control-allow-methods"), "PUT");
    assert_eq!(header("access-control-allow-headers"), "X-MS-Meta-Color, x-ms-version");
    assert_eq!(header("access-control-max-age"), "200");
    let wrong = [
        ("https://c.example", "GET", ""),
        ("https://a.example", "DELETE", ""),
        ("https://a.example", "GET", "a"),
    ];
    for (origin, method, headers) in wrong {
        assert_eq!(
            preflight(origin, method, headers).await.code(),
            "CorsPreflightFailure",
            "{origin} {method}"
        );
    }
    for (origin, seen) in [("http://127.0.0.1:10001", None), ("https://a.example", Some("https://a.example"))]
    {
        let request = [("host", "127.0.0.1:10001"), ("origin", origin)];
        let described = fixture.ask_with("GET", messages, &request, "").await;
        assert_eq!(
            described.headers.get("access-control-allow-origin").map(String::as_str),
            seen,
            "{described:?}"
        );
        let exposed = described.headers.get("access-control-expose-headers").map_or("", String::as_str);
        assert_eq!(exposed.contains("x-ms-version"), seen.is_some(), "{described:?}");
    }
}
