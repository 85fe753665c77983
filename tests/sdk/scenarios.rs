//! Each scenario, played.

use crate::fixture::promises::promises;
use crate::fixture::skip::skip;
use crate::sdk::kit::sources;
use crate::sdk::play::play;
use crate::sdk::play::play_configured;
use crate::sdk::play::play_encrypted;
use crate::sdk::play::play_encrypted_and_signed;
use crate::sdk::play::play_signed;
use crate::sdk::play::show;

/// A key that may do everything, one that may only send to some queues, and one that may only receive from them.
const KEYS: &str = r#"
[[key]]
name = "everything"
key_env = "SERIATIM_SECRET"
rights = ["manage"]

[[key]]
name = "sender"
key_env = "SERIATIM_SENDER_SECRET"
rights = ["send"]
queues = ["open-*"]

[[key]]
name = "receiver"
key_env = "SERIATIM_RECEIVER_SECRET"
rights = ["listen"]
queues = ["open-*"]
"#;

promises! {
    python_settles_messages_as_service_bus_does: play("python/settle.py");
    python_settles_messages_as_service_bus_does_with_asyncio: play("python/settle_aio.py");
    python_takes_sessions_as_service_bus_gives_them: play("python/sessions.py");
    python_sends_big_double_and_scheduled_messages: play("python/send.py");
    python_sends_to_topics_and_receives_from_subscriptions_of_an_emulators_file:
        play_configured("python/topics.py", "topics.json");
    python_settles_deferred_messages_in_each_way: play("python/deferred.py");
    python_schedules_messages_of_sessions: play("python/scheduling.py");
    python_renews_locks_in_the_background: play("python/renewing.py");
    python_receives_looks_and_gives_back: play("python/receiving.py");
    python_lists_the_sessions_of_queues_and_subscriptions:
        play_configured("python/listing_sessions.py", "topics.json");
    python_describes_every_field_of_queues_topics_and_subscriptions:
        play_encrypted("python/descriptions.py", "queues.json");
    python_makes_rules_of_every_kind: play_encrypted("python/rules.py", "queues.json");
    keys_and_signed_tokens_give_their_rights_in_python:
        play_encrypted_and_signed("python/rights.py", "rights.json", KEYS);
    samples_of_the_emulator_work_with_its_file: play_configured("python/emulator.py", "emulator.json");
    proton_sends_and_settles_with_transactions: play("python/transactions.py");
    javascript_manages_the_rules_of_subscriptions: play_configured("js/rules.mjs", "topics.json");
    python_administers_queues_topics_and_rules: play_encrypted("python/administration.py", "queues.json");
    javascript_administers_queues_topics_and_rules: play_encrypted("js/administration.mjs", "queues.json");
    javascript_describes_queues_topics_subscriptions_and_rules:
        play_encrypted("js/descriptions.mjs", "queues.json");
    celery_works_at_a_name_of_azures: play("python/celery_worker.py");
    celery_works_on_storage_queues: play("python/celery_storage.py");
    techniques_built_on_service_bus_work_in_python: play("python/techniques.py");
    a_message_nobody_settles_is_dead_lettered_after_its_tenth_delivery: play("python/tenth_delivery.py");
    what_python_was_told_is_durable_survives_a_kill: play("python/kill.py");
    under_load_nothing_is_lost_and_sessions_stay_in_order_while_the_daemon_is_killed:
        play("python/kill_load.py");
    javascript_settles_messages_as_service_bus_does: play("js/settle.mjs");
    javascript_settles_messages_over_the_management: play("js/settled_elsewhere.mjs");
    javascript_hands_messages_to_handlers: play("js/streaming.mjs");
    javascript_receives_in_each_way_what_was_sent: play_configured("js/received_as_sent.mjs", "topics.json");
    javascript_takes_sessions_as_service_bus_gives_them: play("js/sessions.mjs");
    python_uses_storage_queues: play("python/storage.py");
    python_uses_storage_queues_with_asyncio: play("python/storage_aio.py");
    what_storage_queues_accepted_survives_a_kill: play("python/storage_kill.py");
    javascript_uses_storage_queues: play("js/storage.mjs");
    a_connection_string_needs_a_key_where_keys_are_demanded: play_signed("python/keys.py", KEYS);
    requests_to_storage_queues_are_signed_where_keys_are_demanded:
        play_signed("python/storage_keys.py", KEYS);
    python_comes_in_tls_and_over_websockets: play_encrypted("python/encrypted.py", "queues.json");
    javascript_comes_in_tls_and_over_websockets: play_encrypted("js/encrypted.mjs", "queues.json");
}

/// Its packages take a minute or two of a processor to build, so it is played when it is asked for.
#[test]
fn a_rust_program_uses_queues_sessions_and_topics() {
    if std::env::var_os("SERIATIM_SDK_RUST").is_some() {
        play_configured("rust/azservicebus", "rust/Config.json");
    } else {
        skip("rust/azservicebus", "set SERIATIM_SDK_RUST=1 to build and play it");
    }
}

#[test]
fn the_examples_do_what_they_say() {
    show("python/position.py");
    show("python/retry.py");
    show("js/later.mjs");
    show("python/routing.py");
    show("python/passing_on.py");
}

#[test]
fn every_scenario_is_played() {
    let tests = include_str!("scenarios.rs");
    let root = sources();
    for (folder, extension) in [("python", "py"), ("js", "mjs")] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the scenarios are there") {
            let path = entry.expect("the folder can be read").path();
            let is_scenario = path.extension().is_some_and(|found| found == extension)
                && path.file_stem().is_some_and(|stem| stem != "stage");
            let name = format!("{folder}/{}", path.file_name().expect("a file").to_string_lossy());
            assert!(!is_scenario || tests.contains(&format!("\"{name}\"")), "{name} is never played");
        }
    }
}
