//! A table of a real PostgreSQL server as the source of a queue: what commits in reverse, what is open for long, who is
//! killed, and what is wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::daemon::breaking_way::breaking_way;
use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;
use crate::daemon::postgres_server::PostgresServer;
use crate::daemon::postgres_server::Session;
use crate::daemon::postgres_server::write_password;

/// How often the daemon and the server are killed in the middle of a copy.
const KILLS: usize = 6;

const TABLE: &str = "create table outbox (id bigint generated always as identity primary key, \
                     order_id text not null, version bigint, payload jsonb not null)";

/// A server with a table, and a folder whose queue copies it.
pub(crate) fn shop(definition: &str) -> Option<(PostgresServer, Session, Fixture)> {
    let server = PostgresServer::start()?;
    let session = server.session();
    session.run(TABLE);
    let fixture = Fixture::new();
    write_password(fixture.path());
    fixture.write("orders.toml", &definition_of(&server, definition));
    Some((server, session, fixture))
}

pub(crate) fn definition_of(server: &PostgresServer, more: &str) -> String {
    format!(
        "[source]\npostgres = \"{}\"\npassword_file = \"database.password\"\ntable = \"outbox\"\npoll = \"10ms\"\n\
         columns = {{ workflow_id = \"order_id\", body = \"payload\" }}\n{more}",
        server.url()
    )
}

/// The bodies of a queue's messages, in their order.
pub(crate) fn bodies(daemon: &Daemon, count: usize) -> Vec<Value> {
    let path = format!("/v1/queues/orders/messages?limit={}", count.max(1));
    let page = daemon.json("GET", &path, &Value::Null);
    page["messages"].as_array().expect("a page").iter().map(|message| message["body"].clone()).collect()
}

pub(crate) fn wait_for_stored(daemon: &Daemon, count: u64) {
    daemon.wait_for("/v1/queues/orders", |queue| queue["counts"]["stored"] == count);
}

pub(crate) fn source(daemon: &Daemon, what: impl Fn(&Value) -> bool) -> Value {
    let definitions = daemon.wait_for("/v1/definitions", |page| what(&page["definitions"][0]["source"]));
    definitions["definitions"][0]["source"].clone()
}

pub(crate) fn insert(session: &Session, order: &str, number: u64) {
    session.run(&format!("insert into outbox (order_id, payload) values ('{order}', '{number}')"));
}

#[test]
fn numbers_that_commit_in_reverse_are_copied_in_order_and_none_is_lost() {
    let Some((server, session, fixture)) = shop("") else { return };
    insert(&session, "a", 1);
    let daemon = fixture.start();
    wait_for_stored(&daemon, 1);
    let late = server.session();
    late.run("begin");
    insert(&late, "a", 2);
    insert(&session, "a", 3);
    let held = source(&daemon, |source| source["waits_for_transactions"].as_u64() > Some(0));
    assert_eq!((held["rows_behind"].as_u64(), held["copied_through"].as_u64()), (Some(1), Some(1)));
    assert_eq!(bodies(&daemon, 9), [1]);
    late.run("commit");
    wait_for_stored(&daemon, 3);
    assert_eq!(bodies(&daemon, 9), [1, 2, 3]);
    // One that only takes a number, and writes later, is waited for as well.
    late.run("begin");
    let number = late.number("select nextval('outbox_id_seq')");
    insert(&session, "a", 5);
    source(&daemon, |source| source["waits_for_transactions"].as_u64() > Some(0));
    late.run(&format!(
        "insert into outbox (id, order_id, payload) overriding system value values ({number}, 'a', '4'); commit"
    ));
    wait_for_stored(&daemon, 5);
    assert_eq!(bodies(&daemon, 9), [1, 2, 3, 4, 5]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn what_was_rolled_back_or_prepared_keeps_back_only_what_it_must() {
    let Some((server, session, fixture)) = shop("") else { return };
    insert(&session, "a", 1);
    let daemon = fixture.start();
    wait_for_stored(&daemon, 1);
    let other = server.session();
    other.run("begin");
    insert(&other, "a", 2);
    other.run("rollback");
    insert(&session, "a", 3);
    wait_for_stored(&daemon, 2);
    // A transaction that is open for long keeps nothing back that follows without a gap.
    other.run("begin; select 1");
    insert(&session, "a", 4);
    wait_for_stored(&daemon, 3);
    other.run("commit; begin");
    insert(&other, "a", 5);
    other.run("prepare transaction 'later'");
    insert(&session, "a", 6);
    source(&daemon, |source| source["waits_for_transactions"].as_u64() > Some(0));
    assert_eq!(bodies(&daemon, 9), [1, 3, 4]);
    other.run("commit prepared 'later'");
    wait_for_stored(&daemon, 5);
    assert_eq!(bodies(&daemon, 9), [1, 3, 4, 5, 6]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn each_row_is_copied_once_in_order_whoever_is_killed_in_the_middle() {
    let Some((mut server, session, fixture)) = shop("copied_rows = \"delete\"\n") else { return };
    let (mut daemon, mut number) = (fixture.start(), 0);
    let mut session = session;
    for kill in 0..KILLS {
        let rows = 2_000;
        session.run(&format!(
            "insert into outbox (order_id, payload) \
             select 'w' || n % 7, to_jsonb(n) from generate_series({}, {}) n",
            number + 1,
            number + rows
        ));
        number += rows;
        // Somewhere in the middle of it.
        daemon
            .wait_for("/v1/queues/orders", |queue| queue["counts"]["stored"].as_u64() > Some(number - rows));
        if kill % 2 == 0 {
            daemon.kill();
            daemon = fixture.start();
        } else {
            drop(session);
            server.kill_and_go();
            session = server.session();
        }
    }
    wait_for_stored(&daemon, number);
    let clock = SystemClock::default();
    while session.number("select count(*) from outbox") > 0 {
        assert!(clock.elapsed() < Duration::from_secs(60), "copied rows are deleted");
    }
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut from = 0;
    let mut seen = 0;
    while seen < number {
        let page =
            daemon.json("GET", &format!("/v1/queues/orders/messages?from={from}&limit=1000"), &Value::Null);
        for message in page["messages"].as_array().expect("a page") {
            let workflow = message["workflow_id"].as_str().expect("it has one").to_owned();
            let body = message["body"].as_u64().expect("a number");
            let before = last.insert(workflow.clone(), body);
            assert!(before < Some(body), "{workflow}: {body} behind {before:?}");
            from = message["sequence_number"].as_u64().expect("a number") + 1;
            seen += 1;
        }
    }
    assert_eq!(last.len(), 7);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn rows_that_are_large_are_copied_over_connections_that_could_not_carry_all_that_was_asked_for() {
    let Some((server, session, fixture)) = shop("") else { return };
    let way = breaking_way(server.port, 16 * 1024 * 1024);
    let definition = definition_of(&server, "").replace(&server.port.to_string(), &way.to_string());
    fixture.write("orders.toml", &definition);
    session.run(
        "insert into outbox (order_id, payload) \
         select 'a', to_jsonb(n || repeat('x', 100000)) from generate_series(1, 300) n",
    );
    let daemon = fixture.start();
    wait_for_stored(&daemon, 300);
    source(&daemon, |source| source["rows_behind"] == 0 && source["problem"].is_null());
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_row_that_no_message_can_hold_is_named_and_never_sent() {
    let Some((server, session, fixture)) = shop("") else { return };
    let way = breaking_way(server.port, 1024 * 1024);
    let definition = definition_of(&server, "").replace(&server.port.to_string(), &way.to_string());
    fixture.write("orders.toml", &definition);
    insert(&session, "a", 1);
    session.run("insert into outbox (order_id, payload) values ('a', to_jsonb(repeat('x', 70000000)))");
    insert(&session, "a", 3);
    let daemon = fixture.start();
    let told = |problem: &str| {
        let problem = format!("cannot copy row 2 of PostgreSQL table outbox: {problem}");
        source(&daemon, |source| source["problem"] == problem);
    };
    told("body has 70000002 bytes; no queue takes that many");
    session.run("update outbox set payload = '2', order_id = repeat('w', 2000000) where id = 2");
    told("workflow ID has 2000000 bytes; no message can have that many");
    session.run("update outbox set order_id = 'a' where id = 2");
    wait_for_stored(&daemon, 3);
    assert_eq!(bodies(&daemon, 9), [1, 2, 3]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn positions_come_from_a_column_and_a_row_that_cannot_be_sent_stands_still_where_it_is() {
    let Some((server, session, fixture)) = shop("") else { return };
    let more = "copied_rows = \"keep\"\n";
    let with_position = definition_of(&server, more).replace("body =", "position = \"version\", body =");
    fixture.write("orders.toml", &format!("order = \"position\"\n{with_position}"));
    for (version, number) in [(2, 2), (1, 1)] {
        session.run(&format!(
            "insert into outbox (order_id, version, payload) values ('a', {version}, '{number}')"
        ));
    }
    session.run("insert into outbox (order_id, version, payload) values ('a', -3, '3'), ('a', 4, '4')");
    let daemon = fixture.start();
    let failing = source(&daemon, |source| source["problem"].is_string());
    let problem = failing["problem"].as_str().expect("a text");
    assert_eq!(problem, "cannot copy row 3 of PostgreSQL table outbox: its position -3 is below 1");
    assert_eq!(failing["copied_through"], 2);
    session.run("update outbox set version = 3 where id = 3");
    source(&daemon, |source| source["problem"].is_null() && source["copied_through"] == 4);
    let page = daemon.json("GET", "/v1/queues/orders/workflow/messages?id=a", &Value::Null);
    let messages = page["messages"].as_array().expect("a page");
    let places: Vec<_> =
        messages.iter().map(|message| (message["position"].as_u64(), &message["body"])).collect();
    assert_eq!(places.len(), 4, "{page}");
    assert!(places.iter().all(|(position, body)| body.as_u64() == *position && position.is_some()), "{page}");
    let metrics = daemon.ask("GET", "/metrics", &[], b"").1;
    assert!(metrics.contains("seriatim_source_failing{queue=\"orders\"} 0"), "{metrics}");
    assert!(metrics.contains("seriatim_source_rows_copied_total{queue=\"orders\"} 4"), "{metrics}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_row_that_is_no_message_is_named_whatever_is_wrong_with_it() {
    let Some((_server, session, fixture)) = shop("") else { return };
    insert(&session, "a", 1);
    insert(&session, &"w".repeat(129), 2);
    insert(&session, "a", 3);
    let daemon = fixture.start();
    let failing = source(&daemon, |source| source["problem"].is_string());
    let told = failing["problem"].as_str().expect("a text");
    assert!(told.starts_with("cannot copy row 2 of PostgreSQL table outbox: workflow ID has 129 "), "{told}");
    session.run("update outbox set order_id = 'b' where id = 2");
    source(&daemon, |source| source["problem"].is_null() && source["copied_through"] == 3);
    assert_eq!(bodies(&daemon, 9), [1, 2, 3]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_queue_that_is_full_holds_its_source_back_and_nothing_is_lost() {
    let Some((_server, session, fixture)) = shop("[limits]\nmessages_max = 5\n") else { return };
    for number in 1..=9 {
        insert(&session, "a", number);
    }
    let daemon = fixture.start();
    let full = source(&daemon, |source| source["problem"].is_string());
    assert!(
        full["problem"].as_str().is_some_and(|problem| problem.contains("queue orders: it is full")),
        "{full}"
    );
    let mut seen = Vec::new();
    while seen.len() < 9 {
        let asked = serde_json::json!({ "max": 1, "wait": "20s" });
        let received = daemon.json("POST", "/v1/queues/orders/receive", &asked);
        let first = &received["deliveries"][0];
        seen.push(first["body"].as_u64().expect("a number"));
        let delivery = first["delivery"].as_str().expect("a delivery");
        let path = format!("/v1/queues/orders/deliveries/{delivery}/complete");
        daemon.json("POST", &path, &serde_json::json!({}));
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn what_is_wrong_with_a_table_is_told_in_a_sentence() {
    let Some((server, session, fixture)) = shop("") else { return };
    session.run(
        "create table cached (id bigint primary key, order_id text, payload jsonb); \
         create sequence by_tens increment 10; create table tens (id bigint primary key default nextval('by_tens'), \
         order_id text, payload jsonb); alter sequence by_tens owned by tens.id; \
         create table nameless (id bigint generated always as identity, payload jsonb)",
    );
    let daemon = fixture.start();
    for (table, problem) in [
        ("nowhere", "there is no such table for this user"),
        ("cached", "has no sequence of its own"),
        ("tens", "does not count one by one (increment 10, cache 1)"),
        ("nameless", "it has no column \"order_id\", which the definition names as `workflow_id`"),
    ] {
        let name = format!("name = \"{table}\"\ntable = \"{table}\"\n");
        let text = definition_of(&server, "").replace("table = \"outbox\"\n", &name);
        // The name of a source is its own, not the queue's.
        fixture.write("orders.toml", &text);
        let told = source(&daemon, |source| {
            source["table"] == table && source["problem"].as_str().is_some_and(|told| told.contains(problem))
        });
        assert!(!told.to_string().contains("a password"), "{told}");
    }
    fixture.write("orders.toml", &definition_of(&server, "").replace("app@", "somebody@"));
    source(&daemon, |source| {
        source["problem"].as_str().is_some_and(|told| told.contains("see to the user in `postgres`"))
    });
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_notification_wakes_a_source_that_hardly_ever_looks() {
    let Some((server, session, fixture)) = shop("") else { return };
    session.run(
        "create function tell() returns trigger language plpgsql as $$ begin notify orders; return null; end $$; \
         create trigger tell after insert on outbox for each statement execute function tell()",
    );
    let rarely = definition_of(&server, "channel = \"orders\"\n").replace("poll = \"10ms\"", "poll = \"1h\"");
    fixture.write("orders.toml", &rarely);
    let daemon = fixture.start();
    source(&daemon, |source| source["rows_behind"].is_u64() && source["problem"].is_null());
    insert(&session, "a", 1);
    wait_for_stored(&daemon, 1);
    assert_eq!(daemon.stop(), Some(0));
}

/// Imports the table that a folder's definition names, and says what became of its rows.
fn import(daemon: &Daemon, folder: &Path) -> Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_seriatim"))
        .args(["import", "orders", "--json", "--url", &format!("http://{}", daemon.address), "--source"])
        .arg(folder)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

#[test]
fn an_imported_row_in_which_the_queue_finds_no_message_id_has_its_number() {
    let Some((server, session, fixture)) = shop("") else { return };
    session.run("insert into outbox (order_id, payload) values ('a', '{\"uid\": \"m-1\"}')");
    session.run("insert into outbox (order_id, payload) values ('a', '{}')");
    let folder = fixture.path().join("import");
    std::fs::create_dir(&folder).expect("a new folder");
    std::fs::write(folder.join("database.password"), "a password\n").expect("a new file");
    let text = format!("message_id = \"/uid\"\n{}", definition_of(&server, ""));
    std::fs::write(folder.join("orders.toml"), text).expect("a new file");
    fixture.write("orders.toml", "message_id = \"/uid\"\n");
    let daemon = fixture.start();
    assert_eq!(import(&daemon, &folder)["accepted"], 2);
    let page = daemon.json("GET", "/v1/queues/orders/messages?limit=2", &Value::Null);
    let ids = [0, 1].map(|at| page["messages"][at]["message_id"].clone());
    assert_eq!(ids, ["m-1", "2"], "{page}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_table_is_imported_once_and_a_second_time_changes_nothing() {
    let Some((server, session, fixture)) = shop("") else { return };
    for number in 1..=5 {
        insert(&session, "a", number);
    }
    // The daemon has the queue without the source; the folder with the source is for the import.
    let folder = fixture.path().join("import");
    std::fs::create_dir(&folder).expect("a new folder");
    std::fs::write(folder.join("database.password"), "a password\n").expect("a new file");
    std::fs::write(folder.join("orders.toml"), definition_of(&server, "")).expect("a new file");
    fixture.write("orders.toml", "[duplicates]\nwindow = \"1d\"\n");
    let daemon = fixture.start();
    assert_eq!(import(&daemon, &folder)["accepted"], 5);
    let again = import(&daemon, &folder);
    assert_eq!((again["accepted"].as_u64(), again["duplicate"].as_u64()), (Some(0), Some(5)));
    assert_eq!(bodies(&daemon, 9), [1, 2, 3, 4, 5]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_queue_that_reads_message_ids_reads_those_of_rows() {
    let Some((server, session, fixture)) = shop("") else { return };
    let text = format!("message_id = \"/uid\"\n{}", definition_of(&server, ""));
    fixture.write("orders.toml", &text);
    session.run("insert into outbox (order_id, payload) values ('a', '{\"uid\": \"m-1\"}')");
    let daemon = fixture.start();
    source(&daemon, |source| source["problem"].is_null() && source["copied_through"] == 1);
    let page = daemon.json("GET", "/v1/queues/orders/messages?limit=1", &Value::Null);
    assert_eq!(page["messages"][0]["message_id"], "m-1", "{page}");
    session.run("insert into outbox (order_id, payload) values ('a', '{}')");
    source(&daemon, |source| source["problem"].is_null() && source["copied_through"] == 2);
    let page = daemon.json("GET", "/v1/queues/orders/messages?limit=2", &Value::Null);
    assert_eq!(page["messages"][1]["message_id"], "2", "where none is found, its number is one: {page}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn rows_that_a_queue_takes_for_duplicates_are_passed_over_and_counted_in_the_log() {
    let Some((server, session, fixture)) = shop("[duplicates]\nwindow = \"1d\"\n") else { return };
    insert(&session, "a", 1);
    let log = fixture.path().join("log");
    let daemon = fixture.start_logging(&log);
    wait_for_stored(&daemon, 1);
    // Its first row has the number of the one that was copied.
    session.run("truncate outbox restart identity");
    insert(&session, "a", 2);
    let more = "name = \"outbox-2\"\n[duplicates]\nwindow = \"1d\"\n";
    fixture.write("orders.toml", &definition_of(&server, more));
    source(&daemon, |source| source["name"] == "outbox-2" && source["copied_through"] == 1);
    insert(&session, "a", 3);
    wait_for_stored(&daemon, 2);
    assert_eq!(bodies(&daemon, 9), [1, 3]);
    assert_eq!(daemon.stop(), Some(0));
    let said = std::fs::read_to_string(log).expect("a log");
    let passed: Vec<_> = said.lines().filter(|line| line.contains("rows were passed over")).collect();
    assert!(passed.len() == 1 && passed[0].contains("duplicates=1"), "{said}");
}

#[test]
fn a_row_that_has_no_workflow_is_waited_for_and_never_passed() {
    let Some((server, session, fixture)) = shop("") else { return };
    let by_key = definition_of(&server, "").replace("workflow_id = \"order_id\", ", "");
    fixture.write("orders.toml", &format!("key = \"/order\"\n{by_key}"));
    session.run(
        "insert into outbox (order_id, payload) values ('', '{\"order\": \"a\"}'), ('', '{\"other\": 2}'), \
         ('', '{\"order\": \"a\"}')",
    );
    let daemon = fixture.start();
    let failing = source(&daemon, |source| source["problem"].is_string());
    assert!(
        failing["problem"].as_str().is_some_and(|problem| problem.contains("cannot copy row 2 of")),
        "{failing}"
    );
    assert_eq!((failing["copied_through"].as_u64(), bodies(&daemon, 9).len()), (Some(1), 1));
    session.run("update outbox set payload = '{\"order\": \"b\"}' where id = 2");
    source(&daemon, |source| source["problem"].is_null() && source["copied_through"] == 3);
    let orders: Vec<_> = bodies(&daemon, 9).iter().map(|body| body["order"].clone()).collect();
    assert_eq!(orders, ["a", "b", "a"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_table_that_is_made_anew_while_it_is_copied_is_known_by_its_sequence() {
    let Some((server, session, fixture)) = shop("") else { return };
    for number in 1..=3 {
        insert(&session, "a", number);
    }
    let daemon = fixture.start();
    wait_for_stored(&daemon, 3);
    source(&daemon, |source| source["copied_through"] == 3);
    session.run("truncate outbox restart identity");
    insert(&session, "a", 4);
    let told = "row 3 was copied, but its sequence";
    source(&daemon, |source| source["problem"].as_str().is_some_and(|problem| problem.contains(told)));
    fixture.write("orders.toml", &definition_of(&server, "name = \"outbox-2\"\n"));
    wait_for_stored(&daemon, 4);
    assert_eq!(bodies(&daemon, 9), [1, 2, 3, 4]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn copied_rows_that_cannot_be_deleted_are_told_as_such() {
    let Some((_server, session, fixture)) = shop("copied_rows = \"delete\"\n") else { return };
    session.run(
        "create function keep() returns trigger language plpgsql as $$ begin raise exception 'rows stay'; end $$; \
         create trigger keep before delete on outbox for each row execute function keep()",
    );
    insert(&session, "a", 1);
    let daemon = fixture.start();
    let told = "cannot delete copied rows of PostgreSQL table outbox: rows stay";
    source(&daemon, |source| source["problem"] == told);
    session.run("drop trigger keep on outbox");
    source(&daemon, |source| source["problem"].is_null() && source["copied_through"] == 1);
    assert_eq!((bodies(&daemon, 9), session.number("select count(*) from outbox")), (vec![1.into()], 0));
    assert_eq!(daemon.stop(), Some(0));
}
