//! What the fuzzer has found, and what was made up by hand, on every compiler.

use std::path::Path;

use super::amqp;
use super::definition::definition;
use super::send::send;
use super::store::store;

#[test]
fn a_file_of_which_bytes_were_changed_is_refused_or_serves_what_was_sent() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/store");
    // The published package has no corpus.
    for file in corpus.read_dir().into_iter().flatten() {
        let file = file.expect("the folder can be read").path();
        println!("{}", file.display());
        store(&std::fs::read(file).expect("it is there"));
    }
}

#[test]
fn bits_flipped_all_over_are_refused_or_serve_what_was_sent() {
    for which in 0..2 {
        for n in 0..40_u32 {
            let place = n.wrapping_mul(2_654_435_761).to_le_bytes();
            store(&[&[which], &[0; 4][..], &place, &[1 << (n % 8)]].concat());
        }
    }
}

#[test]
fn a_definition_with_bytes_changed_is_read_or_shows_its_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows");
    for file in folder.read_dir().expect("definitions ship").flatten() {
        let text = std::fs::read(file.path()).expect("it is there");
        for n in 0..400_u32 {
            definition(&changed(&text, n));
        }
    }
    for made_up in
        ["", "=", "[", "[[handler]]", "name = 1", "[[schedule]]\ncron = \"\u{e9} * * * *\"", "\u{feff}"]
    {
        definition(made_up.as_bytes());
    }
}

#[test]
fn a_line_to_send_with_bytes_changed_is_refused_or_stays_what_it_is() {
    let lines = [
        r#"{"queue":"q","workflow_id":"w","position":3,"after":"a","message_id":"m","properties":{"p":1.5,"b":{"base64":"AA=="}},"time_to_live":"1h","schedule_at":"2027-01-01T00:00:00Z","body":{"a":[1,2,{"b":null}]}}"#,
        r#"{"first":true,"body_base64":"AAEC","content_type":"application/json"}"#,
        r#"{"outcome":"retry","retry_after":"5m","reason":"busy"}"#,
        r#"{"outcome":"complete","state":{"n":1},"send":[{"queue":"q","body_text":"x"}]}"#,
    ];
    for line in lines {
        send(line.as_bytes());
        for n in 0..2_000 {
            send(&changed(line.as_bytes(), n));
        }
    }
}

#[test]
fn amqp_with_bytes_changed_is_answered_within_its_bounds() {
    for (folder, play) in [("amqp_connection", amqp::connection as fn(&[u8])), ("amqp_codec", amqp::codec)] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(folder);
        // The published package has no corpus.
        for file in corpus.read_dir().into_iter().flatten() {
            let file = file.expect("the folder can be read").path();
            println!("{}", file.display());
            let data = std::fs::read(file).expect("it is there");
            play(&data);
            for n in 0..2_000 {
                play(&changed(&data, n));
            }
        }
    }
}

/// A text with one byte flipped, left out, or put in twice.
fn changed(text: &[u8], n: u32) -> Vec<u8> {
    let mut changed = text.to_vec();
    if changed.is_empty() {
        return changed;
    }
    let chance = n.wrapping_mul(2_654_435_761);
    let place = chance as usize % changed.len();
    match n % 3 {
        0 => changed[place] ^= 1 << (chance >> 29),
        1 => drop(changed.remove(place)),
        _ => changed.insert(place, changed[place]),
    }
    changed
}
