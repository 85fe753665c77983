//! All definitions of a folder, taken together.

use std::path::Path;

use crate::definition::Definitions;
use crate::definition::LoadError;
use crate::definition::tests::readings::FULL;

fn load(texts: &[(&str, &str)]) -> Result<Definitions, Vec<String>> {
    let texts = texts.iter().map(|(file, text)| (Path::new(*file), *text));
    Definitions::from_texts(texts).map_err(mistakes_of)
}

fn mistakes_of(error: LoadError) -> Vec<String> {
    match error {
        LoadError::Mistakes(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
        other => vec![other.to_string()],
    }
}

fn forward(target: &str) -> String {
    format!("[[handler]]\nforward = \"{target}\"\n")
}

#[test]
fn a_folder_is_its_toml_files_in_order_of_name() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("b.toml", "name = \"a-queue\"\n");
    write("a.toml", "name = \"z-queue\"\n");
    write(".hidden.toml", "no TOML");
    write("notes.txt", "no TOML");
    std::fs::create_dir(folder.path().join("folder.toml")).unwrap();
    let definitions = Definitions::load(folder.path()).unwrap();
    let names: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["a-queue", "z-queue"]);
    assert_eq!(definitions.get("z-queue").unwrap().file, folder.path().join("a.toml"));
    assert_eq!(definitions.rules().len(), 2);
}

#[test]
fn a_folder_that_cannot_be_read_is_no_mistake_of_a_file() {
    let error = Definitions::load("/no/such/folder").unwrap_err();
    assert!(matches!(error, LoadError::Folder { .. }));
    assert!(error.to_string().starts_with("cannot read the folder of definitions /no/such/folder: "));
}

#[test]
fn a_file_that_is_no_text_or_too_large_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), [0xff, 0xfe]).unwrap();
    std::fs::write(folder.path().join("b.toml"), vec![b'#'; 300_000]).unwrap();
    let mistakes_of = mistakes_of(Definitions::load(folder.path()).unwrap_err());
    assert!(mistakes_of[0].ends_with("a.toml: is not UTF-8 text"), "{mistakes_of:?}");
    assert!(mistakes_of[1].ends_with("b.toml: has more than 262144 bytes"), "{mistakes_of:?}");
}

#[test]
fn programs_and_secrets_are_looked_for_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[handler]]\nexec = [\"./apply.sh\"]\n[notify]\nhttp = \"https://example.com\"\nsecret_file = \"secret\"\n";
    std::fs::write(folder.path().join("a.toml"), text).unwrap();
    std::fs::write(folder.path().join("apply.sh"), "#!/bin/sh\n").unwrap();
    std::fs::write(folder.path().join("secret"), "").unwrap();
    let mistakes_of = mistakes_of(Definitions::load(folder.path()).unwrap_err());
    assert!(
        mistakes_of[0].contains(":2:8: ") && mistakes_of[0].contains("apply.sh may not be run; chmod +x "),
        "{mistakes_of:?}"
    );
    assert!(
        mistakes_of[1].contains(":5:15: ") && mistakes_of[1].ends_with("secret is empty"),
        "{mistakes_of:?}"
    );
}

#[test]
fn a_queue_has_one_definition() {
    let mistakes_of =
        load(&[("a.toml", "name = \"x\"\n"), ("b.toml", "\nname = \"x\"\n"), ("x.toml", "")]).unwrap_err();
    assert_eq!(
        mistakes_of,
        [
            "b.toml:2:8: the queue `x` is defined already, in a.toml:1",
            "x.toml: the queue `x` is defined already, in a.toml:1"
        ]
    );
}

#[test]
fn a_queue_and_a_topic_have_different_names() {
    let subscription = "[subscription]\ntopic = \"orders\"\n";
    let mistakes_of = load(&[("all.toml", subscription), ("orders.toml", "")]).unwrap_err();
    assert_eq!(
        mistakes_of,
        ["all.toml:2:9: `orders` is a queue already, in orders.toml, and cannot be a topic too"]
    );
    assert!(load(&[("all.toml", subscription), ("paid.toml", subscription), ("order.toml", "")]).is_ok());
}

#[test]
fn mistakes_of_all_files_are_told_together() {
    let mistakes_of =
        load(&[("b.toml", "lokc = 1\n"), ("a.toml", &forward("b")), ("c.toml", &forward("d"))]).unwrap_err();
    assert_eq!(
        mistakes_of,
        [
            "b.toml:1:1: `lokc` is not known in a definition; known are after, delivery, duplicates, expiry, gap, handler, history, \
             idle, key, limits, message_id, name, notify, order, position, redact, retry, schedule, source, subscription",
            "c.toml:2:11: there is no definition of a queue `d`; write d.toml, which may be empty",
        ]
    );
}

#[test]
fn a_file_whose_name_for_its_queue_cannot_be_read_makes_no_mistakes_of_others() {
    let mistakes_of = |file: &str, text: &str, other: &str, right: &str| {
        let mistakes_of = load(&[(file, text), (other, right)]).unwrap_err();
        assert!(mistakes_of.iter().all(|mistake| mistake.starts_with(file)), "{mistakes_of:?}");
        mistakes_of.len()
    };
    let web = forward("orders");
    let broken = "name = \"orders\"\nlock\n";
    assert!(mistakes_of("10-orders.toml", broken, "web.toml", &web) >= 1);
    assert_eq!(mistakes_of("10-orders.toml", "name = 7\n", "web.toml", &web), 1);
    assert_eq!(mistakes_of("10-orders.toml", "name = \"or ders?\"\n", "web.toml", &web), 1);
    assert_eq!(mistakes_of("a.toml", "name = 7\n", "c.toml", "name = \"a\"\n"), 1);
    assert!(mistakes_of("a.toml", "name = \"b\"\nlock\n", "c.toml", "name = \"a\"\n") >= 1);
    let topic = "[subscription]\ntopic = \"a\"\n";
    assert!(mistakes_of("a.toml", "name = \"b\"\nlock\n", "c.toml", topic) >= 1);
}

#[test]
fn a_file_that_cannot_be_read_makes_no_mistakes_of_those_that_forward_to_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("orders.toml"), [0xff, 0xfe]).unwrap();
    std::fs::write(folder.path().join("web.toml"), forward("orders")).unwrap();
    let mistakes_of = mistakes_of(Definitions::load(folder.path()).unwrap_err());
    assert_eq!(mistakes_of.len(), 1, "{mistakes_of:?}");
    assert!(mistakes_of[0].ends_with("orders.toml: is not UTF-8 text"), "{mistakes_of:?}");
}

#[test]
fn a_forward_that_leads_nowhere_or_to_itself_is_told() {
    let mistakes_of = load(&[("orders.toml", ""), ("a.toml", &forward("order"))]).unwrap_err();
    assert_eq!(
        mistakes_of,
        ["a.toml:2:11: there is no definition of a queue `order`; did you mean `orders`?"]
    );
    let mistakes_of = load(&[("a.toml", &forward("a"))]).unwrap_err();
    assert_eq!(mistakes_of, ["a.toml:2:11: a message would be forwarded in a circle: from a to a"]);
}

#[test]
fn forwards_may_meet_but_not_go_in_a_circle() {
    let texts = |d: &str| {
        load(&[
            ("a.toml", &forward("b")),
            ("b.toml", &forward("c")),
            ("c.toml", &forward("d")),
            ("d.toml", d),
        ])
        .map(|_| ())
    };
    assert_eq!(texts(""), Ok(()));
    let circle = ["b.toml:2:11: a message would be forwarded in a circle: from b to c to d to b".to_owned()];
    assert_eq!(texts(&forward("b")), Err(circle.to_vec()));
    // A subject may go its own way.
    let own = "[[handler]]\nsubject = \"back\"\nforward = \"b\"\n";
    assert_eq!(texts(own), Err(circle.to_vec()));
    let b = "[[handler]]\nexec = [\"sh\"]\nsubject = \"back\"\n[[handler]]\nforward = \"d\"\n";
    assert!(load(&[("b.toml", b), ("d.toml", own)]).is_ok());
}

#[test]
fn a_forward_keeps_a_position_where_there_is_one_and_one_is_wanted() {
    let by_position = "order = \"position\"\n";
    let mistakes_of = |from: &str, keeps: bool, to: &str| {
        let keeps = if keeps { "keep_position = true\n" } else { "" };
        let from = format!("{from}{}{keeps}", forward("b"));
        load(&[("a.toml", &from), ("b.toml", to)]).map(|_| ()).map_err(|mistakes_of| mistakes_of.join("\n"))
    };
    assert_eq!(mistakes_of(by_position, true, by_position), Ok(()));
    assert_eq!(mistakes_of(by_position, false, "order = \"position\"\nposition = \"/nr\"\n"), Ok(()));
    assert_eq!(mistakes_of(by_position, false, ""), Ok(()));
    let mistakes_of = |from, keeps, to| mistakes_of(from, keeps, to).unwrap_err();
    assert!(
        mistakes_of(by_position, true, "")
            .starts_with("a.toml:3:11: the queue `b` is not ordered by position; ")
    );
    assert!(
        mistakes_of("", true, by_position)
            .starts_with("a.toml:2:11: a message of this queue has no position to keep; ")
    );
    assert!(
        mistakes_of("", false, by_position)
            .starts_with("a.toml:2:11: the queue `b` takes only messages with a position; ")
    );
}

#[test]
fn a_forward_that_names_no_predecessor_does_not_go_where_each_message_has_one() {
    let load = |from: &str, to: &str| load(&[("a.toml", &format!("{from}{}", forward("b"))), ("b.toml", to)]);
    let mistakes = load("", "order = \"after\"\n").unwrap_err();
    assert!(
        mistakes[0]
            .starts_with("a.toml:2:11: the queue `b` takes only messages that name their predecessor; "),
        "{mistakes:?}"
    );
    assert!(load("", "order = \"after\"\nafter = \"/before\"\n").is_ok(), "it is read from the body");
    assert!(load("order = \"none\"\n", "order = \"after\"\n").is_ok(), "no message has a workflow");
}

#[test]
fn a_reload_finds_a_definition_changed_whose_secret_key_or_authorities_were_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let secret = |letter: &str| format!("whsec_{}", letter.repeat(32));
    write("secret", &secret("A"));
    write("key", "one");
    let certificate = include_str!("../../handlers/tests/localhost.pem");
    write("roots.pem", certificate);
    let address = "\n[[handler]]\nsubject = ";
    write(
        "a.toml",
        &format!(
            "{address}\"http\"\nhttp = \"https://example.com\"\nsecret_file = \"secret\"\n\
             {address}\"forward\"\nforward = \"https://example.com/q\"\nkey_file = \"key\"\nca_file = \"roots.pem\"\n"
        ),
    );
    let load = || Definitions::load(folder.path()).unwrap();
    let mut before = load();
    assert!(before.changes(&load()).is_empty(), "as it was");
    let replaced =
        [("secret", secret("B")), ("key", "two".to_owned()), ("roots.pem", format!("{certificate}\n"))];
    for (file, text) in replaced {
        write(file, &text);
        let after = load();
        assert_eq!(before.changes(&after).changed.len(), 1, "{file}");
        before = after;
    }
}

#[test]
fn a_reload_knows_what_was_added_changed_and_removed() {
    let before = load(&[("a.toml", ""), ("b.toml", FULL), ("c.toml", "")]).unwrap();
    let same = load(&[("c.toml", ""), ("b.toml", &format!("# moved\n{FULL}")), ("a.toml", "")]).unwrap();
    assert_eq!(before, same);
    assert!(before.changes(&same).is_empty());
    let after =
        load(&[("a.toml", "[delivery]\nlock = \"31s\"\n"), ("b.toml", FULL), ("d.toml", "")]).unwrap();
    let changes = before.changes(&after);
    let names = |names: &[crate::id::QueueName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((names(&changes.added), names(&changes.changed)), (vec!["d".into()], vec!["a".into()]));
    assert_eq!(names(&changes.removed), ["c"]);
}
