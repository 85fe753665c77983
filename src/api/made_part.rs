//! Parts of documents that are made from what the code says.

use std::path::Path;

/// Checks the part of a page that is made from something, or writes it anew where that is asked for, as the page says.
pub(crate) fn check(page: &str, (from, test): (&str, &str), part: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let how = format!("SERIATIM_WRITE_SCHEMA=1 cargo test {test}");
    let begin = format!("<!-- Made from {from}: {how} -->\n");
    let end = format!("<!-- End of what is made from {from}. -->\n");
    let committed = std::fs::read_to_string(&page).expect("the page is there");
    let (before, rest) = committed.split_once(&begin).expect("it says where the made part begins");
    let (_, after) = rest.split_once(&end).expect("it says where the made part ends");
    let made = format!("{before}{begin}\n{part}\n{end}{after}");
    match std::env::var_os("SERIATIM_WRITE_SCHEMA") {
        Some(_) => std::fs::write(page, made).expect("the page can be written"),
        None => assert!(committed == made, "write it anew: {how}"),
    }
}
