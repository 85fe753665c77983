//! Definitions that change while the daemon runs.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::daemon::fixture::Fixture;
use crate::fixture::pause_between_looks;

#[test]
fn a_definition_that_changes_is_in_force_at_once_and_one_that_is_wrong_changes_nothing() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "order = \"arrival\"\n[[handler]]\nexec = [\"true\"]\n");
    let daemon = fixture.start();
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    fixture.write("orders.toml", "order = \"arrival\"\n[[handler]]\nexec = [\"no-such-program\"]\n");
    fixture.write("bills.toml", "order = \"arrival\"\n");
    let definitions = daemon.wait_for("/v1/status", |view| !view["reload_problem"].is_null());
    let why = definitions["reload_problem"].as_str().unwrap();
    assert!(why.contains("orders.toml:3") && why.contains("no-such-program"), "{why}");
    assert_eq!(daemon.ask("GET", "/v1/queues/bills", &[], b"").0, 404, "a whole set or nothing");
    let definitions = daemon.json("GET", "/v1/definitions", &Value::Null);
    assert_eq!(definitions["problem"], why);
    assert_eq!(definitions["definitions"][0]["problem"], why);
    let successful = |number: u8| {
        let (_, metrics) = daemon.ask("GET", "/metrics", &[], b"");
        metrics.contains(&format!("\nseriatim_definitions_last_reload_successful {number}\n"))
    };
    assert!(successful(0));
    fixture.write("orders.toml", "order = \"arrival\"\n[[handler]]\nexec = [\"sh\", \"-c\", \"exit 0\"]\n");
    daemon.wait_for("/v1/status", |view| view["reload_problem"].is_null());
    assert!(successful(1));
    assert!(daemon.json("GET", "/v1/definitions", &Value::Null).get("problem").is_none());
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("b"));
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 2);
    assert_eq!(daemon.ask("GET", "/v1/queues/bills", &[], b"").0, 200);
    assert_eq!(daemon.stop(), Some(0));
}

/// A handler that notes which attempt it is, and goes on when somebody writes to the pipe.
const WAITING: &str =
    "[[handler]]\nexec = [\"sh\", \"-c\", \"echo $SERIATIM_DELIVERY_COUNT >> counts; cat go\"]\n";

#[test]
fn a_handler_outlives_the_change_and_the_end_of_its_definition() {
    let fixture = Fixture::new();
    let go = fixture.pipe("go");
    fixture.write("orders.toml", WAITING);
    let daemon = fixture.start_with(&["--drain", "0s"]);
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
    daemon.wait_for("/v1/status", |view| view["handlers_running"] == 1);
    fixture.write("orders.toml", "[[handler]]\nexec = [\"true\"]\n");
    daemon.json("POST", "/v1/definitions/reload", &Value::Null);
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("b"));
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    fixture.remove("orders.toml");
    daemon.json("POST", "/v1/definitions/reload", &Value::Null);
    assert_eq!(daemon.json("GET", "/v1/status", &Value::Null)["handlers_running"], 1);
    std::fs::write(go, "").unwrap();
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 2);
    let counts = std::fs::read_to_string(fixture.path().join("workflows/counts")).unwrap();
    assert_eq!(counts, "1\n", "it was never ended nor tried again");
    assert_eq!(daemon.stop(), Some(0));
}

/// Children that run on, the first of which waits for somebody to write to the pipe.
const PERSISTENT: &str = "[[handler]]\nprocesses = 1\nin_flight_max = 4\n\
    persistent = [\"sh\", \"-c\", \"read line; cat go; echo '{\\\"id\\\":1}'; cat\"]\n";

#[test]
fn what_waits_for_a_child_is_given_back_uncounted_when_its_definition_changes() {
    let fixture = Fixture::new();
    let go = fixture.pipe("go");
    fixture.write("orders.toml", PERSISTENT);
    let daemon = fixture.start_with(&["--drain", "0s"]);
    for workflow in 0..4 {
        daemon.send("orders", &format!("{{\"workflow_id\":\"{workflow}\",\"body\":1}}\n"));
    }
    daemon.wait_for("/v1/status", |view| view["handlers_running"] == 4);
    fixture.write(
        "orders.toml",
        "[[handler]]\nexec = [\"sh\", \"-c\", \"echo $SERIATIM_DELIVERY_COUNT >> counts\"]\n",
    );
    daemon.json("POST", "/v1/definitions/reload", &Value::Null);
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 3);
    let counts = std::fs::read_to_string(fixture.path().join("workflows/counts")).unwrap();
    assert_eq!(counts, "1\n1\n1\n");
    std::fs::write(go, "").unwrap();
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 4);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_key_that_was_taken_out_opens_nothing_after_a_reload() {
    let fixture = Fixture::new();
    let keys = fixture.path().join("keys.toml");
    let shop = "k".repeat(43);
    std::fs::write(fixture.path().join("shop.key"), &shop).unwrap();
    std::fs::write(&keys, "[[key]]\nname = \"shop\"\nkey_file = \"shop.key\"\nrights = [\"manage\"]\n")
        .unwrap();
    let daemon = fixture.start_with(&["--keys", keys.to_str().unwrap()]);
    let ask = |method, path: &str, key: &str| {
        daemon.ask(method, path, &[("authorization", &format!("Bearer {key}"))], b"").0
    };
    assert_eq!(ask("GET", "/v1/queues", &shop), 200);
    let till = "t".repeat(43);
    std::fs::write(fixture.path().join("shop.key"), &till).unwrap();
    assert_eq!(ask("POST", "/v1/definitions/reload", &shop), 200);
    assert_eq!((ask("GET", "/v1/queues", &shop), ask("GET", "/v1/queues", &till)), (401, 200));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_mistake_in_definitions_keeps_no_key_in_force_and_one_in_keys_keeps_no_definition_back() {
    let fixture = Fixture::new();
    let path = |name: &str| fixture.path().join(name);
    let (shop, till, ops) = ("k".repeat(43), "t".repeat(43), "o".repeat(43));
    let entry = |name: &str| {
        format!("[[key]]\nname = \"{name}\"\nkey_file = \"{name}.key\"\nrights = [\"manage\"]\n")
    };
    std::fs::write(path("shop.key"), &shop).unwrap();
    std::fs::write(path("ops.key"), &ops).unwrap();
    std::fs::write(path("keys.toml"), format!("{}{}", entry("shop"), entry("ops"))).unwrap();
    let daemon = fixture.start_with(&["--keys", path("keys.toml").to_str().unwrap()]);
    let ask = |method, path: &str, key: &str| {
        daemon.ask(method, path, &[("authorization", &format!("Bearer {key}"))], b"")
    };
    std::fs::write(path("shop.key"), &till).unwrap();
    fixture.write("orders.toml", "ordr = \"arrival\"\n");
    let (status, said) = ask("POST", "/v1/definitions/reload", &ops);
    assert!(status == 409 && said.contains("definition_invalid") && said.contains("orders.toml:1"), "{said}");
    assert_eq!((ask("GET", "/v1/queues", &shop).0, ask("GET", "/v1/queues", &till).0), (401, 200));
    std::fs::write(path("keys.toml"), "[[key]]\n").unwrap();
    fixture.write("orders.toml", "order = \"arrival\"\n");
    let (status, said) = ask("POST", "/v1/definitions/reload", &ops);
    assert!(status == 409 && said.contains("credentials_invalid"), "{said}");
    assert_eq!(ask("GET", "/v1/queues/orders", &till).0, 200);
    let metrics = ask("GET", "/metrics", &ops).1;
    assert!(metrics.contains("\nseriatim_definitions_last_reload_successful 1\n"), "{metrics}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn definitions_are_read_again_when_the_link_to_them_changes_and_when_their_folder_is_another() {
    let fixture = Fixture::new();
    let folder = fixture.path().join("workflows");
    let write = |version: &str, concurrency: usize| {
        std::fs::create_dir_all(folder.join(version)).unwrap();
        let text = format!("[delivery]\nconcurrency = {concurrency}\n");
        std::fs::write(folder.join(version).join("orders.toml"), text).unwrap();
    };
    // As volumes of Kubernetes do it.
    write("..first", 1);
    std::os::unix::fs::symlink("..first", folder.join("..data")).unwrap();
    std::os::unix::fs::symlink("..data/orders.toml", folder.join("orders.toml")).unwrap();
    let daemon = fixture.start();
    let loaded_at = |view: &Value| view["definitions"][0]["loaded_at"].clone();
    let first = loaded_at(&daemon.json("GET", "/v1/definitions", &Value::Null));
    assert!(first.is_string(), "{first}");
    write("..second", 2);
    std::os::unix::fs::symlink("..second", folder.join("..new")).unwrap();
    std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    let second = loaded_at(&daemon.wait_for("/v1/definitions", |view| loaded_at(view) != first));
    std::fs::rename(&folder, fixture.path().join("before")).unwrap();
    daemon.wait_for("/v1/status", |view| !view["reload_problem"].is_null());
    std::fs::create_dir(&folder).unwrap();
    fixture.write("orders.toml", "[delivery]\nconcurrency = 3\n");
    let third = loaded_at(&daemon.wait_for("/v1/definitions", |view| loaded_at(view) != second));
    fixture.write("orders.toml", "[delivery]\nconcurrency = 4\n");
    daemon.wait_for("/v1/definitions", |view| loaded_at(view) != third);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_queue_that_is_gone_is_there_again_once_somebody_asks_for_its_definitions() {
    for hangs_up in [false, true] {
        let fixture = Fixture::new();
        fixture.write("orders.toml", "[idle]\ndelete_after = \"1s\"\n");
        let daemon = fixture.start();
        let is_there = || daemon.ask("GET", "/v1/queues/orders", &[], b"").0 == 200;
        let clock = SystemClock::default();
        let wait_until = |is_wanted: bool| {
            while is_there() != is_wanted {
                assert!(clock.elapsed() < Duration::from_secs(60), "it is not as it should be: {is_wanted}");
                match (is_wanted, hangs_up) {
                    (false, _) => {}
                    (true, false) => drop(daemon.json("POST", "/v1/definitions/reload", &Value::Null)),
                    (true, true) => daemon.hang_up(),
                }
                pause_between_looks();
            }
        };
        wait_until(false);
        wait_until(true);
        assert_eq!(daemon.stop(), Some(0));
    }
}

/// What waits for the next ticks of schedules.
const DUE: &str = "/v1/queues/seriatim.schedules/messages";

#[test]
fn definitions_that_are_asked_for_and_have_not_changed_disturb_nothing() {
    let fixture = Fixture::new();
    let program = "echo begun >> begun\nwhile read -r line; do echo \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/{\"id\":\\1}/'; done\n";
    fixture.write("echo.sh", program);
    let schedule = "[[schedule]]\nname = \"nightly\"\ncron = \"30 2 * * *\"\n";
    let handler = "[[handler]]\nprocesses = 1\npersistent = [\"sh\", \"echo.sh\"]\n";
    fixture.write("orders.toml", &format!("{handler}{schedule}"));
    fixture.write("mail.toml", "[subscription]\ntopic = \"paid\"\n");
    let log = fixture.path().join("log");
    let file = std::fs::File::create(&log).expect("the folder can be written");
    let daemon = fixture.start_as(fixture.command().env("SERIATIM_LOG", "info").stderr(file));
    let waiting = || daemon.json("GET", DUE, &Value::Null)["messages"].clone();
    let before = waiting();
    for count in 1..=2 {
        daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
        daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == count);
        daemon.json("POST", "/v1/definitions/reload", &Value::Null);
    }
    assert_eq!(std::fs::read_to_string(fixture.path().join("workflows/begun")).unwrap(), "begun\n");
    assert_eq!(waiting(), before);
    let audit = daemon.json("GET", "/v1/audit", &Value::Null);
    assert!(!audit.to_string().contains("orders") && !audit.to_string().contains("paid"), "{audit}");
    assert_eq!(daemon.stop(), Some(0));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("new definitions"), "{log}");
}

/// The data of a time zone that is so many hours ahead, as an operating system keeps it.
fn zone_ahead(hours: u8) -> Vec<u8> {
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend((u32::from(hours) * 3_600).to_be_bytes());
    block.extend([0, 0]);
    block.extend(b"NEW\0");
    [&block[..], &block[..], format!("\nNEW-{hours}\n").as_bytes()].concat()
}

#[test]
fn new_rules_of_a_time_zone_are_in_force_once_somebody_asks_for_the_definitions() {
    let fixture = Fixture::new();
    let zones = fixture.path().join("zones");
    std::fs::create_dir_all(zones.join("Test")).unwrap();
    let write = |hours| std::fs::write(zones.join("Test/Town"), zone_ahead(hours)).unwrap();
    write(2);
    fixture.write(
        "orders.toml",
        "[[schedule]]\nname = \"noon\"\ncron = \"0 12 * * *\"\ntime_zone = \"Test/Town\"\n",
    );
    let daemon = fixture.start_as(fixture.command().env("TZDIR", &zones));
    let next = || daemon.json("GET", "/v1/schedules", &Value::Null).to_string();
    let due = || daemon.json("GET", DUE, &Value::Null).to_string();
    assert!(next().contains("T10:00:00") && due().contains("T10:00:00"), "{} {}", next(), due());
    write(3);
    daemon.json("POST", "/v1/definitions/reload", &Value::Null);
    for shown in [next(), due()] {
        assert!(shown.contains("T09:00:00") && !shown.contains("T10:00:00"), "{shown}");
    }
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn an_order_cannot_change_while_messages_are_stored() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "order = \"arrival\"\n");
    let daemon = fixture.start();
    daemon.json("POST", "/v1/queues/orders/messages", &Value::from("a"));
    fixture.write("orders.toml", "order = \"position\"\n");
    daemon.hang_up();
    let definitions = daemon.wait_for("/v1/status", |view| !view["reload_problem"].is_null());
    let why = definitions["reload_problem"].as_str().unwrap();
    assert!(why.contains("order cannot change while it stores a message"), "{why}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_reload_that_is_refused_leaves_the_options_of_queues_without_a_definition() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "order = \"position\"\n[[handler]]\nexec = [\"true\"]\n");
    let daemon = fixture.start();
    daemon.send("orders", r#"{"workflow_id":"w","position":1,"body":{}}"#);
    daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"] == 1);
    daemon.json("PUT", "/v1/queues/api", &json!({"delivery": {"lock": "5min"}}));
    let options = || daemon.json("GET", "/v1/queues/api", &Value::Null)["options"].clone();
    let before = options();
    // This first: alone it is refused, too.
    fixture.write("orders.toml", "order = \"arrival\"\n");
    fixture.write("api.toml", "");
    let (status, why) = daemon.ask("POST", "/v1/definitions/reload", &[], b"");
    assert!(status == 409 && why.contains("cannot change while it remembers workflows"), "{status} {why}");
    assert_eq!(options(), before);
    fixture.write("orders.toml", "order = \"position\"\n");
    assert_eq!(daemon.ask("POST", "/v1/definitions/reload", &[], b"").0, 200);
    assert_ne!(options(), before, "a definition is the whole of a queue's options");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_topic_with_the_name_of_a_queue_in_the_store_or_the_other_way_is_refused_before_anything_changes() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    let daemon = fixture.start();
    fixture.remove("orders.toml");
    fixture.write("mail.toml", "[subscription]\ntopic = \"orders\"\n");
    fixture.write("bills.toml", "");
    let reload = || daemon.ask("POST", "/v1/definitions/reload", &[], b"");
    let (status, why) = reload();
    assert!(status == 409 && why.contains("the queue orders is stored"), "{status} {why}");
    assert_eq!(daemon.ask("GET", "/v1/queues/bills", &[], b"").0, 404, "a whole set or nothing");
    fixture.write("mail.toml", "[subscription]\ntopic = \"paid\"\n");
    assert_eq!(reload().0, 200);
    fixture.remove("mail.toml");
    fixture.write("paid.toml", "");
    let (status, why) = reload();
    assert!(status == 409 && why.contains("a topic has this name"), "{status} {why}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn mistakes_are_shown_with_their_place_and_nothing_starts() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "ordr = \"position\"\n");
    let output = fixture.command().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("orders.toml:1:1\n  |\n1 | ordr = "), "{said}");
    assert!(said.contains("did you mean"), "{said}");
    assert!(said.ends_with("\nseriatim: cannot start: 1 mistake in the definitions\n"), "{said}");
    assert!(!fixture.path().join("data").exists(), "no store is made for definitions that are wrong");
}

#[test]
fn a_workflow_is_out_of_its_trouble_when_another_message_is_at_its_head_however_busy_it_is() {
    let fixture = Fixture::new();
    let script =
        "read body; if [ $body = 1 ]; then test -e mended; else until test -e done; do sleep 0.02; done; fi";
    let handler =
        format!("[[handler]]\nexec = [\"sh\", \"-c\", \"{script}\"]\n[retry]\ndelays = [\"50ms\"]\n");
    let notify = "[notify]\nafter = \"1ms\"\nexec = [\"sh\", \"-c\", \"cat >> notices\"]\n[delivery]\ncount_max = 10_000\n";
    fixture.write("orders.toml", &format!("{handler}{notify}"));
    let daemon = fixture.start();
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n{\"workflow_id\":\"w\",\"body\":2}\n");
    let path = fixture.path().join("workflows/notices");
    let has_notices = |count: usize| {
        let path = path.clone();
        move |_: &Value| std::fs::read_to_string(&path).unwrap_or_default().lines().count() >= count
    };
    daemon.wait_for("/v1/status", has_notices(1));
    fixture.write("mended", "");
    let in_hand = |queue: &Value| queue["counts"]["completed"] == 1 && queue["counts"]["locked"] == 1;
    daemon.wait_for("/v1/queues/orders", in_hand);
    daemon.wait_for("/v1/status", has_notices(2));
    daemon.wait_for("/v1/queues/orders", in_hand);
    fixture.write("done", "");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_second_message_that_fails_at_once_is_another_trouble_of_which_somebody_is_told() {
    let fixture = Fixture::new();
    let handler = "[[handler]]\nexec = [\"sh\", \"-c\", \"read body; test -e mended$body\"]\n[retry]\ndelays = [\"50ms\"]\n";
    let notify = "[notify]\nafter = \"1ms\"\nexec = [\"sh\", \"-c\", \"cat >> notices\"]\n[delivery]\ncount_max = 10_000\n";
    fixture.write("orders.toml", &format!("{handler}{notify}"));
    let daemon = fixture.start();
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n{\"workflow_id\":\"w\",\"body\":2}\n");
    let path = fixture.path().join("workflows/notices");
    let notices = || std::fs::read_to_string(&path).unwrap_or_default();
    daemon.wait_for("/v1/status", |_: &Value| notices().lines().count() >= 1);
    fixture.write("mended1", "");
    daemon.wait_for("/v1/status", |_: &Value| notices().lines().count() >= 3);
    let (blocked, recovered) = ("workflow_blocked", "workflow_recovered");
    assert_eq!((notices().matches(blocked).count(), notices().matches(recovered).count()), (2, 1));
    fixture.write("mended2", "");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn whom_a_definition_names_is_told_of_trouble_and_of_its_end() {
    let fixture = Fixture::new();
    let handler = "[[handler]]\nexec = [\"sh\", \"-c\", \"test -e mended\"]\n[retry]\ndelays = [\"50ms\"]\n";
    let notify = "[notify]\nafter = \"1ms\"\nexec = [\"sh\", \"-c\", \"cat >> notices\"]\n[delivery]\ncount_max = 10_000\n";
    fixture.write("orders.toml", &format!("{handler}{notify}"));
    let daemon = fixture.start();
    daemon.send("orders", "{\"workflow_id\":\"w\",\"body\":1}\n");
    let path = fixture.path().join("workflows/notices");
    let notices = |count: usize| {
        let is_there =
            |_: &Value| std::fs::read_to_string(&path).unwrap_or_default().lines().count() >= count;
        daemon.wait_for("/v1/status", is_there);
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let blocked = notices(1).remove(0);
    assert_eq!(
        (&blocked["type"], &blocked["workflow_id"]),
        (&Value::from("workflow_blocked"), &Value::from("w"))
    );
    fixture.write("mended", "");
    let recovered = notices(2).remove(1);
    assert_eq!(recovered["type"], "workflow_recovered");
    for field in ["queue", "workflow_id", "since"] {
        assert_eq!(recovered[field], blocked[field], "{recovered}");
    }
    assert!(recovered["recovered_at"].is_string(), "{recovered}");
    assert_eq!(daemon.stop(), Some(0));
}
