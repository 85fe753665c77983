//! A condition in SQL, as clients of Service Bus give it.

use crate::header::Properties;
use crate::topic::Filter;

/// The filter that clients mean by a condition.
pub(crate) fn sql_filter(expression: String, parameters: Properties) -> Filter {
    match expression.trim() {
        // As clients say that they want everything, or nothing.
        "1=1" if parameters.is_empty() => Filter::True,
        "1=0" | "1!=1" if parameters.is_empty() => Filter::False,
        _ => Filter::Sql { expression, parameters },
    }
}
