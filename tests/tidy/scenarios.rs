//! The list of the scenarios of an SDK: the tests that it names are there, and its numbers are those of its rows.

use std::collections::HashSet;

use crate::source::Source;

/// How many scenarios there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    all: usize,
    not_counted: usize,
    covered: usize,
    partly: usize,
    missing: usize,
}

impl Numbers {
    fn count(&mut self, verdict: &str) {
        self.all += 1;
        match verdict {
            _ if ["client:", "cloud:", "switched off"].iter().any(|why| verdict.starts_with(why)) => {
                self.not_counted += 1;
            }
            _ if verdict.starts_with("partly") => self.partly += 1,
            _ if verdict.starts_with("**missing**") => self.missing += 1,
            _ => self.covered += 1,
        }
    }

    /// As a row of the table of numbers has them.
    fn cells(self) -> Vec<String> {
        let Numbers { all, not_counted, covered, partly, missing } = self;
        [all, not_counted, all - not_counted, covered, partly, missing]
            .map(|number| number.to_string())
            .into()
    }

    fn plus(self, other: Numbers) -> Numbers {
        Numbers {
            all: self.all + other.all,
            not_counted: self.not_counted + other.not_counted,
            covered: self.covered + other.covered,
            partly: self.partly + other.partly,
            missing: self.missing + other.missing,
        }
    }
}

/// Rows that name no test although they count as covered, names of tests that are nowhere, and numbers that are wrong.
pub(crate) fn wrong_scenarios(document: &Source, tests: &[Source]) -> Vec<String> {
    let known: HashSet<&str> = tests.iter().flat_map(|test| declared(&test.text)).collect();
    let mut violations = Vec::new();
    let (mut sections, mut heading) = (Vec::<(String, Numbers)>::new(), String::new());
    for line in document.text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut heading);
            sections.push((title.to_owned(), Numbers::default()));
        }
        let Some([scenario, _, verdict]) = row(line) else { continue };
        if !scenario.starts_with('`') {
            continue;
        }
        let numbers = &mut sections.last_mut().expect("a table of scenarios has a heading").1;
        let before = *numbers;
        numbers.count(verdict);
        if numbers.not_counted > before.not_counted {
            continue;
        }
        let named: Vec<&str> = verdict.split('`').skip(1).step_by(2).collect();
        if numbers.covered > before.covered && named.is_empty() {
            violations.push(format!("{scenario} of {heading} names no test"));
        }
        let unknown = named.into_iter().filter(|name| !known.contains(name));
        violations.extend(unknown.map(|name| format!("{scenario} of {heading}: there is no test {name}")));
    }
    sections.retain(|(_, numbers)| numbers.all > 0);
    let sum = sections.iter().fold(Numbers::default(), |sum, (_, numbers)| sum.plus(*numbers));
    sections.push(("all".to_owned(), sum));
    for (area, numbers) in sections {
        let of_area = |first: &str| first == area || first.starts_with(&format!("{area}, `"));
        let rows = document.text.lines().map(cells).filter(|cells| cells.len() == 7 && of_area(cells[0]));
        let rows: Vec<Vec<&str>> = rows.map(|cells| cells[1..].to_vec()).collect();
        if rows != [numbers.cells()] {
            violations.push(format!("{area} has {:?}, and the table says {rows:?}", numbers.cells()));
        }
    }
    violations
}

/// The cells of a row of three.
fn row(line: &str) -> Option<[&str; 3]> {
    cells(line).try_into().ok()
}

fn cells(line: &str) -> Vec<&str> {
    match line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
        Some(inside) => inside.split('|').map(str::trim).collect(),
        None => Vec::new(),
    }
}

/// The functions that a text declares, in each language of tests.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let after = |start: &'static str| text.split(start).skip(1);
    let begun = ["fn ", "def ", "promise(\""].into_iter().flat_map(after);
    let tables = text.split("promises! {\n").skip(1).map(|rest| rest.split("\n}").next().unwrap_or_default());
    let rows = tables.flat_map(str::lines).map(str::trim_start);
    begun
        .chain(rows)
        .map(move |rest| rest.split(|letter: char| !is_of_name(letter)).next().unwrap_or_default())
}

#[test]
fn a_test_that_is_nowhere_and_a_wrong_number_are_found() {
    let list = |verdict: &str, numbers: &str| {
        let text = format!(
            "| area | scenarios | not counted | need no cloud | covered | partly | missing |\n\
             | Queues, `test_queues` | {numbers} |\n| all | {numbers} |\n\
             ## Queues\n| `one` | short | {verdict} |\n| `two` | short | client: no request |\n"
        );
        let tests = [("t.py", "def known():\n"), ("t.rs", "promises! {\n    also_known: play();\n}\n")];
        wrong_scenarios(
            &Source::new("docs/list.md", &text),
            &tests.map(|(path, tests)| Source::new(path, tests)),
        )
    };
    assert_eq!(list("`known`", "2 | 1 | 1 | 1 | 0 | 0"), Vec::<String>::new());
    assert_eq!(list("**missing**: differs", "2 | 1 | 1 | 0 | 0 | 1"), Vec::<String>::new());
    assert_eq!(list("`unknown`", "2 | 1 | 1 | 1 | 0 | 0").len(), 1);
    assert_eq!(list("proven", "2 | 1 | 1 | 1 | 0 | 0").len(), 1);
    assert_eq!(list("`known`", "2 | 1 | 1 | 0 | 1 | 0").len(), 2);
    assert_eq!(list("`also_known`", "2 | 1 | 1 | 1 | 0 | 0"), Vec::<String>::new());
}
