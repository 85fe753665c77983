//! How handles look when they are shown to a developer: who they are, and nothing of what they hold.

/// Shows a handle by some of its fields, or by those of a part of it.
macro_rules! shown {
    ($handle:ident $(<$life:lifetime>)? { $($name:ident $(of $part:ident)?),* }) => {
        impl std::fmt::Debug for $handle $(<$life>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($handle));
                $(shown.field(stringify!($name), &self$(.$part)?.$name);)*
                shown.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use shown;

#[cfg(test)]
mod tests {
    struct Handle {
        name: &'static str,
        part: (),
        whole: Whole,
    }

    struct Whole {
        number: u64,
    }

    shown!(Handle { name, number of whole });

    #[test]
    fn a_handle_shows_who_it_is_and_nothing_of_what_it_holds() {
        let handle = Handle { name: "orders", part: (), whole: Whole { number: 7 } };
        let () = handle.part;
        assert_eq!(format!("{handle:?}"), r#"Handle { name: "orders", number: 7, .. }"#);
    }
}
