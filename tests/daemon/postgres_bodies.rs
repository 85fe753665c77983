//! A column of bodies whose type changes while its table is copied.

use serde_json::Value;
use serde_json::json;

use crate::daemon::postgres::insert;
use crate::daemon::postgres::shop;
use crate::daemon::postgres::wait_for_stored;

#[test]
fn a_column_of_bodies_that_becomes_another_is_read_as_what_it_is_then() {
    let Some((_server, session, fixture)) = shop("") else { return };
    insert(&session, "a", 1);
    let daemon = fixture.start();
    wait_for_stored(&daemon, 1);
    // Nothing that is copied is written as another kind of body, and the copying goes on by itself.
    session.run(
        "begin; alter table outbox alter column payload type bytea using convert_to(payload::text, 'UTF8'); \
         insert into outbox (order_id, payload) values ('a', 'two'); commit",
    );
    wait_for_stored(&daemon, 2);
    session.run(
        "begin; alter table outbox alter column payload type jsonb using to_jsonb(convert_from(payload, 'UTF8')); \
         insert into outbox (order_id, payload) values ('a', '3'); commit",
    );
    wait_for_stored(&daemon, 3);
    let page = daemon.json("GET", "/v1/queues/orders/messages?limit=9", &Value::Null);
    let messages = page["messages"].as_array().expect("a page");
    let read: Vec<_> = messages.iter().map(|message| (&message["body"], &message["body_text"])).collect();
    assert_eq!(read, [(&json!(1), &Value::Null), (&Value::Null, &json!("two")), (&json!(3), &Value::Null)]);
    assert_eq!(daemon.stop(), Some(0));
}
