//! The snippets of the pages.

use std::path::Path;

/// A block of code in a page.
#[derive(Clone, Debug)]
pub(crate) struct Snippet {
    /// The page and the line of its fence.
    pub(crate) place: String,
    pub(crate) page: String,
    pub(crate) language: String,
    pub(crate) text: String,
    /// What the comment above it says, if it is not to be run.
    pub(crate) why_not: Option<String>,
}

/// All snippets of the README and of the pages in `docs/`, in the order of the pages.
pub(crate) fn snippets() -> Vec<Snippet> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<String> = std::fs::read_dir(root.join("docs"))
        .expect("there are pages")
        .map(|entry| entry.expect("a page").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
        .iter()
        .flat_map(|page| of_page(page, &std::fs::read_to_string(root.join(page)).expect("a page")))
        .collect()
}

fn of_page(page: &str, text: &str) -> Vec<Snippet> {
    let mut snippets = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```"));
            snippets.push(Snippet {
                place: format!("{page}:{}", number + 1),
                page: page.to_owned(),
                language: language.to_owned(),
                text: inside.map(|line| format!("{line}\n")).collect(),
                why_not: why_not(before),
            });
        }
        before = line;
    }
    snippets
}

fn why_not(line: &str) -> Option<String> {
    Some(line.strip_prefix("<!-- not run: ")?.strip_suffix(" -->")?.to_owned())
}
