//! For whom a source waits whose rows have a hole, and for whom it does not.

use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;

use crate::daemon::postgres::bodies;
use crate::daemon::postgres::definition_of;
use crate::daemon::postgres::insert;
use crate::daemon::postgres::shop;
use crate::daemon::postgres::source;
use crate::daemon::postgres::wait_for_stored;
use crate::fixture::pause_between_looks;

/// A table that autovacuum is at for longer than any test.
const LARGE: &str = "create table large (n bigint, filler text) with (autovacuum_vacuum_cost_delay = 100, \
                     autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0); \
                     insert into large select n, repeat('x', 500) from generate_series(1, 20000) n";

#[test]
fn a_prepared_transaction_that_wrote_into_a_partition_itself_is_waited_for() {
    let Some((server, session, fixture)) = shop("") else { return };
    session.run(
        "drop table outbox; create table outbox (id bigserial, order_id text not null, payload jsonb not null) \
         partition by list (order_id); create table outbox_a partition of outbox for values in ('a')",
    );
    insert(&session, "a", 1);
    let daemon = fixture.start();
    wait_for_stored(&daemon, 1);
    let other = server.session();
    other.run("begin");
    other.run("insert into outbox_a (order_id, payload) values ('a', '2')");
    other.run("prepare transaction 'later'");
    insert(&session, "a", 3);
    source(&daemon, |source| source["waits_for_transactions"].as_u64() > Some(0));
    assert_eq!(bodies(&daemon, 9), [1]);
    other.run("commit prepared 'later'");
    wait_for_stored(&daemon, 3);
    assert_eq!(bodies(&daemon, 9), [1, 2, 3]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn autovacuum_keeps_nothing_back_from_a_user_who_sees_little_of_others() {
    let Some((server, session, fixture)) = shop("") else { return };
    session.run("create role reader login password 'a password'; grant select on outbox to reader");
    fixture.write("orders.toml", &definition_of(&server, "").replace("app@", "reader@"));
    insert(&session, "a", 1);
    let daemon = fixture.start();
    wait_for_stored(&daemon, 1);
    session.run(LARGE);
    session.run("alter system set autovacuum_naptime = 1");
    session.run("select pg_reload_conf()");
    session.run("delete from large where n % 2 = 0");
    let workers = "select count(*) from pg_stat_activity where backend_type = 'autovacuum worker' \
                   and datname = 'shop' and query like '%large%'";
    let clock = SystemClock::default();
    while session.number(workers) == 0 {
        assert!(clock.elapsed() < Duration::from_secs(60), "autovacuum is at work");
        pause_between_looks();
    }
    session.run("begin");
    insert(&session, "a", 2);
    session.run("rollback");
    insert(&session, "a", 3);
    wait_for_stored(&daemon, 2);
    assert!(session.number(workers) > 0, "it is at work all the while");
    assert_eq!(bodies(&daemon, 9), [1, 3]);
    assert_eq!(daemon.stop(), Some(0));
}
