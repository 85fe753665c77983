//! What a selector selects, and that none does any harm.

use std::borrow::Cow;

use proptest::prelude::*;

use crate::limits;
use crate::selector::operand::Operand;
use crate::selector::parser::Selector;

/// A message of which this is known.
fn known(name: &str) -> Operand<'static> {
    match name {
        "colour" => Operand::Text(Cow::Borrowed("blue")),
        "quote" => Operand::Text(Cow::Borrowed("it's")),
        "size" => Operand::Integer(7),
        "weight" => Operand::Float(2.5),
        "hot" => Operand::Boolean(true),
        "JMSPriority" => Operand::Integer(4),
        "$a.b_1" => Operand::Integer(1),
        _ => Operand::Null,
    }
}

fn selects(text: &str) -> bool {
    let selector = Selector::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    selector.selects(known)
}

fn mistake(text: &str) -> String {
    Selector::parse(text).err().unwrap_or_else(|| panic!("{text} is read")).to_string()
}

#[test]
fn conditions_are_judged_as_in_jms() {
    for text in [
        "colour = 'blue'",
        "colour <> 'red' AND size = 7",
        "quote = 'it''s'",
        "size > 6 and size >= 7 and size < 8 and size <= 7",
        "size = 7L and size = 7.0 and weight = 2.5d and weight = 25e-1 and .5 < 1.",
        "size * 2 + 1 = 15 and 1 + 2 * 3 = 7 and (1 + 2) * 3 = 9 and 7 - 2 - 1 = 4 and 7 / 2 = 3 and 7 / 2. = 3.5",
        "-size = -7 and +size = 7 and - -size = 7 and size--7 = 14",
        "weight between 2 and 3 and size not between 8 and 9",
        "colour in ('red', 'blue') and colour not in ('red')",
        "colour like 'b%e' and colour like '_lue' and colour not like 'b_'",
        r"quote like 'it''_' and quote like 'i\t''s' escape '\'",
        "missing is null and colour is not null",
        "hot and not (not hot) and hot = true and hot <> false",
        "JMSPriority = 4 and $a.b_1 = 1",
        "colour = 'red' or size = 7 and hot",
        "NOT colour = 'red'",
        "-9223372036854775808 < 0 and 9223372036854775807 > 0",
        "missing = 1 or hot",
        "TRUE",
    ] {
        assert!(selects(text), "{text}");
    }
    for text in [
        "colour = 'red'",
        "colour = 'Blue'",
        "Colour = 'blue'",
        "(colour = 'red' or size = 7) and not hot",
        "hot = 'true'",
        "size = '7'",
        "size <> '7'",
        "colour > 'a'",
        "colour like 'b'",
        "size like '7'",
        "size not like '8'",
        "colour not between 1 and 2",
        "hot not between 1 and 2",
        "1 / 0 = 1 or 1 / 0 <> 1",
        "size + colour = 7",
        "size",
        "FALSE",
    ] {
        assert!(!selects(text), "{text}");
    }
}

#[test]
fn what_is_not_there_is_neither_true_nor_false() {
    for text in [
        "missing = 1",
        "missing <> 1",
        "not (missing = 1)",
        "missing = missing",
        "missing in ('a')",
        "missing not in ('a')",
        "missing like '%'",
        "missing not like '%'",
        "missing between 1 and 2",
        "missing not between 1 and 2",
        "missing + 1 > 0",
        "missing and hot",
        "missing or not hot",
        "not missing",
        "1 between missing and 2",
    ] {
        assert!(!selects(text), "{text}");
    }
    assert!(selects("1 not between missing and 0"), "one bound decides");
}

#[test]
fn what_is_no_selector_is_refused_with_its_place() {
    for (text, place) in [
        ("", 1),
        ("colour", 0),
        ("colour =", 9),
        ("colour = 'blue", 10),
        ("colour == 'blue'", 9),
        ("colour = 'blue' size", 17),
        ("\u{e4}\u{f6} ! 1", 4),
        ("(colour = 'blue'", 17),
        ("size between 1", 15),
        ("size between 'a' and 'b'", 25),
        ("size in (1)", 10),
        ("size in ()", 10),
        ("1 in ('a')", 6),
        ("colour like blue", 13),
        ("colour like 'a' escape 'ab'", 28),
        (r"colour like 'a\' escape '\'", 28),
        ("colour is blue", 11),
        ("1 is null", 10),
        ("colour not = 'blue'", 12),
        ("1 + 1", 6),
        ("'text'", 7),
        ("size and 1", 11),
        ("not 1", 6),
        ("'a' + 1 = 2", 9),
        ("- 'a' = 1", 7),
        ("9223372036854775808 = 1", 1),
        ("1x = 1", 1),
        ("1.5L = 1", 1),
        ("1e = 1", 1),
        ("1e999 = 1", 1),
        ("and", 1),
    ] {
        if place > 0 {
            let described = mistake(text);
            assert!(described.ends_with(&format!("at character {place}")), "{text}: {described}");
        }
    }
}

#[test]
fn a_selector_is_as_long_and_as_deep_as_it_may_be_and_no_more() {
    let deep = |times: usize| format!("{}hot{}", "(".repeat(times), ")".repeat(times));
    assert!(selects(&deep(limits::SELECTOR_DEPTH_MAX)));
    assert!(mistake(&deep(limits::SELECTOR_DEPTH_MAX + 1)).contains("nested"));
    for nested in ["not ", "- ", "+ "] {
        let text = format!("{}1 = 1", nested.repeat(limits::SELECTOR_DEPTH_MAX + 1));
        assert!(mistake(&text).contains("nested"), "{nested}");
    }
    let long = |join: &str| {
        let many = limits::SELECTOR_BYTES_MAX / (join.len() + 7) - 1;
        format!("size = 7{}", format!("{join}size = 7").repeat(many - many / 8))
    };
    assert!(selects(&long(" and ")) && selects(&long(" or ")), "a long one is not a deep one");
    let sum = format!("0{} > 0", "+1".repeat((limits::SELECTOR_BYTES_MAX - 5) / 2));
    assert!(selects(&sum));
    assert!(mistake(&format!("{sum}     ")).contains("bytes"));
}

/// Texts that are more like selectors than chance would make them.
fn likely() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "and",
            "or",
            "not",
            "between",
            "in",
            "like",
            "escape",
            "is",
            "null",
            "true",
            "false",
            "(",
            ")",
            ",",
            "=",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "+",
            "-",
            "*",
            "/",
            "colour",
            "size",
            "weight",
            "hot",
            "missing",
            "'b%'",
            "'_'",
            "''",
            "'",
            "7",
            "2.5",
            "1e3",
            ".5",
            "9223372036854775808",
            "5L",
            "\u{e4}",
            "!",
            "\\",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,4}",
    ];
    prop::collection::vec(word, 0..30).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn whatever_is_said_is_read_or_refused_and_judged(text in prop_oneof![likely(), ".{0,80}"]) {
        if let Ok(selector) = Selector::parse(&text) {
            let once = selector.selects(known);
            prop_assert_eq!(selector.selects(known), once);
            // What it says is said by itself in parentheses, and its opposite is never true beside it.
            if text.len() < 4_000 {
                let same = Selector::parse(&format!("({text})"));
                prop_assert_eq!(same.map(|same| same.selects(known)), Ok(once));
                let opposite = Selector::parse(&format!("NOT ({text})")).map(|opposite| opposite.selects(known));
                prop_assert!(!(once && opposite == Ok(true)), "{text}");
            }
        } else {
            let mistake = Selector::parse(&text).expect_err("it was refused").to_string();
            prop_assert!(mistake.contains("at character"));
        }
    }
}
