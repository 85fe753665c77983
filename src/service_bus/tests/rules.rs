//! Rules of subscriptions, as the administration clients name, make and change them.

use crate::service_bus::tests::administering::change;
use crate::service_bus::tests::administering::delete;
use crate::service_bus::tests::administering::get;
use crate::service_bus::tests::administering::host_with_subscription;
use crate::service_bus::tests::administering::put;
use crate::service_bus::tests::administering::rule;
use crate::topic::Filter;
use crate::topic::Rule;

#[tokio::test]
async fn a_rule_survives_the_way_out_and_back() {
    let host = host_with_subscription().await;
    let value = |name: &str, kind: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{name}</Key><Value i:type=\"d:{kind}\" \
             xmlns:d=\"http://www.w3.org/2001/XMLSchema\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let values = [
        value("a", "string", "x &amp; y"),
        value("b", "int", "-3"),
        value("c", "long", "9223372036854775807"),
        value("d", "double", "0.5"),
        value("e", "boolean", "true"),
    ];
    let values = values.concat();
    let fields = "<CorrelationId>1</CorrelationId><MessageId>2</MessageId><To>3</To><ReplyTo>4</ReplyTo>\
                  <Label>5</Label><SessionId>6</SessionId><ReplyToSessionId>7</ReplyToSessionId>\
                  <ContentType>8</ContentType>";
    let action =
        "<Action i:type=\"SqlRuleAction\"><SqlExpression>SET a = 'x &lt; y'</SqlExpression></Action>";
    for (name, inside) in [
        ("true", "<Filter i:type=\"TrueFilter\"><SqlExpression>1=1</SqlExpression></Filter>".to_owned()),
        ("false", format!("<Filter i:type=\"FalseFilter\"/>{action}")),
        (
            "sql",
            format!(
                "<Filter i:type=\"SqlFilter\"><SqlExpression>a &lt; @b</SqlExpression><Parameters>{}</Parameters>\
                 </Filter>{action}",
                value("@b", "int", "3")
            ),
        ),
        (
            "correlation",
            format!(
                "<Filter i:type=\"CorrelationFilter\">{fields}<Properties>{values}</Properties></Filter>"
            ),
        ),
    ] {
        let path = format!("/t/Subscriptions/s/Rules/{name}");
        assert_eq!(put(&host, &path, &rule(&inside)).await.status, 201, "{name}");
        let kept = async || host.engine.client().topic("t").unwrap().rules("s").await.unwrap();
        let (read, rules) = (get(&host, &path).await, kept().await);
        // What was told is a document that means the same.
        let again = change(&host, &path, &read.text).await;
        assert_eq!(again.status, 200, "{again:?}");
        assert_eq!(kept().await, rules, "{name}");
        assert_eq!(get(&host, &path).await.text, read.text);
        assert_eq!(put(&host, &path, &read.text).await.status, 409);
    }
    assert_eq!(delete(&host, "/t/Subscriptions/s/Rules/SQL").await.status, 200);
    assert_eq!(
        get(&host, "/t/Subscriptions/s/Rules").await.names(),
        ["$Default", "correlation", "false", "true"]
    );
}

#[tokio::test]
async fn of_two_rules_that_are_alike_but_for_case_the_one_that_is_named_is_meant() {
    let host = host_with_subscription().await;
    let path = |name: &str| format!("/t/Subscriptions/s/Rules/{name}");
    let document = rule("<Filter i:type=\"TrueFilter\"><SqlExpression>1=1</SqlExpression></Filter>");
    assert_eq!(put(&host, &path("Large"), &document).await.status, 201);
    assert_eq!(put(&host, &path("large"), &document).await.status, 409);
    // Who speaks another protocol can make both.
    host.engine.client().topic("t").unwrap().add_rule("s", Rule::new("large", Filter::True)).await.unwrap();
    let other = rule("<Filter i:type=\"FalseFilter\"/>");
    assert_eq!(change(&host, &path("large"), &other).await.status, 200);
    assert!(get(&host, &path("large")).await.text.contains("FalseFilter"));
    assert!(!get(&host, &path("Large")).await.text.contains("FalseFilter"));
    assert_eq!(delete(&host, &path("large")).await.status, 200);
    assert_eq!(get(&host, "/t/Subscriptions/s/Rules").await.names(), ["$Default", "Large"]);
    assert_eq!(delete(&host, &path("LARGE")).await.status, 200, "one that is alike is meant, too");
}
