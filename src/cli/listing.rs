//! Lists that a daemon gives page by page.

use seriatim::remote::RemoteError;

use crate::cli::limits;

/// A page of a list, and where the next one begins.
pub(crate) type ListPart<T> = (Vec<T>, Option<String>);

/// The items of a list from a place on, at most so many; and where it goes on if there are more.
///
/// # Errors
/// [`RemoteError`].
pub(crate) async fn listed<T>(
    most: usize,
    mut after: Option<String>,
    page: impl AsyncFn(Option<&str>, usize) -> Result<ListPart<T>, RemoteError>,
) -> Result<ListPart<T>, RemoteError> {
    let mut all = Vec::new();
    loop {
        let (items, next) = page(after.as_deref(), limits::PAGE.min(most - all.len())).await?;
        all.extend(items);
        // A page that ends where it began would never end.
        after = next.filter(|next| after.as_ref() != Some(next));
        if after.is_none() || all.len() >= most {
            return Ok((all, after));
        }
    }
}
