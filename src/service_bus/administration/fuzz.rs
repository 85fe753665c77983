//! Documents of administration clients, of any bytes: what is understood is written so that it is read again as the same, and the rest
//! is refused. The fuzzer calls it with bytes that it makes up, the tests with those it has found.
#![cfg_attr(not(fuzzing), expect(unreachable_pub, reason = "only the fuzzer reaches it from outside"))]

use crate::clock::Timestamp;
use crate::service_bus::administration::atom::INSTANCE;
use crate::service_bus::administration::document;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::queues;
use crate::service_bus::administration::rule_xml;
use crate::service_bus::administration::rules;
use crate::service_bus::administration::subscriptions;
use crate::service_bus::administration::topics;
use crate::service_bus::description::RuleSettings;
use crate::topic::Rule;
use crate::xml::Xml;

/// Reads a document as each kind of entity.
pub fn administration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for element in [queues::ELEMENT, topics::ELEMENT, subscriptions::ELEMENT] {
        check_entity(text, element);
    }
    if let Ok((rule, settings)) = document::read(text, rules::ELEMENT, rule_xml::read) {
        let written = written(&rule, &settings);
        let again = document::read(&written, rules::ELEMENT, rule_xml::read);
        let (again, settings_again) =
            again.unwrap_or_else(|refused| panic!("{written} is refused: {refused:?}"));
        // Written, because a number may be none.
        assert_eq!(format!("{again:?}"), format!("{rule:?}"), "{written}");
        assert_eq!(settings_again.action, settings.action, "{written}");
    }
}

fn check_entity(text: &str, element: &str) {
    let mut settings = EntitySettings::new();
    if document::read(text, element, |element| settings.take(element)).is_err() {
        return;
    }
    let once = format!("{settings:?}");
    assert!(settings.options.check().is_ok(), "{once}");
    let again = document::read(text, element, |element| settings.take(element));
    assert!(
        again.is_ok() && format!("{settings:?}") == once,
        "said twice it is another: {once} {settings:?}"
    );
    let stored = serde_json::to_string(&settings.description).expect("a description can be written");
    let read: crate::service_bus::description::Description =
        serde_json::from_str(&stored).expect("what was kept is read again");
    assert_eq!(format!("{read:?}"), format!("{:?}", settings.description), "{stored}");
}

/// A rule as a client reads it.
fn written(rule: &Rule, settings: &RuleSettings) -> String {
    let mut xml = Xml::new();
    xml.within("entry", |xml| {
        xml.within("content", |xml| {
            xml.within_named(rules::ELEMENT, &[("xmlns:i", INSTANCE)], |xml| {
                rule_xml::write(xml, (rule, Some(settings)), Timestamp::default());
            });
        });
    });
    xml.into_text()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn hostile_documents_are_refused_or_understood_twice() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/administration");
        // The published package has no corpus.
        for file in corpus.read_dir().into_iter().flatten() {
            let file = file.unwrap().path();
            println!("{}", file.display());
            let data = std::fs::read(file).unwrap();
            administration(&data);
            for n in 0..1_000_usize {
                let mut changed = data.clone();
                let place = n.wrapping_mul(2_654_435_761) % changed.len();
                match n % 3 {
                    0 => changed[place] ^= 1 << (n % 7),
                    1 => drop(changed.remove(place)),
                    _ => drop(changed.splice(place..place, data[place / 2..place].iter().copied())),
                }
                administration(&changed);
            }
        }
    }
}
