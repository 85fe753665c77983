//! What an administration client is promised, and what it is refused.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::Request;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use roxmltree::Document;

use crate::amqp::Value;
use crate::engine::Engine;
use crate::queue::QueueOptions;
use crate::sas::Keys;
use crate::sas::signatures::tests::KEY;
use crate::sas::signatures::tests::token;
use crate::service_bus::description::RECORDS_QUEUE;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::shared::Owners;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::data;
use crate::topic::Rule;

const LATER: u64 = 10_000_000_000;

fn options() -> EndpointOptions {
    EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

/// An answer, and its document.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Answered {
    /// The texts of all elements of a name.
    fn all(&self, name: &str) -> Vec<String> {
        let document = Document::parse(&self.text).unwrap();
        let named = document.descendants().filter(|node| node.tag_name().name() == name);
        named.map(|node| node.text().unwrap_or_default().to_owned()).collect()
    }

    pub(super) fn one(&self, name: &str) -> String {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name} in {}", self.text);
        all[0].clone()
    }

    /// The names of the entries of a list.
    pub(super) fn names(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{self:?}");
        let document = Document::parse(&self.text).unwrap();
        let entries = document.root_element().children().filter(|node| node.tag_name().name() == "entry");
        let title = |entry: roxmltree::Node<'_, '_>| {
            let title = entry.children().find(|node| node.tag_name().name() == "title").unwrap();
            title.text().unwrap().to_owned()
        };
        entries.map(title).collect()
    }

    /// The path and query of the next page.
    fn next(&self) -> Option<String> {
        let document = Document::parse(&self.text).unwrap();
        let links = document.root_element().children().filter(|node| node.tag_name().name() == "link");
        let next = links.into_iter().find(|link| link.attribute("rel") == Some("next"))?;
        let url = next.attribute("href").unwrap().to_owned();
        Some(url.split_once("localhost").unwrap().1.to_owned())
    }
}

/// Asks for something, with headers beside those that every request has.
pub(super) async fn ask_with(
    host: &Host,
    (method, path): (Method, &str),
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answered {
    let (mut sender, connection) = http1::handshake(TokioIo::new(host.stream().await)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = sender.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    Answered { status, text: String::from_utf8(body.to_vec()).unwrap() }
}

pub(super) async fn get(host: &Host, path: &str) -> Answered {
    ask_with(host, (Method::GET, path), &[], "").await
}

pub(super) async fn delete(host: &Host, path: &str) -> Answered {
    ask_with(host, (Method::DELETE, path), &[], "").await
}

pub(super) async fn put(host: &Host, path: &str, body: &str) -> Answered {
    ask_with(host, (Method::PUT, path), &[], body.to_owned()).await
}

pub(super) async fn change(host: &Host, path: &str, body: &str) -> Answered {
    ask_with(host, (Method::PUT, path), &[("if-match", "*")], body.to_owned()).await
}

/// A document that describes an entity.
pub(super) fn entry(element: &str, inside: &str) -> String {
    format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">\
         <{element} xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" \
         xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">{inside}</{element}></content></entry>"
    )
}

pub(super) fn queue(inside: &str) -> String {
    entry("QueueDescription", inside)
}

pub(super) fn rule(inside: &str) -> String {
    entry("RuleDescription", inside)
}

/// What the endpoint says to a message without session.
async fn sends(host: &Host, name: &str) -> u64 {
    let mut client = host.client().await;
    assert_eq!(client.attach_sender(0, vec![Value::from(name)]).await.code, ATTACH);
    client.transfer(0, 0, &data(b"x")).await;
    client.another_answer().await.state(4)
}

/// A topic with one subscription.
pub(super) async fn host_with_subscription() -> Host {
    let host = Host::open().await;
    assert_eq!(put(&host, "/t", &entry("TopicDescription", "")).await.status, 201);
    assert_eq!(put(&host, "/t/Subscriptions/s", &entry("SubscriptionDescription", "")).await.status, 201);
    host
}

#[tokio::test]
async fn what_was_said_of_a_queue_is_there_after_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let (_, clock) = crate::testing::engine().await.unwrap();
    let opened = async || Engine::builder(&path).clock(clock.clone()).open().await.unwrap();
    let host = Host::with(opened().await, clock.clone(), options()).await;
    let fields = "<MaxSizeInMegabytes>2048</MaxSizeInMegabytes><RequiresSession>true</RequiresSession>\
                <UserMetadata>a &lt; b</UserMetadata>";
    assert_eq!(put(&host, "/kept", &queue(fields)).await.status, 201);
    let before = get(&host, "/kept").await;
    host.stop().await.close().await;
    let host = Host::with(opened().await, clock.clone(), options()).await;
    let after = get(&host, "/kept").await;
    assert_eq!(after.text, before.text);
    assert_eq!(
        (after.one("UserMetadata").as_str(), after.one("RequiresSession").as_str()),
        ("a < b", "true")
    );
    assert_eq!(sends(&host, "kept").await, REJECTED, "it names no session");
}

#[tokio::test]
async fn another_queue_of_a_name_has_nothing_of_what_was_said_of_the_first() {
    let host = Host::open().await;
    let fields = "<RequiresSession>true</RequiresSession><UserMetadata>first</UserMetadata>";
    for fields in [fields, "<Status>SendDisabled</Status>"] {
        assert_eq!(put(&host, "/q", &queue(fields)).await.status, 201);
        host.engine.client().delete_queue("q").await.unwrap();
        host.clock.advance(Duration::from_millis(1));
        host.queue("q", QueueOptions::default()).await;
        let read = get(&host, "/q").await;
        assert_eq!((read.one("RequiresSession").as_str(), read.one("Status").as_str()), ("false", "Active"));
        assert!(read.all("UserMetadata").is_empty());
        assert_eq!(sends(&host, "q").await, ACCEPTED);
        host.engine.client().delete_queue("q").await.unwrap();
    }
}

#[tokio::test]
async fn what_could_not_be_made_leaves_nothing_said() {
    let host = host_with_subscription().await;
    let document = "<DefaultRuleDescription><Name>a/b</Name></DefaultRuleDescription>\
                    <UserMetadata>left</UserMetadata>";
    let refused = put(&host, "/t/Subscriptions/half", &entry("SubscriptionDescription", document)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let made = host.engine.client().topic("t").unwrap();
    made.subscribe("half", QueueOptions::default(), vec![Rule::everything()]).await.unwrap();
    assert!(get(&host, "/t/Subscriptions/half").await.all("UserMetadata").is_empty());
    let text = format!("<UserMetadata>{}</UserMetadata>", "x".repeat(1_025));
    assert_eq!(put(&host, "/half", &queue(&text)).await.status, 400);
    host.queue("half", QueueOptions::default()).await;
    assert!(get(&host, "/half").await.all("UserMetadata").is_empty());
}

/// An endpoint with a key that sends and one that manages, both for the queues `mine` and `new`.
async fn keyed_host() -> Host {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for (name, right) in [("sender", "send"), ("owner", "manage")] {
        writeln!(
            file,
            "[[key]]\nname = \"{name}\"\nkey_env = \"{name}\"\nrights = [\"{right}\"]\nqueues = [\"mine\", \"new\"]"
        )
        .unwrap();
    }
    let host = Host::keyed(Keys::read(file.path(), |name| Some(format!("{KEY}-{name}"))).unwrap()).await;
    for name in ["mine", "other"] {
        host.queue(name, QueueOptions::default()).await;
    }
    host
}

#[tokio::test]
async fn without_the_right_to_manage_nobody_administers() {
    let host = keyed_host().await;
    let signed = |name: &str| token(&format!("{KEY}-{name}"), name, "http://localhost/", LATER);
    let (sender, owner) = (signed("sender"), signed("owner"));
    let wrong = token("another", "owner", "http://localhost/", LATER);
    let elsewhere = token(&format!("{KEY}-owner"), "owner", "http://localhost/new", LATER);
    let everything =
        [(Method::GET, "/mine"), (Method::PUT, "/mine"), (Method::PUT, "/new"), (Method::DELETE, "/mine")];
    for (method, path) in &everything {
        for text in ["", "nonsense", &sender, &wrong] {
            let headers = [("authorization", text)];
            let headers = if text.is_empty() { &[][..] } else { &headers[..] };
            let refused = ask_with(&host, (method.clone(), path), headers, queue("")).await;
            assert_eq!(refused.status, 401, "{method} {path} {text}: {refused:?}");
        }
    }
    let as_owner = async |method: Method, path: &str, body: String| {
        ask_with(&host, (method, path), &[("authorization", &owner)], body).await
    };
    for (method, path) in
        [(Method::GET, "/other"), (Method::GET, "/nope"), (Method::PUT, "/nope"), (Method::DELETE, "/other")]
    {
        let refused = as_owner(method.clone(), path, queue("")).await;
        assert_eq!(refused.status, 401, "{method} {path}: {refused:?}");
    }
    let headers = [("authorization", elsewhere.as_str())];
    assert_eq!(
        ask_with(&host, (Method::GET, "/mine"), &headers, "").await.status,
        401,
        "a token for another"
    );
    // It may not send there either, so nothing is sent there in its name.
    let forwards = queue("<ForwardTo>other</ForwardTo>");
    assert_eq!(as_owner(Method::PUT, "/new", forwards).await.status, 401);
    assert_eq!(as_owner(Method::PUT, "/new", queue("")).await.status, 201);
    assert_eq!(as_owner(Method::GET, "/$Resources/queues", String::new()).await.names(), ["mine", "new"]);
    assert_eq!(as_owner(Method::DELETE, "/new", String::new()).await.status, 200);
    assert!(host.engine.client().queue("other").unwrap().view().await.is_ok());
    assert!(host.engine.client().queue("nope").unwrap().view().await.is_err());
}

#[tokio::test]
async fn what_a_file_defines_is_not_changed_here() {
    let engine = crate::testing::engine().await.unwrap();
    let defined = |name: &crate::id::QueueName| (name.as_str() == "orders").then(|| "orders.toml".to_owned());
    let owners = Owners { defined: Arc::new(defined), ..Owners::nobody() };
    let host = Host::owned(engine, options(), owners).await;
    host.queue("orders", QueueOptions::default()).await;
    let before = get(&host, "/orders").await;
    for refused in [change(&host, "/Orders", &queue("")).await, delete(&host, "/orders").await] {
        assert_eq!((refused.status, refused.one("Code").as_str()), (403, "403"));
        assert!(refused.one("Detail").contains("orders.toml"), "{refused:?}");
    }
    assert_eq!(put(&host, "/orders", &queue("")).await.status, 409);
    assert_eq!(get(&host, "/orders").await.text, before.text);
}

#[tokio::test]
async fn hostile_documents_are_refused_and_change_nothing() {
    let host = host_with_subscription().await;
    host.queue("q", QueueOptions::default()).await;
    let (queues, topics) =
        (get(&host, "/$Resources/queues").await, get(&host, "/$Resources/topics").await.names());
    let before = get(&host, "/q").await;
    let entity = "<!DOCTYPE entry [<!ENTITY a \"aaaa\"><!ENTITY f SYSTEM \"file:///etc/passwd\">]>";
    let prefixes: String = (0..12_000).map(|number| format!("<a xmlns:p{number}='u'>")).collect();
    let attributes: String = (0..20_000).map(|number| format!(" a{number}=''")).collect();
    let mut documents = vec![
        String::new(),
        "entry".to_owned(),
        "<entry/>".to_owned(),
        format!("{entity}{}", queue("<UserMetadata>&a;&f;</UserMetadata>")),
        "<a>".repeat(50_000),
        format!("{}{}", "<a>".repeat(30_000), "</a>".repeat(30_000)),
        queue(&format!("{}{}", "<a>".repeat(30_000), "</a>".repeat(30_000)))
            .replace("QueueDesc", "OtherDesc"),
        prefixes,
        format!("<entry{attributes}/>"),
        queue("").replace("entry", "feed"),
        queue("").replace("content", "summary"),
        entry("RuleDescription", ""),
        queue("").replace("</entry>", ""),
        queue("<UserMetadata>&nbsp;</UserMetadata>"),
        queue("<UserMetadata>\u{1}</UserMetadata>"),
    ];
    for (name, values) in [
        ("LockDuration", &["", "soon", "PT0S", "-PT5S", "P99D"][..]),
        ("MaxDeliveryCount", &["", "0", "-1", "1.5", "99999999999"]),
        ("RequiresSession", &["", "perhaps"]),
        ("RequiresDuplicateDetection", &["2"]),
        ("MaxMessageSizeInKilobytes", &["-1", "much"]),
        ("AutoDeleteOnIdle", &["PT1S"]),
        ("Status", &["Asleep", "active"]),
        ("ForwardTo", &["nowhere", "a/b", "sb://localhost/nowhere", RECORDS_QUEUE]),
        ("ForwardDeadLetteredMessagesTo", &["nowhere"]),
    ] {
        documents.extend(values.iter().map(|value| queue(&format!("<{name}>{value}</{name}>"))));
    }
    for (at, document) in documents.iter().enumerate() {
        let shown: String = document.chars().rev().take(160).collect::<Vec<_>>().into_iter().rev().collect();
        assert_eq!(put(&host, "/new", document).await.status, 400, "{at}: {shown}");
        let changed = change(&host, "/q", document).await.status;
        assert!(matches!(changed, 400 | 404), "{at}: {changed} {shown}");
    }
    let latin = queue("<UserMetadata>x</UserMetadata>").into_bytes();
    let latin: Vec<u8> = latin.into_iter().map(|byte| if byte == b'x' { 0xe9 } else { byte }).collect();
    assert_eq!(ask_with(&host, (Method::PUT, "/new"), &[], latin).await.status, 400);
    let large = queue(&format!("<UserMetadata>{}</UserMetadata>", "x".repeat(300 * 1024)));
    assert_eq!(put(&host, "/new", &large).await.status, 413);
    for name in ["/a%2F..%2Fb", "/%ff", "/a%00b", "/$management", RECORDS_QUEUE, "/Seriatim.Service-BUS"] {
        let path = format!("/{}", name.trim_start_matches('/'));
        for refused in [
            put(&host, &path, &queue("")).await,
            change(&host, &path, &queue("")).await,
            delete(&host, &path).await,
        ] {
            assert!(matches!(refused.status, 400 | 403 | 404 | 409), "{name}: {refused:?}");
        }
        assert_ne!(get(&host, &path).await.status, 200, "{name}");
    }
    for filter in [
        "<Filter i:type=\"OtherFilter\"/>",
        "<Filter/>",
        "<Filter i:type=\"SqlFilter\"/>",
        "<Filter i:type=\"SqlFilter\"><SqlExpression>a = </SqlExpression></Filter>",
        "<Filter i:type=\"CorrelationFilter\"/>",
        "<Filter i:type=\"CorrelationFilter\"><Properties><P><Key>a</Key></P></Properties></Filter>",
        "<Filter i:type=\"CorrelationFilter\"><Properties><P><Key>a</Key><Value i:type=\"d:int\">x</Value></P>\
         </Properties></Filter>",
        "<Action><SqlExpression>DROP TABLE a</SqlExpression></Action>",
    ] {
        let refused = put(&host, "/t/Subscriptions/s/Rules/r", &rule(filter)).await;
        assert_eq!(refused.status, 400, "{filter}: {refused:?}");
    }
    for name in ["a%2Fb", "%01", &"x".repeat(51)] {
        let refused = put(&host, &format!("/t/Subscriptions/s/Rules/{name}"), &rule("")).await;
        assert_eq!(refused.status, 400, "{name}: {refused:?}");
    }
    assert_eq!(get(&host, "/t/Subscriptions/s/Rules").await.names(), ["$Default"]);
    assert_eq!(get(&host, "/$Resources/queues").await.names(), queues.names());
    assert_eq!(get(&host, "/$Resources/topics").await.names(), topics);
    assert_eq!(get(&host, "/q").await.text, before.text);
    assert!(
        host.engine.client().queue(RECORDS_QUEUE).unwrap().view().await.is_ok(),
        "the daemon's own stays"
    );
}

#[tokio::test]
async fn a_document_in_any_namespace_prefix_is_read() {
    let host = Host::open().await;
    let document = "\u{feff}<?xml version=\"1.0\"?>\n<atom:entry xmlns:atom=\"http://www.w3.org/2005/Atom\">\
        <atom:title>q</atom:title><atom:content>\n<ns0:QueueDescription xmlns:ns0=\"urn:any\">\n\
        <ns0:LockDuration>PT17S</ns0:LockDuration><ns1:Newer xmlns:ns1=\"urn:2030\"><ns1:x/></ns1:Newer>\
        <ns0:UserMetadata><![CDATA[a<b]]></ns0:UserMetadata></ns0:QueueDescription></atom:content></atom:entry>";
    let made = put(&host, "/q", document).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!((made.one("LockDuration").as_str(), made.one("UserMetadata").as_str()), ("PT17S", "a<b"));
}

#[tokio::test]
async fn lists_are_cut_into_pages_with_a_link_to_the_next() {
    let host = Host::open().await;
    let names: Vec<String> = (0..103).map(|number| format!("q-{number:03}")).collect();
    for name in &names {
        host.queue(name, QueueOptions::default()).await;
    }
    let path = "/$Resources/queues?api-version=2021-05";
    let pages = async |query: &str| {
        let (mut all, mut pages, mut next) = (Vec::new(), 0, Some(format!("{path}{query}")));
        while let Some(path) = next {
            let page = get(&host, &path).await;
            all.extend(page.names());
            (pages, next) = (pages + 1, page.next());
        }
        (all, pages)
    };
    assert_eq!(pages("").await, (names.clone(), 2));
    assert_eq!(pages("&$skip=0&$top=40").await, (names.clone(), 3));
    assert_eq!(pages("&$top=1000000").await, (names.clone(), 2), "no page is longer than a hundred");
    assert_eq!(pages("&%24skip=100").await, (names[100..].to_vec(), 1));
    let end = get(&host, &format!("{path}&$skip=18446744073709551615&$top=100")).await;
    assert_eq!((end.names().len(), end.next()), (0, None));
    for wrong in ["$skip=-1", "$skip=x", "$top=1.5", "$top=", "$skip=99999999999999999999"] {
        assert_eq!(get(&host, &format!("{path}&{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn other_methods_are_refused() {
    let host = host_with_subscription().await;
    host.queue("q", QueueOptions::default()).await;
    for method in [Method::POST, Method::PATCH, Method::OPTIONS] {
        for path in ["/q", "/new", "/t/Subscriptions/s/Rules/$Default", "/$Resources/queues"] {
            let refused = ask_with(&host, (method.clone(), path), &[], queue("")).await;
            assert_eq!(refused.status, 405, "{method} {path}: {refused:?}");
        }
    }
    for path in ["/$Resources/queues", "/$namespaceinfo", "/t/Subscriptions", "/t/Subscriptions/s/Rules"] {
        for refused in [put(&host, path, &queue("")).await, delete(&host, path).await] {
            assert_eq!(refused.status, 405, "{path}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn nothing_forwards_to_what_is_not_there() {
    let host = host_with_subscription().await;
    for field in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
        for target in
            ["gone", "sb://localhost/gone", "t/Subscriptions/s", RECORDS_QUEUE, "NEW", "SERIATIM.service-bus"]
        {
            let document = queue(&format!("<{field}>{target}</{field}>"));
            assert_eq!(put(&host, "/new", &document).await.status, 400, "{field} {target}");
            assert_eq!(get(&host, "/new").await.status, 404, "nothing is made");
        }
    }
}
