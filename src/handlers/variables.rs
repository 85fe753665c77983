//! The environment of a child: nothing of the daemon's own but what is allowed, and what it is to know of the message.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;

use crate::api::show_properties;
use crate::handlers::facts::facts;
use crate::handlers::site::Site;
use crate::handlers::trace::trace;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::limits;
use crate::processor::Context;
use crate::processor::Failure;

/// Variables of the daemon that every child gets: without them hardly a program runs.
const ALLOWED: &[&str] = &["PATH", "HOME", "LANG", "TZ"];

/// Carries the store's ID, in every child and in whatever a child starts.
pub(crate) const STORE: &str = "SERIATIM_STORE";

/// Carries the mark of one child, in whatever that starts.
pub(crate) const CHILD: &str = "SERIATIM_CHILD";

/// An environment.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// What every child of a handler gets: what is allowed of the daemon's own, what the handler sets, and the store's ID.
pub(crate) fn lasting(site: &Site, pass_env: &[String], env: &BTreeMap<String, String>) -> Variables {
    let passed = ALLOWED.iter().copied().chain(pass_env.iter().map(String::as_str));
    let passed = passed.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let set = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let store = (OsString::from(STORE), OsString::from(&site.store_id));
    passed.chain(set).chain([store]).filter(|(name, value)| is_possible(name, value)).collect()
}

/// What a child is to know of the message it handles.
pub(crate) async fn of_message(site: &Site, context: &Context) -> Result<Variables, Failure> {
    let headers = &context.message().headers;
    let mut texts = properties(&headers.properties)?;
    texts.extend(facts(context, site.by_position).map(|(name, _, text)| (name.to_owned(), text)));
    let state = context.state().await?.as_ref().map(state_text).transpose()?;
    let more = [
        ("SERIATIM_CONTENT_TYPE", headers.content_type.clone()),
        ("SERIATIM_STATE", state),
        ("TRACEPARENT", trace(context)),
    ];
    texts.extend(more.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))));
    Ok(texts
        .into_iter()
        .map(possible)
        .map(|(name, text)| (OsString::from(name), OsString::from(text)))
        .collect())
}

/// A variable for each property, and one for all of them under their own names. Properties whose names make the same
/// variable have none of their own: whose it is would be a guess.
fn properties(properties: &Properties) -> Result<BTreeMap<String, String>, Failure> {
    let text = |value: &PropertyValue| value.as_text().unwrap_or_else(|bytes| BASE64.encode(bytes));
    let mut variables: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, value) in properties {
        let variable = variables.entry(property_name(name));
        variable.and_modify(|shared| *shared = None).or_insert_with(|| Some(text(value)));
    }
    let mut variables: BTreeMap<String, String> =
        variables.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    let all = serde_json::to_string(&show_properties(properties))?;
    if !properties.is_empty() && all.len() <= limits::STATE_VARIABLE_BYTES_MAX {
        variables.insert("SERIATIM_PROPERTIES".to_owned(), all);
    }
    Ok(variables)
}

/// A text with a zero byte inside cannot be a variable; it comes in Base64, under a name that says so.
fn possible((name, text): (String, String)) -> (String, String) {
    match text.contains('\0') {
        true => (format!("{name}_BASE64"), BASE64.encode(text)),
        false => (name, text),
    }
}

fn state_text(state: &Bytes) -> Result<String, Failure> {
    let fits = state.len() <= limits::STATE_VARIABLE_BYTES_MAX && !state.contains(&0);
    let text = std::str::from_utf8(state).ok().filter(|_| fits);
    text.map(str::to_owned).ok_or_else(|| {
        let (len, max) = (state.len(), limits::STATE_VARIABLE_BYTES_MAX);
        Failure::new(format!(
            "the workflow's state ({len} bytes) does not fit into a variable, which takes text of at most {max} bytes: \
             use a persistent handler"
        ))
    })
}

fn property_name(name: &str) -> String {
    let upper = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("SERIATIM_PROPERTY_{}", upper.collect::<String>())
}

/// Whether a variable can be: a text with a zero byte inside cannot, and must not keep the message from its handler.
fn is_possible(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.as_bytes(), value.as_bytes());
    !name.is_empty() && !name.contains(&b'=') && !name.contains(&0) && !value.contains(&0)
}
