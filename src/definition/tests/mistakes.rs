//! Every mistake is told at its place, with what to write instead.

use std::path::Path;

use crate::definition::read::read;

/// The mistakes of a text: `line:column message; help`.
fn mistakes(text: &str) -> Vec<String> {
    match read(Path::new("orders.toml"), text).result {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes
            .iter()
            .map(|mistake| mistake.to_string().trim_start_matches("orders.toml:").trim().to_owned())
            .collect(),
    }
}

#[track_caller]
fn has(text: &str, mistake: &str) {
    assert_eq!(mistakes(text), [mistake], "{text}");
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let text = "name = \"a b\"\nordr = \"position\"\norder = \"positon\"\nkey = 3\n\n[delivery]\nlock = \"1 day\"\ncount_max = 0\n\
                [retry]\nthen = \"holt\"\n[[handler]]\nexec = []\ntimeout = true\n[[schedule]]\ncron = \"0 0 30 2 *\"\n";
    assert_eq!(
        mistakes(text),
        [
            "1:8: queue name has the character ' '; letters, digits and . _ - are allowed",
            "2:1: `ordr` is not known in a definition; did you mean `order`?",
            "3:9: `order` must be \"none\", \"arrival\", \"position\" or \"after\"; did you mean \"position\"?",
            "4:7: `key` must be text in quotes or a table, not a whole number",
            "7:8: `lock` must be from 1s to 12h",
            "8:13: `count_max` must be from 1 to 4294967295",
            "10:8: `then` must be \"hold\", \"skip\" or \"quarantine\"; did you mean \"hold\"?",
            "12:8: `exec` is empty",
            "13:11: `timeout` must be text in quotes or a whole number, not true or false",
            "14:1: [[schedule]] needs `name`",
            "15:9: cron: it never ticks: there is no day 30 in February; the last day there is 29",
        ]
    );
}

#[test]
fn a_definition_cannot_take_a_queue_of_the_daemons_own() {
    for name in ["seriatim.sources", "seriatim.service-bus", "seriatim.storage", "seriatim.outbox"] {
        let mistakes = read(Path::new("a.toml"), &format!("name = \"{name}\"\n")).result.unwrap_err();
        let described = mistakes[0].to_string();
        assert!(described.contains("the daemon keeps ") && described.contains(name), "{described}");
    }
}

#[test]
fn a_definition_cannot_take_the_queue_of_the_schedules() {
    let described = "the daemon keeps its schedules in the queue `seriatim.schedules`";
    has("name = \"seriatim.schedules\"\n", &format!("1:8: {described}"));
    let by_file = read(Path::new("seriatim.schedules.toml"), "").result.unwrap_err();
    assert!(by_file[0].to_string().contains(described), "{}", by_file[0]);
}

#[test]
fn a_history_of_nothing_is_told_by_line() {
    has("[limits]\nhistory_max = 0\n", "2:15: `history_max` must be from 1 to 9223372036854775807");
}

#[test]
fn a_pointer_that_is_nearly_one_is_not_sent_astray() {
    has("key = \"/a~2\"\n", "1:7: pointer \"/a~2\" is no JSON pointer: write `~0` for `~` and `~1` for `/`");
}

#[test]
fn what_is_not_toml_is_told_by_line() {
    assert_eq!(
        mistakes("name = \n"),
        ["1:8: not TOML: string values must be quoted, expected literal string"]
    );
    assert_eq!(mistakes("a = 1\na = 2\n").len(), 1);
}

#[test]
fn what_stands_in_the_wrong_table_is_sent_home() {
    has("lock = \"30s\"\n", "1:1: `lock` is not known in a definition; it belongs into [delivery]");
    has("processes = 3\n", "1:1: `processes` is not known in a definition; it belongs into [[handler]]");
    has(
        "rate = \"2/s\"\n",
        "1:1: `rate` is not known in a definition; it belongs into [delivery] or [[handler]]",
    );
    has("[retry]\nkey = \"/a\"\n", "2:1: `key` is not known in [retry]; it belongs into the top of the file");
    has(
        "[expiry]\ncolour = \"red\"\n",
        "2:1: `colour` is not known in [expiry]; known are keep_deferred, then, time_to_live",
    );
}

#[test]
fn a_table_of_a_list_has_two_brackets() {
    let text = "[handler]\nexec = [\"sh\"]\n";
    has(text, "1:1: `handler` must be a list in [ ], not a table; write [[handler]]");
}

#[test]
fn a_span_of_time_is_one_that_can_be_meant() {
    has(
        "[expiry]\ntime_to_live = \"1 month\"\n",
        "2:16: `time_to_live`: duration \"1 month\" is not like 30s, 5 min, 1h30m, 7d or PT5M",
    );
    has(
        "[gap]\nwait = 1\n",
        "1:1: in this order no message can be missing; leave [gap] out, or write order = \"position\" or \"after\"",
    );
    has("order = \"after\"\n[gap]\nwait = 0\n", "3:8: `wait` must be more than zero and at most 100 years");
    has("[delivery]\nlock = -1\n", "2:8: `lock` must be from 0 to 9223372036854775807");
    has(
        "[retry]\ndelays = [\"1s\", \"soon\"]\n",
        "2:17: `delays`: duration \"soon\" is not like 30s, 5 min, 1h30m, 7d or PT5M",
    );
}

#[test]
fn a_key_is_a_json_pointer() {
    has(
        "key = \"$.order.id\"\n",
        "1:7: pointer \"$.order.id\" is no JSON pointer: it does not begin with `/`; write /order/id for the member of the body",
    );
    has(
        "key = \"subject\"\n",
        "1:7: pointer \"subject\" is no JSON pointer: it does not begin with `/`; write { header = \"subject\" } for the header",
    );
    has(
        "key = { header = \"subject\", property = \"p\" }\n",
        "1:7: name one of pointer, header and property",
    );
    has("key = { pionter = \"/a\" }\n", "1:9: `pionter` is not known in [key]; did you mean `pointer`?");
    has(
        "message_id = { header = \"subjekt\" }\n",
        "1:25: `header` must be \"subject\", \"correlation_id\", \"reply_to\", \"message_id\" or \"content_type\"; did you mean \
         \"subject\"?",
    );
}

#[test]
fn what_has_no_effect_in_an_order_is_not_passed_over() {
    has(
        "position = \"/version\"\n",
        "1:12: `position` is read only in a queue with order = \"position\"; write order = \"position\", or leave `position` out",
    );
    has(
        "order = \"none\"\nkey = \"/id\"\n",
        "2:7: in a queue without order there are no workflows that a key could tell apart; leave `key` out, or give the queue an \
         order",
    );
    has(
        "order = \"none\"\n[retry]\nthen = \"hold\"\n",
        "3:8: a queue without order has no workflow that could stand still; write then = \"skip\", or give the queue an order",
    );
    has(
        "[duplicates]\nlate = \"refuse\"\n",
        "2:8: in this order no message can be late; leave `late` out, or write order = \"position\" or \"after\"",
    );
    has(
        "[retry]\ndelays = [\"1s\"]\nbackoff = { factor = 2 }\n",
        "3:11: `backoff` and `delays` both say when a message is tried again: leave one out",
    );
}

#[test]
fn one_mistake_is_not_told_twice() {
    // What goes with an order that is none is not known, and an attempt is not measured by what is wrong.
    has(
        "order = \"positon\"\nposition = \"/v\"\n[gap]\nwait = \"5m\"\n",
        "1:9: `order` must be \"none\", \"arrival\", \"position\" or \"after\"; did you mean \"position\"?",
    );
    has(
        "[delivery]\nrenew_for = \"0s\"\n[[handler]]\nexec = [\"sh\"]\ntimeout = \"1h\"\n",
        "2:13: `renew_for` must be more than zero and at most 100 years",
    );
    has("[[handler]]\nexec = 3\n", "2:8: `exec` must be a list in [ ], not a whole number");
}

#[test]
fn a_handler_does_one_thing_with_the_settings_of_that_thing() {
    has("[[handler]]\n", "1:1: this handler does nothing; give it one of exec, persistent, http, forward");
    has(
        "[[handler]]\nexec = [\"sh\"]\nhttp = \"https://example.com\"\n",
        "3:8: a handler has one of exec, persistent, http, forward; this one has `exec` and `http`",
    );
    has(
        "[[handler]]\nexec = [\"sh\"]\nprocesses = 2\n",
        "3:13: `processes` says nothing here: it belongs to persistent",
    );
    has(
        "[[handler]]\nexec = [\"sh\"]\nsubject = \"a\"\n[[handler]]\nexec = [\"sh\"]\nsubject = \"a\"\n",
        "6:11: the subject `a` has a handler already, on line 3",
    );
    has(
        "[[handler]]\nexec = [\"sh\"]\n[[handler]]\nexec = [\"sh\"]\n",
        "3:1: every other subject has a handler already, on line 1",
    );
    has(
        "[[handler]]\nexec = [\"sh\"]\ntimeout = \"10m\"\n",
        "3:11: after 5m the lock is not renewed any more, so no attempt can take 10m; write renew_for = \"10m\" in [delivery]",
    );
    has(
        "[[handler]]\nexec = [\"sh\"]\nenv = { SERIATIM_QUEUE = \"a\" }\n",
        "3:7: `SERIATIM_QUEUE` is set by the daemon: names with SERIATIM_ are its own",
    );
    has(
        "[[handler]]\nexec = [\"sh\"]\nenv = { A = \"a\\u0000b\" }\n",
        "3:7: no environment variable has a value with a zero byte",
    );
    has("[[handler]]\nexec = [\"sh\", 3]\n", "2:15: `exec` must be text in quotes, not a whole number");
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let program = |program: &str| mistakes(&format!("[[handler]]\nexec = [\"{program}\"]\n")).remove(0);
    let expected = "2:8: there is no program `seriatim-no-such-program` on the PATH; write its path, or see that it is \
                    installed and on the PATH";
    assert_eq!(program("seriatim-no-such-program"), expected);
    assert!(program("./no/such/program").starts_with("2:8: ./no/such/program cannot be opened: "));
    assert!(program("./src").starts_with("2:8: "));
}

#[test]
fn a_program_is_looked_for_on_the_path_that_it_will_have() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("only-here");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let found = |program: &str, path: &str| {
        mistakes(&format!("[[handler]]\nexec = [\"{program}\"]\nenv = {{ PATH = \"{path}\" }}\n"))
    };
    assert_eq!(found("only-here", folder.path().to_str().unwrap()), [""; 0]);
    let missed = found("sh", folder.path().to_str().unwrap()).remove(0);
    assert!(missed.starts_with("2:8: there is no program `sh` on the PATH of its `env`; "), "{missed}");
    assert_eq!(found("sh", "src:/bin"), [""; 0], "a folder of the definition's does not end the search");
}

#[test]
fn a_url_is_one_that_may_be_called() {
    has(
        "[[handler]]\nhttp = \"http://127.0.0.1:9000/\"\n",
        "2:8: `http://127.0.0.1:9000/` leads to 127.0.0.1, which is not a public address; write allow_private = true if that is meant",
    );
    has(
        "[notify]\nhttp = \"example.com\"\n",
        "2:8: `example.com` is no URL: it begins with neither http:// nor https://",
    );
    has(
        "[[handler]]\nforward = \"http://host:7700\"\n",
        "2:11: `http://host:7700` names no queue; write http://host:7700/queue",
    );
    has(
        "[[handler]]\nforward = \"http://10.0.0.1:7700/orders\"\n",
        "2:11: `http://10.0.0.1:7700/orders` leads to 10.0.0.1, which is not a public address; write allow_private = true \
         if that is meant",
    );
    has(
        "[[handler]]\nforward = \"orders-eu\"\nkey_env = \"K\"\n",
        "3:11: `key_env` says nothing here: it belongs to a queue of another daemon, http://host:port/queue",
    );
    has(
        "[[handler]]\nhttp = \"https://example.com\"\nsecret_file = \"no-such-file\"\n",
        "3:15: no-such-file cannot be opened: No such file or directory (os error 2)",
    );
    has(
        "[[handler]]\nhttp = \"https://example.com\"\nsecret_file = \"Cargo.toml\"\nsecret_env = \"S\"\n",
        "4:14: the secret is in `secret_file` or in `secret_env`, not in both",
    );
}

#[test]
fn a_password_in_a_url_is_not_shown_with_its_mistake() {
    for (text, place) in [
        (
            "key = \"/id\"\n[source]\npostgres = \"postgres://app:hidden@db/shop\"\ntable = \"outbox\"\n",
            "orders.toml:3:12",
        ),
        (
            "key = \"/id\"\n[source]\npostgres = \"postgres:/app:hidden@db/shop\"\ntable = \"outbox\"\n",
            "orders.toml:3:12",
        ),
        ("[[handler]]\nhttp = \"https://app:hidden@example.com/\"\n", "orders.toml:2:8"),
        ("[[handler]]\nforward = \"ftp://app:hidden@example.com/q\"\n", "orders.toml:2:11"),
        ("handler = [{ http = \"https://app:hidden@example.com/\", ouput = 1 }]\n", "orders.toml:1:"),
        ("[source]\npostgress = \"postgres://app:hidden@db/shop\"\n", "orders.toml:2:"),
        ("[[handler]]\nhttp = \"https://app:hidden@example.com/\n", "orders.toml:2:"),
        (
            "key = \"/id\"\n[source]\npostgres = \"postgres://db/shop?user=app&password=hidden\"\n",
            "orders.toml:3:",
        ),
        ("key = \"/id\"\n[source]\npostgres = \"host=db user=app password=hidden\"\n", "orders.toml:3:"),
        ("[source]\npassword = \"hidden\"\n", "orders.toml:2:"),
    ] {
        let mistakes = read(Path::new("orders.toml"), text).result.unwrap_err();
        let shown: String =
            mistakes.iter().map(|mistake| format!("{mistake}\n{}\n", mistake.render(false))).collect();
        assert!(shown.contains(&format!("--> {place}")) && !shown.contains("hidden"), "{shown}");
    }
}

#[test]
fn a_private_address_is_found_in_every_notation_when_the_definition_is_read() {
    for host in [
        "127.1",
        "2130706433",
        "0x7f.1",
        "[::ffff:a00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "100.64.0.1",
        "127.0.0.1.",
    ] {
        let found = mistakes(&format!("[[handler]]\nhttp = \"http://{host}/\"\n"));
        assert!(
            found.len() == 1 && found[0].starts_with("2:8: ") && found[0].contains(host),
            "{host}: {found:?}"
        );
    }
}

#[test]
fn a_secret_can_be_read_and_used_when_the_definition_is_read() {
    has(
        "[[handler]]\nhttp = \"https://example.com\"\nsecret_env = \"SERIATIM_NO_SUCH_SECRET\"\n",
        "3:14: secret is not set: there is no environment variable SERIATIM_NO_SUCH_SECRET",
    );
    has(
        "[[handler]]\nhttp = \"https://example.com\"\nsecret_env = \"PATH\"\n",
        "3:14: secret does not begin with whsec_",
    );
    has(
        "[[handler]]\nforward = \"https://example.com/orders\"\nkey_env = \"SERIATIM_NO_SUCH_KEY\"\n",
        "3:11: key is not set: there is no environment variable SERIATIM_NO_SUCH_KEY",
    );
    let file = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let found = mistakes(&format!("[notify]\nhttp = \"https://example.com\"\nca_file = \"{file}\"\n"));
    assert!(found[0].starts_with("3:11: ") && found[0].contains("it holds no certificate"), "{found:?}");
}

#[test]
fn a_schedule_is_one_that_can_tick_and_be_sent() {
    let tick = "[[schedule]]\nname = \"t\"\ncron = \"@daily\"\n";
    has(
        &format!("order = \"position\"\n{tick}"),
        "2:1: a tick has no place in a queue ordered by position or by predecessor; let it tick in a queue of its own, whose \
         handler sends the messages",
    );
    has(
        &format!("key = \"/id\"\n{tick}body = {{ kind = \"t\" }}\n"),
        "2:1: a tick could not be sent: workflow ID is read from /id, which is missing; the queue takes its messages like this; \
         give the schedule a workflow_id or a body that fits",
    );
    has(
        &format!("limits.body_bytes_max = 4\n{tick}body = \"long\"\n"),
        "2:1: a tick could not be sent: its body has 6 bytes, the queue takes 4; give it a smaller body, or raise \
         limits.body_bytes_max",
    );
    has(&format!("{tick}{tick}"), "5:8: there is a schedule `t` already, on line 2");
    has(
        "[[schedule]]\nname = \"t\"\ncron = \"0 2 * * mo\"\n",
        "3:17: cron: weekday: `mo` is no weekday; write numbers from 0 to 7, or SUN to SAT; `*`, `a-b`, `a,b` and `*/n`",
    );
    has(&format!("{tick}body = nan\n"), "4:8: the body holds inf or nan, for which JSON has no word");
    has(
        "[[schedule]]\nname = \"a b\"\ncron = \"@daily\"\n",
        "2:8: the schedule's name has the character ' '; letters, digits and . _ - are allowed",
    );
}

#[test]
fn a_wrong_time_zone_does_not_hide_a_wrong_line() {
    let text = "[[schedule]]\nname = \"t\"\ncron = \"0 99 * * *\"\ntime_zone = \"Europe/Berln\"\n";
    assert_eq!(
        mistakes(text),
        [
            "3:11: cron: hour: 99 is not from 0 to 23",
            "4:13: there is no time zone `Europe/Berln`; did you mean Europe/Berlin?"
        ]
    );
}

#[test]
fn a_schedule_or_a_source_has_a_name_that_leaves_room_for_that_of_its_queue() {
    let queue = |length: usize| format!("name = \"{}\"\nkey = \"/id\"\n", "q".repeat(length));
    let tick = "[[schedule]]\nname = \"nightly\"\ncron = \"@daily\"\nworkflow_id = \"w\"\n";
    let source = "[source]\npostgres = \"postgres://app@localhost/shop\"\ntable = \"outbox\"\n";
    assert_eq!(mistakes(&format!("{}{tick}", queue(120))), [""; 0]);
    assert_eq!(mistakes(&format!("{}{source}", queue(121))), [""; 0]);
    let too_long = |what: &str| {
        format!(
            "the name of the queue and that of the {what} have 128 bytes together, at most 127 are allowed; write a shorter name \
             for one of them"
        )
    };
    has(&format!("{}{tick}", queue(121)), &format!("4:8: {}", too_long("schedule")));
    has(&format!("{}{source}", queue(122)), &format!("3:1: {}", too_long("source")));
    has(&format!("{}{source}name = \"nightly\"\n", queue(121)), &format!("6:8: {}", too_long("source")));
}

#[test]
fn a_row_has_a_place_where_the_order_asks_for_one() {
    let source = "[source]\npostgres = \"postgres://app@localhost/shop\"\ntable = \"outbox\"\n";
    for (order, column) in [("position", "version"), ("after", "previous")] {
        let queue = format!("key = \"/id\"\norder = \"{order}\"\n");
        has(
            &format!("{queue}{source}"),
            &format!(
                "3:1: nothing says which place a row has, and order = \"{order}\" needs it; name the column in `columns`, as \
                 `{order}`, or give the queue `{order}`"
            ),
        );
        let by_column = format!("{queue}{source}columns = {{ {order} = \"{column}\" }}\n");
        assert_eq!(mistakes(&by_column), [""; 0]);
        assert_eq!(mistakes(&format!("{queue}{order} = \"/{column}\"\n{source}")), [""; 0]);
    }
}

#[test]
fn one_file_has_so_many_mistakes_and_no_more() {
    let text: String = (0..500).map(|number| format!("x{number} = 1\n")).collect();
    assert_eq!(mistakes(&text).len(), crate::limits::MISTAKES_MAX);
}

#[test]
fn a_rate_of_nothing_is_told_beside_other_mistakes() {
    let text = "[delivery]\nrate = \"0/s\"\nlock = \"1ms\"\n[[handler]]\nexec = [\"sh\"]\nrate = \"5/s\"\nburst = 0\n";
    assert_eq!(
        mistakes(text),
        [
            "2:8: rate must be 1 to 1000000 messages",
            "3:8: `lock` must be from 1s to 12h",
            "7:9: `burst` must be from 1 to 1000000",
        ]
    );
}
