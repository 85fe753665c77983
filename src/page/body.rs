//! The body of a message: data that is shown as text, never as HTML, and downloaded as it is.

use axum::response::Response;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use maud::Markup;
use maud::html;

use crate::api::BodyFields;
use crate::api::Problem;
use crate::api::foreign_text::visible;
use crate::api::is_json;
use crate::api::plural::counted;
use crate::api::pretty;
use crate::api::views::MessageEnvelope;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::fields::FormFields;
use crate::page::redact::BodyPreview;
use crate::page::redact::Redaction;
use crate::page::response::protected;
use crate::page::text::cut;
use crate::page::visitor::Visit;
use crate::remote::RequestPath;

/// Bytes that are shown of a body that is no text, sixteen a line.
const HEX_BYTES: usize = 4 * 1024;

/// The bytes of a message's body.
pub(crate) fn bytes_of(message: &MessageEnvelope) -> Result<Vec<u8>, ApiRefusal> {
    let fields = BodyFields {
        body: message.body.clone(),
        body_text: message.body_text.clone(),
        body_base64: message.body_base64.clone(),
    };
    let (bytes, _) = fields.read().map_err(|error| Problem::new("fault", error.to_string()))?;
    Ok(bytes.to_vec())
}

/// A body as a file, whatever it is: a browser must not look into it.
pub(crate) async fn download(visitor: Visit, fields: FormFields) -> PageResult {
    let (queue, number) = fields.message();
    let route = RequestPath::queue(&queue).word("messages").data(number).query("raw", Some("true"));
    let message: MessageEnvelope = visitor.api.get(&route).await?;
    let bytes = bytes_of(&message)?;
    if Redaction::of(&visitor, &queue).await?.body(&bytes) != BodyPreview::All {
        let detail =
            "the definition of the queue hides parts of its bodies on the page; the API hides nothing";
        return Err(Box::new(Problem::new("forbidden", detail)));
    }
    Ok(as_file(number, bytes).into())
}

fn as_file(number: u64, bytes: Vec<u8>) -> Response {
    let mut response = protected(StatusCode::OK, "application/octet-stream", bytes);
    let name = format!("attachment; filename=\"message-{number}\"");
    if let Ok(name) = HeaderValue::try_from(name) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

/// Bytes as a block of text: JSON with its parts on lines of their own, text, or hexadecimal.
pub(crate) fn block(bytes: &[u8], content_type: Option<&str>) -> Markup {
    let (kind, text, is_whole) = match std::str::from_utf8(bytes) {
        Ok("") => return html! { p.quiet { "Empty." } },
        Ok(text) if content_type.is_some_and(is_json) && is_valid_json(text) => {
            let (text, is_whole) = cut(text, limits::SCREEN_BODY_BYTES);
            ("JSON", pretty(text), is_whole)
        }
        Ok(text) => {
            let (text, is_whole) = cut(text, limits::SCREEN_BODY_BYTES);
            ("text", text.to_owned(), is_whole)
        }
        Err(_) => ("bytes", hex(bytes), bytes.len() <= HEX_BYTES),
    };
    let shown = visible(&text, true);
    let (shown, is_short) = cut(&shown, 2 * limits::SCREEN_BODY_BYTES);
    html! {
        p.quiet { (kind) ", " (counted(bytes.len() as u64, "byte"))
            @if !is_whole || !is_short { ". " strong { "Only the beginning is shown; download the whole." } } }
        pre.body dir="ltr" tabindex="0" data-copy { (shown) }
    }
}

fn is_valid_json(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

fn hex(bytes: &[u8]) -> String {
    let line = |(row, line): (usize, &[u8])| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let character = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
        let characters: String = line.iter().map(character).collect();
        format!("{:08x}  {:<47}  {characters}\n", row * 16, digits.join(" "))
    };
    bytes.chunks(16).take(HEX_BYTES / 16).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_body_is_text_and_of_limited_length() {
        let script = "<script>alert(1)</script>".repeat(100_000);
        let html = block(script.as_bytes(), Some("text/html")).into_string();
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
        assert!(html.len() < 2 * limits::SCREEN_BODY_BYTES + 1_000, "{}", html.len());
        let deep = "[".repeat(50_000) + &"]".repeat(50_000);
        assert!(block(deep.as_bytes(), Some("application/json")).into_string().len() < 250_000);
        let turned = block("a\u{202e}b".as_bytes(), None).into_string();
        assert!(turned.contains("U+202E") && !turned.contains('\u{202e}'));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_in_hexadecimal() {
        assert_eq!(hex(b"A\xff\n"), format!("00000000  {:<47}  A..\n", "41 ff 0a"));
    }

    #[test]
    fn lone_surrogates_in_json_stay_as_they_were_sent() {
        let html = block(br#"{"a":"\ud800"}"#, Some("application/json")).into_string();
        assert!(html.contains("\\ud800"), "{html}");
    }
}
