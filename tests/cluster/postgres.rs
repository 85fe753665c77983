//! A table of a real PostgreSQL server as the source of a queue of a cluster.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::fixture::Cluster;
use crate::daemon::postgres_server::PostgresServer;
use crate::daemon::postgres_server::Session;

const TABLE: &str = "create table outbox (id bigint generated always as identity primary key, \
                     order_id text not null, payload jsonb not null)";

const ORDERS: u64 = 6;

fn definition(server: &PostgresServer) -> String {
    format!(
        "order = \"arrival\"\n[source]\npostgres = \"{}\"\npassword_file = \"database.password\"\n\
         table = \"outbox\"\npoll = \"10ms\"\ncolumns = {{ workflow_id = \"order_id\", body = \"payload\" }}\n\
         [[handler]]\nexec = [\"sh\", \"-c\", 'echo \"$(cat)\" >> FOLDER/handled']\n",
        server.url()
    )
}

/// Inserts a row for each order, each with a number.
fn insert(session: &Session, numbers: std::ops::Range<u64>) {
    for number in numbers {
        for order in 0..ORDERS {
            session.run(&format!(
                "insert into outbox (order_id, payload) values ('o{order}', '\"o{order} {number}\"')"
            ));
        }
    }
}

/// The numbers that were handled of each order. An attempt that a kill cut off is made again.
fn handled(cluster: &Cluster) -> BTreeMap<String, Vec<u64>> {
    let text = std::fs::read_to_string(cluster.path().join("handled")).unwrap_or_default();
    let mut handled: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in text.lines() {
        let (order, number) = line.trim_matches('"').split_once(' ').unwrap_or_else(|| panic!("{line}"));
        let number = number.parse().unwrap_or_else(|_| panic!("{line}"));
        let numbers = handled.entry(order.to_owned()).or_default();
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }
    handled
}

#[test]
fn a_source_is_copied_once_and_in_order_whichever_node_dies() {
    let Some(server) = PostgresServer::start() else { return };
    let session = server.session();
    session.run(TABLE);
    let files = [("orders.toml", &*definition(&server)), ("database.password", "a password\n")];
    let Some(mut cluster) = Cluster::start(3, &files) else { return };
    let completed = |count: u64| move |view: &Value| view["counts"]["completed"] == count * ORDERS;
    let mut count = 0;
    for node in [2, 1] {
        insert(&session, count..count + 3);
        cluster.wait_for(0, "/v1/queues/orders", completed(count + 3));
        insert(&session, count + 3..count + 6);
        cluster.signal(node, Signal::KILL);
        insert(&session, count + 6..count + 9);
        count += 9;
        let view = cluster.wait_for(0, "/v1/queues/orders", completed(count));
        assert_eq!(view["counts"]["accepted"], count * ORDERS, "a row was copied twice: {view}");
        cluster.start_again(node);
    }
    let handled = handled(&cluster);
    for order in 0..ORDERS {
        assert_eq!(handled[&format!("o{order}")], (0..count).collect::<Vec<u64>>(), "o{order}");
    }
}
