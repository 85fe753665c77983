//! Stored access policies, and the signatures that name them.

use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::storage_queue::tests::fixture::Fixture;
use crate::storage_queue::tests::fixture::message;
use crate::storage_queue::tests::fixture::signed_fields;
use crate::storage_queue::tests::signed::LATER;
use crate::storage_queue::tests::signed::MANAGE;
use crate::storage_queue::tests::signed::ask_signed;
use crate::testing::ManualClock;

/// A document with one policy.
fn policy(id: &str, terms: &str) -> String {
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>{id}</Id><AccessPolicy>{terms}</AccessPolicy></SignedIdentifier>\
         </SignedIdentifiers>"
    )
}

/// The fields of a signature that names a policy, and what it says itself: permissions and expiry.
fn naming(id: &str, permissions: &str, expiry: &str) -> String {
    signed_fields(&[("si", id), ("sp", permissions), ("se", expiry)])
}

async fn set(fixture: &Fixture, document: &str) {
    assert_eq!(ask_signed(fixture, "PUT", "/shop/orders?comp=acl", document, 0).await.status, 204);
}

/// Puts a message with a signature, and says what came of it: nothing for what was done.
async fn put(fixture: &Fixture, fields: &str) -> String {
    let path = format!("/shop/orders/messages?{fields}");
    fixture.ask("POST", &path, &message("a")).await.code().to_owned()
}

async fn fixture() -> Fixture {
    let fixture = Fixture::keyed(MANAGE).await;
    ask_signed(&fixture, "PUT", "/shop/orders", "", 0).await;
    fixture
}

#[tokio::test]
async fn policies_are_told_as_they_were_set() {
    let fixture = fixture().await;
    let described = ask_signed(&fixture, "GET", "/shop/orders?comp=acl", "", 0).await;
    assert_eq!((described.status, described.texts("Id").len()), (200, 0));
    let terms =
        "<Start>2026-01-02T03:04:05.1234567Z</Start><Expiry>2100-01-01</Expiry><Permission>rp</Permission>";
    set(&fixture, &policy("a &lt;b&gt;", terms)).await;
    let described = ask_signed(&fixture, "GET", "/shop/orders?comp=acl", "", 0).await;
    assert_eq!(
        [
            described.text("Id"),
            described.text("Start"),
            described.text("Expiry"),
            described.text("Permission")
        ],
        ["a &lt;b&gt;", "2026-01-02T03:04:05.1234567Z", "2100-01-01T00:00:00.0000000Z", "rp"]
    );
    let open = "<SignedIdentifiers><SignedIdentifier><Id>open</Id></SignedIdentifier></SignedIdentifiers>";
    set(&fixture, open).await;
    let described = ask_signed(&fixture, "GET", "/shop/orders?comp=acl", "", 0).await;
    assert_eq!(
        (described.texts("Id"), described.texts("Start").len()),
        (vec!["open"], 0),
        "all are set at once"
    );
    for none in ["<SignedIdentifiers />", ""] {
        set(&fixture, open).await;
        set(&fixture, none).await;
        let described = ask_signed(&fixture, "GET", "/shop/orders?comp=acl", "", 0).await;
        assert_eq!(described.texts("Id").len(), 0, "{none:?}");
    }
    let audit = fixture.engine.client().audit(0, 100).await.unwrap();
    assert!(audit.iter().all(|entry| entry.actor == "shop"), "who changed them is written down: {audit:?}");
}

#[tokio::test]
async fn a_policy_judges_the_signatures_that_name_it_and_is_taken_back() {
    let fixture = fixture().await;
    assert_eq!(
        put(&fixture, &naming("door", "", "")).await,
        "AuthenticationFailed",
        "there is no such policy"
    );
    set(&fixture, &policy("door", &format!("<Expiry>{LATER}</Expiry><Permission>a</Permission>"))).await;
    assert_eq!(put(&fixture, &naming("door", "", "")).await, "");
    let path = format!("/shop/orders/messages?{}", naming("door", "", ""));
    assert_eq!(fixture.ask("GET", &path, "").await.code(), "AuthorizationPermissionMismatch");
    set(&fixture, &policy("door", &format!("<Expiry>{LATER}</Expiry><Permission>r</Permission>"))).await;
    assert_eq!(put(&fixture, &naming("door", "", "")).await, "AuthorizationPermissionMismatch");
    set(&fixture, &policy("other", &format!("<Expiry>{LATER}</Expiry><Permission>a</Permission>"))).await;
    assert_eq!(put(&fixture, &naming("door", "", "")).await, "AuthenticationFailed");
    let altered = naming("door", "", "").replace("si=door", "si=other");
    assert_eq!(put(&fixture, &altered).await, "AuthenticationFailed", "the name is signed");
}

#[tokio::test]
async fn each_term_is_said_once_by_the_policy_or_by_the_signature() {
    let fixture = fixture().await;
    set(&fixture, &policy("door", "<Permission>a</Permission>")).await;
    assert_eq!(put(&fixture, &naming("door", "", LATER)).await, "");
    assert_eq!(
        put(&fixture, &naming("door", "", "")).await,
        "AuthenticationFailed",
        "nobody says when it ends"
    );
    assert_eq!(
        put(&fixture, &naming("door", "a", LATER)).await,
        "AuthenticationFailed",
        "both say the permission"
    );
    set(&fixture, &policy("door", &format!("<Expiry>{LATER}</Expiry>"))).await;
    assert_eq!(put(&fixture, &naming("door", "a", "")).await, "");
    assert_eq!(
        put(&fixture, &naming("door", "", "")).await,
        "AuthenticationFailed",
        "nobody says what is allowed"
    );
    for terms in ["<Expiry>1970-01-01</Expiry>", "<Start>2100-01-01</Start><Expiry>2101-01-01</Expiry>"] {
        set(&fixture, &policy("door", terms)).await;
        assert_eq!(put(&fixture, &naming("door", "a", "")).await, "AuthenticationFailed", "{terms}");
    }
}

#[tokio::test]
async fn policies_end_with_their_queue_whoever_deletes_it() {
    let fixture = fixture().await;
    let terms = format!("<Expiry>{LATER}</Expiry><Permission>a</Permission>");
    let name = crate::id::QueueName::new("orders").unwrap();
    for by_engine in [false, true] {
        set(&fixture, &policy("door", &terms)).await;
        assert_eq!(put(&fixture, &naming("door", "", "")).await, "");
        fixture.pass(1);
        let client = fixture.engine.client();
        match by_engine {
            true => client.delete_queue(&name).await.unwrap(),
            false => assert_eq!(ask_signed(&fixture, "DELETE", "/shop/orders", "", 0).await.status, 204),
        }
        client.create_queue("orders", Default::default()).await.unwrap();
        assert_eq!(put(&fixture, &naming("door", "", "")).await, "AuthenticationFailed");
    }
    let refused = ask_signed(&fixture, "PUT", "/shop/nowhere?comp=acl", "<SignedIdentifiers/>", 0).await;
    assert_eq!(refused.code(), "QueueNotFound");
}

#[tokio::test]
async fn only_the_key_itself_sets_policies_and_wrong_ones_are_refused() {
    let fixture = fixture().await;
    set(&fixture, &policy("door", &format!("<Expiry>{LATER}</Expiry><Permission>raup</Permission>"))).await;
    let path = format!("/shop/orders?comp=acl&{}", naming("door", "", ""));
    assert_eq!(fixture.ask("PUT", &path, "").await.code(), "AuthorizationPermissionMismatch");
    let six: String =
        (0..6).map(|id| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>")).collect();
    let twice = "<SignedIdentifier><Id>a</Id></SignedIdentifier>".repeat(2);
    for (document, code) in [
        (format!("<SignedIdentifiers>{six}</SignedIdentifiers>"), "InvalidXmlDocument"),
        (format!("<SignedIdentifiers>{twice}</SignedIdentifiers>"), "InvalidXmlDocument"),
        ("<a/>".to_owned(), "InvalidXmlDocument"),
        (policy(&"x".repeat(65), ""), "InvalidXmlNodeValue"),
        (policy("a", "<Permission>rx</Permission>"), "InvalidXmlNodeValue"),
        (policy("a", "<Expiry>tomorrow</Expiry>"), "InvalidXmlNodeValue"),
        (policy("a", "<Until>2100-01-01</Until>"), "UnsupportedXmlNode"),
        ("<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>".to_owned(), "MissingRequiredXmlNode"),
    ] {
        let refused = ask_signed(&fixture, "PUT", "/shop/orders?comp=acl", &document, 0).await;
        assert_eq!((refused.status, refused.code()), (400, code), "{document}");
    }
    let described = ask_signed(&fixture, "GET", "/shop/orders?comp=acl", "", 0).await;
    assert_eq!(described.texts("Id"), ["door"], "a refusal changes nothing");
}

#[tokio::test]
async fn policies_and_properties_are_there_after_a_restart_and_in_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let [path, copy] = ["a.redb", "b.redb"].map(|name| folder.path().join(name));
    let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
    let engine = Engine::builder(&path).clock(clock.clone()).open().await.unwrap();
    let fixture = Fixture::on(engine, clock.clone(), None).await;
    fixture.make("orders").await;
    fixture.ask("PUT", "/shop/orders?comp=acl", &policy("door", "<Permission>a</Permission>")).await;
    let rule = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read>\
                <Write>false</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>\
                </Logging></StorageServiceProperties>";
    assert_eq!(fixture.ask("PUT", "/shop?restype=service&comp=properties", rule).await.status, 202);
    fixture.engine.client().backup(&copy).await.unwrap();
    fixture.engine.close().await;
    for path in [path, copy] {
        let engine = Engine::builder(&path).clock(clock.clone()).open().await.unwrap();
        let fixture = Fixture::on(engine, clock.clone(), None).await;
        let described = fixture.ask("GET", "/shop/orders?comp=acl", "").await;
        assert_eq!((described.text("Id"), described.text("Permission")), ("door", "a"), "{}", path.display());
        let described = fixture.ask("GET", "/shop?restype=service&comp=properties", "").await;
        assert_eq!((described.text("Delete"), described.text("Days")), ("true", "7"), "{}", path.display());
        fixture.engine.close().await;
    }
}
