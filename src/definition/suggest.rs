//! What somebody may have meant who wrote something that is not known.

/// Names less alike than this (1.0 is the same) are not suggested: a wrong suggestion is worse than none.
const LIKENESS_MIN: f64 = 0.8;

/// The known name that is most like what was written, if one is like it at all.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&written, &name.to_lowercase());
    let rated = known.into_iter().map(|name| (likeness(name), name));
    let best = rated.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (best.0 >= LIKENESS_MIN).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["lock", "count_max", "concurrency", "renew_for"];
        assert_eq!(nearest("lokc", known), Some("lock"));
        assert_eq!(nearest("concurency", known), Some("concurrency"));
        assert_eq!(nearest("Renew-For", known), Some("renew_for"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("lock", []), None);
    }
}
