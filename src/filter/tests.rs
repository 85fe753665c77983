//! Filters and actions, judged as they are documented and as a naive evaluator judges them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::filter::Action;
use crate::filter::FilterInput;
use crate::filter::FilterValue;
use crate::filter::Name;
use crate::filter::PropertyScope;
use crate::filter::SqlFilter;
use crate::filter::action::ActionTarget;
use crate::filter::naive::Fact;
use crate::filter::naive::Facts;
use crate::filter::naive::NAMES;
use crate::filter::naive::conditions;
use crate::filter::naive::facts;
use crate::filter::with_values;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::limits;

/// A message by what is known of it.
struct Sample(BTreeMap<String, FilterValue<'static>>);

impl Sample {
    fn usual() -> Sample {
        let text = |text: &'static str| FilterValue::Text(Cow::Borrowed(text));
        let known = [
            ("colour", text("blue")),
            ("size", FilterValue::Integer(7)),
            ("weight", FilterValue::Float(2.5)),
            ("hot", FilterValue::Boolean(true)),
            ("raw", FilterValue::Binary(Cow::Borrowed(&[0xab, 1]))),
            ("o]d n\"ame", FilterValue::Integer(1)),
            ("sys.label", text("important")),
            ("sys.to", text("Paris")),
        ];
        Sample(known.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn key(name: &Name) -> String {
        match name.scope {
            PropertyScope::System => format!("sys.{}", name.text),
            PropertyScope::User => name.text.clone(),
        }
    }
}

impl FilterInput for Sample {
    fn property(&self, name: &Name) -> FilterValue<'_> {
        self.0.get(&Sample::key(name)).cloned().unwrap_or(FilterValue::Null)
    }

    fn new_id(&self) -> String {
        "an ID".to_owned()
    }
}

impl ActionTarget for Sample {
    fn set(&mut self, name: &Name, value: FilterValue<'static>) {
        match value {
            FilterValue::Null => drop(self.0.remove(&Sample::key(name))),
            value => drop(self.0.insert(Sample::key(name), value)),
        }
    }
}

fn matches(text: &str) -> bool {
    let parameters = Properties::from([
        ("@big".to_owned(), PropertyValue::Integer(100)),
        ("like".to_owned(), PropertyValue::from("b!_%")),
    ]);
    let filter = SqlFilter::parse(text, &parameters).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    filter.matches(&Sample::usual())
}

fn mistake(text: &str) -> String {
    let read = SqlFilter::parse(text, &Properties::new());
    read.err().unwrap_or_else(|| panic!("{text} is read")).to_string()
}

#[test]
fn conditions_are_judged_as_service_bus_documents_them() {
    for text in [
        "1=1",
        "colour = 'blue' AND size <> 8 and user.size != 8 and Size IS NULL",
        "sys.Label = 'important' and SYS.label like 'imp%' and sys.To in ('Rome', 'Paris')",
        "size * 2 + 1 = 15 and 1 + 2 * 3 = 7 and (1 + 2) * 3 = 9 and 7 / 2 = 3 and 7 % 4 = 3 and 7 / 2.0 = 3.5",
        "-size = -7 and +size = 7 and - -size = 7 and -9223372036854775808 < 0",
        "colour + '!' = 'blue!' and colour > 'a' and colour < 'c'",
        "raw = 0xAB01 and raw <> 0x",
        "hot and not (not hot) and hot = true and 5 > 4",
        "size in (1, 3 + 4) and size not in (1, 2) and colour in ('blue')",
        "colour like 'b%e' and colour not like 'b_' and 'b_x' like 'b!_%' escape '!' and 'b_' like @like escape '!'",
        "size < @big and weight < @big",
        "exists(size) and not exists(missing) and EXISTS(sys.Label) and not exists ( sys.ReplyTo )",
        "missing is null and colour is not null",
        "[o]]d n\"ame] = 1 and \"o]d n\"\"ame\" = 1",
        "property('colour') = 'blue' and p(size) = 7 and property([size]) = 7",
        "missing = 1 or hot",
        "size not in (8, missing) or hot",
        "not (colour = 'red' and missing = 1)",
        "TRUE",
    ] {
        assert!(matches(text), "{text}");
    }
}

#[test]
fn a_property_that_is_a_word_of_the_language_is_named_in_its_own_letters() {
    let mut sample = Sample::usual();
    let set = "SET user.set = 'gold'; SET user.Not = 1";
    Action::parse(set, &Properties::new()).expect("it is an action").apply(&mut sample);
    let judged =
        |text: &str| SqlFilter::parse(text, &Properties::new()).expect("it is a filter").matches(&sample);
    assert!(judged("user.set = 'gold' and [set] = 'gold' and exists(user.Not) and 1 = user . Not"));
    assert!(!judged("exists(user.SET) or exists(user.NOT) or exists(user.not)"));
}

#[test]
fn what_is_unknown_does_not_match() {
    for text in [
        "FALSE",
        "NULL",
        "missing = 1",
        "missing <> 1",
        "not (missing = 1)",
        "missing = missing",
        "missing in ('a')",
        "missing not in ('a')",
        "size not in (8, missing)",
        "missing like '%'",
        "missing not like '%'",
        "size like '7'",
        "not missing",
        "missing and hot",
        "size = '7'",
        "size <> '7'",
        "hot = 1",
        "1 / 0 = 1 or 1 / 0 <> 1 or 1 % 0 = 0",
        "9223372036854775807 + 1 > 0",
        "size + colour = 7",
        "size",
        "colour = 'Blue'",
        "Colour = 'blue'",
    ] {
        assert!(!matches(text), "{text}");
    }
}

#[test]
fn what_is_no_filter_is_refused_with_its_place() {
    for (text, place) in [
        ("", 1),
        ("colour =", 9),
        ("colour = 'blue", 10),
        ("colour == 'blue'", 9),
        ("colour = 'blue' size", 17),
        ("\u{e4}\u{f6} ? 1", 4),
        ("(colour = 'blue'", 17),
        ("size in ()", 10),
        ("colour like blue", 17),
        ("colour like 'a' escape 'ab'", 28),
        ("colour is blue", 11),
        ("1 is null", 6),
        ("1 + 1", 6),
        ("'text'", 7),
        ("size and 1", 11),
        ("not 1", 6),
        ("(size = 1) = 2", 14),
        ("9223372036854775808 = 1", 1),
        ("1x = 1", 1),
        ("1e999 = 1", 1),
        ("0xabc = 1", 1),
        ("sys.Colour = 1", 12),
        ("sys. = 1", 8),
        ("@none = 1", 1),
        ("@ = 1", 1),
        ("random() = 1", 7),
        ("[] = 1", 4),
        ("set a = 1", 1),
    ] {
        let described = mistake(text);
        assert!(described.ends_with(&format!("at character {place}")), "{text}: {described}");
    }
}

#[test]
fn a_filter_is_as_long_and_as_deep_as_it_may_be_and_no_more() {
    let deep = |times: usize| format!("{}hot{}", "(".repeat(times), ")".repeat(times));
    assert!(matches(&deep(limits::FILTER_DEPTH_MAX)));
    assert!(mistake(&deep(limits::FILTER_DEPTH_MAX + 1)).contains("nested"));
    for nested in ["not ", "- ", "+ "] {
        let text = format!("{}size = 1", nested.repeat(limits::FILTER_DEPTH_MAX + 1));
        assert!(mistake(&text).contains("nested"), "{nested}");
    }
    let sum = format!("0{} > 0", "+1".repeat((limits::FILTER_BYTES_MAX - 5) / 2));
    assert!(matches(&sum), "a long one is not a deep one");
    assert!(mistake(&format!("{sum}     ")).contains("bytes"));
}

#[test]
fn an_action_sets_and_removes_one_after_the_other() {
    let mut sample = Sample::usual();
    let text = "SET size = size + 1; set size = size * 2;REMOVE colour; SET [a b] = newid(); SET sys.Label = 'x'; \
                SET hot = NULL;";
    Action::parse(text, &Properties::new()).expect("it is an action").apply(&mut sample);
    let name = |scope, text: &str| Name { scope, text: text.to_owned() };
    let user = |text: &str| sample.property(&name(PropertyScope::User, text));
    assert_eq!(
        (user("size"), user("colour"), user("hot")),
        (FilterValue::Integer(16), FilterValue::Null, FilterValue::Null)
    );
    assert_eq!(user("a b"), FilterValue::Text("an ID".into()));
    assert_eq!(sample.property(&name(PropertyScope::System, "label")), FilterValue::Text("x".into()));
}

#[test]
fn a_text_that_no_message_can_have_grows_no_further() {
    let mut sample = Sample::usual();
    let text = "x".repeat(limits::PROPERTIES_BYTES_MAX);
    sample.0.insert("p".to_owned(), FilterValue::Text(text.into()));
    let sum = format!("p{}", "+p".repeat(1_900));
    let nothing = Properties::new();
    for (text, is_like) in [(format!("{sum} LIKE 'x%'"), true), (format!("{sum} LIKE 'x'"), false)] {
        assert_eq!(SqlFilter::parse(&text, &nothing).unwrap().matches(&sample), is_like);
    }
    // Also where what has grown stands on the right.
    let nested = format!("{}p{}", "p+(".repeat(20), ")".repeat(20));
    let text = format!("SET a = {sum}; SET b = {nested}; SET c = p + a; SET c = p + c; SET c = p + c");
    Action::parse(&text, &nothing).unwrap().apply(&mut sample);
    for name in ["a", "b", "c"] {
        let Some(FilterValue::Text(grown)) = sample.0.get(name) else { panic!("{name} is no text") };
        let allowed = limits::PROPERTIES_BYTES_MAX + 1..=2 * limits::PROPERTIES_BYTES_MAX;
        assert!(allowed.contains(&grown.len()), "{name} has {} bytes", grown.len());
    }
}

#[test]
fn an_action_with_values_in_place_of_its_parameters_means_the_same() {
    let values: Properties = [
        ("@text", PropertyValue::from("it's @number;")),
        ("number", PropertyValue::Integer(i64::MIN)),
        ("@float", PropertyValue::Float(1.5e300)),
        ("@truth", PropertyValue::Boolean(true)),
        ("@bytes", PropertyValue::Binary(vec![0, 255].into())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for text in [
        "SET a = @text + '@text'; SET b = 1 -@number; SET [@c] = @float * 2; REMOVE \"@text\"; SET d=@text",
        "SET a = @truth",
        "SET a = @bytes ; SET b = a",
        "SET a = 'no @parameter'",
    ] {
        let written = with_values(text, &values).unwrap();
        let (one, other) = (Action::parse(text, &values), Action::parse(&written, &Properties::new()));
        assert_eq!(one, other, "{written}");
        assert!(one.is_ok(), "{one:?}");
    }
    for text in ["SET a = @missing", "SET a = @", "SET a = 'open @text"] {
        assert!(with_values(text, &values).is_err(), "{text}");
    }
    let none = Properties::from([("@x".to_owned(), PropertyValue::Float(f64::NAN))]);
    assert!(with_values("SET a = @x", &none).is_err());
}

#[test]
fn what_is_no_action_is_refused() {
    let many = "SET a = 1;".repeat(limits::ACTION_STATEMENTS_MAX + 1);
    for text in [
        "",
        ";",
        "SET a",
        "SET a = ",
        "SET a = b = c",
        "SET 1 = 2",
        "a = 1",
        "REMOVE sys.Label",
        "SET sys.MessageId = 'x'",
        "SET a = 1 SET b = 2",
        "REMOVE",
        &many,
    ] {
        assert!(Action::parse(text, &Properties::new()).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_filter_says_what_the_naive_evaluator_says(
        condition in conditions(),
        values in prop::collection::vec(facts(), NAMES.len()),
    ) {
        let known: Facts = NAMES.into_iter().zip(values).collect();
        let name = |name: &str| match name {
            "sys.Label" => "sys.label".to_owned(),
            "[o d]" => "o d".to_owned(),
            name => name.to_owned(),
        };
        let value = |fact: &Fact| match fact {
            Fact::Nothing => FilterValue::Null,
            Fact::Number(number) => FilterValue::Integer(*number),
            Fact::Text(text) => FilterValue::Text(Cow::Owned(text.clone())),
            Fact::Truth(truth) => FilterValue::Boolean(*truth),
        };
        let sample = Sample(known.iter().map(|(known, fact)| (name(known), value(fact))).collect());
        let sql = condition.to_sql();
        let filter = SqlFilter::parse(&sql, &Properties::new());
        let filter = filter.map_err(|mistake| TestCaseError::fail(format!("{sql}: {mistake}")))?;
        prop_assert_eq!(filter.matches(&sample), condition.truth(&known) == 1, "{}", sql);
        let opposite = SqlFilter::parse(&format!("NOT ({sql})"), &Properties::new());
        let opposite = opposite.map_err(|mistake| TestCaseError::fail(format!("{sql}: {mistake}")))?;
        prop_assert_eq!(opposite.matches(&sample), condition.truth(&known) == -1, "NOT ({})", sql);
    }

    #[test]
    fn whatever_is_said_is_read_or_refused_and_judged(
        text in prop_oneof![
            prop::collection::vec(prop::sample::select(vec![
                "and", "or", "not", "in", "like", "escape", "is", "null", "true", "exists", "(", ")", ",", "=", "<>", "<", "+",
                "-", "*", "/", "%", "colour", "size", "sys.", "label", "user.", "[a]", "\"b\"", "'b%'", "'", "7", "2.5", "1e3",
                "0xab", "9223372036854775808", "@p", "newid()", "p(", "\u{e4}", ";", "set", "remove", ".",
            ]), 0..24).prop_map(|words| words.join(" ")),
            ".{0,80}".prop_map(|text| text),
        ],
    ) {
        let nothing = Properties::new();
        if let Ok(filter) = SqlFilter::parse(&text, &nothing) {
            let _ = filter.matches(&Sample::usual());
        }
        if let Ok(action) = Action::parse(&text, &nothing) {
            action.apply(&mut Sample::usual());
        }
    }
}
