//! Editing a dead letter before it goes back: the form, and what was changed in it. The original is kept.

use maud::Markup;
use maud::html;

use crate::api::Problem;
use crate::api::foreign_text::visible;
use crate::api::is_json;
use crate::api::pretty;
use crate::api::views::MessageEnvelope;
use crate::api::views::MessageWord;
use crate::limits;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::body;
use crate::page::fields::FormFields;
use crate::page::labels;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::plan::ActionPlan;
use crate::page::redact::BodyPreview;
use crate::page::redact::Redaction;
use crate::page::text::brief;
use crate::page::text::cut;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

/// Lines that a review shows of what was, and of what is instead.
const LINES_SHOWN: usize = 20;

/// The screen with the form.
pub(crate) async fn screen(visitor: Visit, fields: FormFields) -> PageResult {
    let (queue, number) = fields.message();
    let text = text_of(&look(&visitor, &queue, number).await?)?;
    let back = labels::message_place(&queue, number);
    let content = html! {
        nav.crumbs aria-label="Where this is" { a href=(back) { "Message " (number) } }
        div.review {
            h1 { "Edit and redrive" }
            p.target { "Message " (number) " of " (visible(&queue, false)) }
            form.card method="post" action="review" {
                input type="hidden" name="form_token" value=(visitor.form_token);
                input type="hidden" name="do" value="edit";
                input type="hidden" name="queue" value=(queue);
                input type="hidden" name="number" value=(number);
                input type="hidden" name="back" value=(back);
                label for="edited" { "Body" }
                // A form drops the first line end of a text.
                textarea #edited name="body" rows="18" spellcheck="false" autocomplete="off" dir="ltr" autofocus { "\n" (text) }
                label for="position" { "New position " span.quiet { "(only if its workflow has gone past its own)" } }
                input #position type="number" min="0" name="position";
                p.quiet { "The message goes back with this body. The original stays among the dead letters, with the reason "
                    code { "edited" } "." }
                div.buttons {
                    button.primary type="submit" { "See what would be done" }
                    a.button href=(back) { "Leave it" }
                }
            }
        }
    };
    Ok(Screen::still(Tab::DeadLetters, format!("Edit message {number}"), content).into())
}

async fn look(visitor: &Visitor, queue: &str, number: u64) -> Result<MessageEnvelope, ApiRefusal> {
    let message = visitor.api.get(&RequestPath::queue(queue).word("messages").data(number)).await?;
    // What is not shown cannot be edited either.
    match Redaction::of(visitor, queue).await?.body(&body::bytes_of(&message)?) {
        BodyPreview::All => Ok(message),
        _ => {
            let detail = format!(
                "message {number} cannot be edited here: the definition of the queue hides parts of its bodies on the page; \
                 `seriatim redrive` takes any body (--body)"
            );
            Err(Box::new(Problem::new("forbidden", detail)))
        }
    }
}

/// The body of a message as a text that a form brings back as it was; of JSON, each part on a line of its own.
fn text_of(message: &MessageEnvelope) -> Result<String, ApiRefusal> {
    let refuse = |why: &str| {
        let number = message.sequence_number;
        let detail = format!(
            "message {number} cannot be edited here: {why}; `seriatim redrive` takes any body (--body)"
        );
        Err(Box::new(Problem::new("misuse", detail)))
    };
    if message.status != MessageWord::DeadLettered {
        return refuse("it is not a dead letter");
    }
    let Ok(text) = String::from_utf8(body::bytes_of(message)?) else {
        return refuse("its body is not text");
    };
    if text.contains(|character: char| character.is_control() && !matches!(character, '\n' | '\t')) {
        return refuse("its body has characters that a form would change");
    }
    // One line of JSON is hard to edit.
    let text = if message.body.is_some() { pretty(&text) } else { text };
    match cut(&text, limits::SCREEN_BODY_BYTES).1 {
        true => Ok(text),
        false => refuse("its body is too long for a form"),
    }
}

/// The body that a form has brought. Browsers end its lines in their own way.
pub(crate) fn new_body(plan: &ActionPlan) -> String {
    plan.one("body").unwrap_or_default().replace("\r\n", "\n")
}

/// What a review says of the new body: what was changed, and whether it is still JSON if it has to be.
pub(crate) async fn changes(visitor: &Visitor, plan: &ActionPlan) -> Result<Markup, ApiRefusal> {
    let message = look(visitor, plan.queue(), plan.number("number").unwrap_or_default()).await?;
    let (old, new) = (text_of(&message)?, new_body(plan));
    let no_json = message.content_type.as_deref().is_some_and(is_json).then(|| {
        serde_json::from_str::<&serde_json::value::RawValue>(&new).err().map(|error| error.to_string())
    });
    let (before, after) = differing(&old, &new);
    Ok(html! {
        @if let Some(error) = no_json.flatten() {
            div.notice.warn { p { strong { "The new body is not JSON, as its content type says: " } (visible(&error, false)) } }
        }
        div.card {
            h2 { "What is changed in the body" }
            @if before.is_empty() && after.is_empty() { p { "Nothing." } }
            @else { (lines("Before", &before)) (lines("After", &after)) }
        }
    })
}

fn lines(name: &str, lines: &[&str]) -> Markup {
    html! {
        h3 { (name) }
        @if lines.is_empty() { p.quiet { "No line." } } @else {
            pre.body dir="ltr" tabindex="0" { @for line in lines.iter().take(LINES_SHOWN) { (brief(line, 400)) "\n" } }
            @if lines.len() > LINES_SHOWN { p.quiet { "and " (lines.len() - LINES_SHOWN) " more" } }
        }
    }
}

/// The lines in which two texts differ: those between what they have in common at the beginning and at the end.
fn differing<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    (old[..old.len() - tail].to_vec(), new[..new.len() - tail].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_shown() {
        assert_eq!(differing("a\nb\nc", "a\nx\ny\nc"), (vec!["b"], vec!["x", "y"]));
        assert_eq!(differing("a\na", "a\na\na"), (vec![], vec!["a"]));
        assert_eq!(differing("same", "same"), (vec![], vec![]));
    }
}
