//! Conditions as a test makes them, said as SQL and judged a second time, in the plainest way.

use std::collections::BTreeMap;

use proptest::prelude::*;

/// What a message says: no name is worth nothing.
pub(crate) type Facts = BTreeMap<&'static str, Fact>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fact {
    Nothing,
    Number(i64),
    Text(String),
    Truth(bool),
}

#[derive(Clone, Debug)]
pub(crate) enum Term {
    Fact(Fact),
    Property(&'static str),
    Reckoned(Box<Term>, &'static str, Box<Term>),
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Compared(Term, &'static str, Term),
    In(Term, Vec<Term>, bool),
    Like(Term, String, bool),
    IsNull(&'static str, bool),
    Exists(&'static str),
    Truth(&'static str),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

pub(crate) const NAMES: [&str; 4] = ["a", "b", "sys.Label", "[o d]"];

impl Term {
    pub(crate) fn to_sql(&self) -> String {
        match self {
            Term::Fact(Fact::Nothing) => "NULL".to_owned(),
            Term::Fact(Fact::Number(number)) => number.to_string(),
            Term::Fact(Fact::Text(text)) => format!("'{}'", text.replace('\'', "''")),
            Term::Fact(Fact::Truth(truth)) => truth.to_string(),
            Term::Property(name) => (*name).to_owned(),
            Term::Reckoned(one, sign, other) => format!("({} {sign} {})", one.to_sql(), other.to_sql()),
        }
    }

    fn fact(&self, facts: &Facts) -> Fact {
        match self {
            Term::Fact(fact) => fact.clone(),
            Term::Property(name) => facts.get(name).cloned().unwrap_or(Fact::Nothing),
            Term::Reckoned(one, sign, other) => match (one.fact(facts), *sign, other.fact(facts)) {
                (Fact::Number(one), "+", Fact::Number(other)) => Fact::Number(one + other),
                (Fact::Number(one), "-", Fact::Number(other)) => Fact::Number(one - other),
                (Fact::Number(one), "*", Fact::Number(other)) => Fact::Number(one * other),
                (Fact::Number(one), "/", Fact::Number(other)) if other != 0 => Fact::Number(one / other),
                (Fact::Number(one), "%", Fact::Number(other)) if other != 0 => Fact::Number(one % other),
                (Fact::Text(one), "+", Fact::Text(other)) => Fact::Text(one + &other),
                _ => Fact::Nothing,
            },
        }
    }
}

/// 1 for true, -1 for false, 0 for unknown: so NOT is a sign, AND the least, OR the greatest.
type Truth = i8;

fn truth(is_true: bool) -> Truth {
    if is_true { 1 } else { -1 }
}

fn compared(one: &Fact, sign: &str, other: &Fact) -> Truth {
    let ordering = match (one, other) {
        (Fact::Number(one), Fact::Number(other)) => one.cmp(other),
        (Fact::Text(one), Fact::Text(other)) => one.cmp(other),
        (Fact::Truth(one), Fact::Truth(other)) => one.cmp(other),
        _ => return 0,
    };
    truth(match sign {
        "=" => ordering.is_eq(),
        "<>" | "!=" => ordering.is_ne(),
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        ">" => ordering.is_gt(),
        _ => ordering.is_ge(),
    })
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|from| like(&text[from..], rest)),
        Some(('_', rest)) => !text.is_empty() && like(&text[1..], rest),
        Some((first, rest)) => text.first() == Some(first) && like(&text[1..], rest),
    }
}

impl Condition {
    pub(crate) fn to_sql(&self) -> String {
        let not = |is_not: &bool| if *is_not { "NOT " } else { "" };
        let many = |parts: &[Condition], word: &str| {
            format!("({})", parts.iter().map(Condition::to_sql).collect::<Vec<_>>().join(word))
        };
        match self {
            Condition::Compared(one, sign, other) => format!("{} {sign} {}", one.to_sql(), other.to_sql()),
            Condition::In(term, list, is_not) => {
                let list: Vec<_> = list.iter().map(Term::to_sql).collect();
                format!("{} {}IN ({})", term.to_sql(), not(is_not), list.join(", "))
            }
            Condition::Like(term, pattern, is_not) => {
                format!("{} {}LIKE '{pattern}'", term.to_sql(), not(is_not))
            }
            Condition::IsNull(name, is_not) => format!("{name} IS {}NULL", not(is_not)),
            Condition::Exists(name) => format!("EXISTS({name})"),
            Condition::Truth(name) => (*name).to_owned(),
            Condition::Not(inside) => format!("NOT ({})", inside.to_sql()),
            Condition::And(parts) => many(parts, " AND "),
            Condition::Or(parts) => many(parts, " or "),
        }
    }

    pub(crate) fn truth(&self, facts: &Facts) -> Truth {
        let sign = |is_not: &bool| if *is_not { -1 } else { 1 };
        match self {
            Condition::Compared(one, sign, other) => compared(&one.fact(facts), sign, &other.fact(facts)),
            Condition::In(term, list, is_not) => {
                let one = |other: &Term| compared(&term.fact(facts), "=", &other.fact(facts));
                sign(is_not) * list.iter().map(one).max().unwrap_or(-1)
            }
            Condition::Like(term, pattern, is_not) => match term.fact(facts) {
                Fact::Text(text) => {
                    let (text, pattern) =
                        (text.chars().collect::<Vec<_>>(), pattern.chars().collect::<Vec<_>>());
                    sign(is_not) * truth(like(&text, &pattern))
                }
                _ => 0,
            },
            Condition::IsNull(name, is_not) => {
                sign(is_not) * truth(Term::Property(name).fact(facts) == Fact::Nothing)
            }
            Condition::Exists(name) => truth(Term::Property(name).fact(facts) != Fact::Nothing),
            Condition::Truth(name) => match Term::Property(name).fact(facts) {
                Fact::Truth(is_true) => truth(is_true),
                _ => 0,
            },
            Condition::Not(inside) => -inside.truth(facts),
            Condition::And(parts) => parts.iter().map(|part| part.truth(facts)).min().unwrap_or(1),
            Condition::Or(parts) => parts.iter().map(|part| part.truth(facts)).max().unwrap_or(-1),
        }
    }
}

pub(crate) fn facts() -> impl Strategy<Value = Fact> {
    prop_oneof![
        Just(Fact::Nothing),
        (-3_i64..4).prop_map(Fact::Number),
        "[ab'_%]{0,3}".prop_map(Fact::Text),
        any::<bool>().prop_map(Fact::Truth),
    ]
}

fn terms() -> impl Strategy<Value = Term> {
    let leaf =
        prop_oneof![facts().prop_map(Term::Fact), prop::sample::select(&NAMES[..]).prop_map(Term::Property),];
    leaf.prop_recursive(2, 8, 2, |inner| {
        let signs = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
        (inner.clone(), signs, inner)
            .prop_map(|(one, sign, other)| Term::Reckoned(Box::new(one), sign, Box::new(other)))
    })
}

pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
    let name = || prop::sample::select(&NAMES[..]);
    let signs = prop::sample::select(vec!["=", "<>", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        4 => (terms(), signs, terms()).prop_map(|(one, sign, other)| Condition::Compared(one, sign, other)),
        1 => (terms(), prop::collection::vec(terms(), 1..4), any::<bool>())
            .prop_map(|(term, list, is_not)| Condition::In(term, list, is_not)),
        2 => (terms(), "[ab_%]{0,4}", any::<bool>())
            .prop_map(|(term, pattern, is_not)| Condition::Like(term, pattern, is_not)),
        1 => (name(), any::<bool>()).prop_map(|(name, is_not)| Condition::IsNull(name, is_not)),
        1 => name().prop_map(Condition::Exists),
        1 => name().prop_map(Condition::Truth),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let many = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            inner.clone().prop_map(|inside| Condition::Not(Box::new(inside))),
            many().prop_map(Condition::And),
            many().prop_map(Condition::Or),
        ]
    })
}
