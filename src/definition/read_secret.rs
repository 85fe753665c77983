//! Where a secret is, read from the form.

use std::ops::Range;
use std::path::Path;

use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::FileValue;
use crate::definition::handler::SecretSource;
use crate::definition::program::find_file;

/// Where a secret is, in a file or in the environment, and where the definition says so; `None` when that is wrong.
pub(crate) fn secret_source<'form>(
    (file, env): (&'form Option<FileValue<String>>, &'form Option<FileValue<String>>),
    what: &str,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Option<(SecretSource, &'form Range<usize>)>> {
    match (file, env) {
        (None, None) => Some(None),
        (Some(_), Some(env)) => {
            let message = format!("the {what} is in `{what}_file` or in `{what}_env`, not in both");
            mistakes.add(&env.span, message);
            None
        }
        (Some(file), None) => {
            let found = mistakes.found(find_file(&file.value, folder), &file.span)?;
            Some(Some((SecretSource::File(found), &file.span)))
        }
        (None, Some(env)) if env.value.is_empty() || env.value.contains(['=', '\0']) => {
            mistakes.add(&env.span, "it cannot be the name of an environment variable");
            None
        }
        (None, Some(env)) => Some(Some((SecretSource::Env(env.value.clone()), &env.span))),
    }
}
