//! Queues: made, changed, told, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::QueueView;
use crate::id::QueueName;
use crate::service_bus::administration::atom::Entry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::Call;
use crate::service_bus::administration::fields::Said;
use crate::service_bus::administration::refused::Answer;
use crate::service_bus::administration::refused::Refused;
use crate::service_bus::administration::told;
use crate::service_bus::administration::told::Known;
use crate::service_bus::description::Description;
use crate::service_bus::slashed::entity_name;

/// The element that describes a queue.
pub(crate) const ELEMENT: &str = "QueueDescription";

pub(crate) fn entry<'a>(view: &'a QueueView, known: &Known<'_>) -> Entry<'a> {
    Entry {
        title: entity_name(view.name.as_str()),
        path: entity_name(view.name.as_str()).into_owned(),
        published: known.created_at,
        updated: known.updated_at(),
        element: ELEMENT,
    }
}

pub(crate) fn tell(call: &Call<'_>, view: &QueueView, status: StatusCode) -> Response {
    let known = call.known(view);
    entry(view, &known).answer(status, call.caller, |xml| known.write(xml, told::QUEUE))
}

pub(crate) async fn create(call: &Call<'_>, name: &str, text: &str) -> Answer {
    let mut said = Said::new();
    document::read(text, ELEMENT, |element| call.take(&mut said, element))?;
    call.check_forwarding(name, &said).await?;
    let name = QueueName::new(name)?;
    let client = call.access.acting(&call.shared.client)?;
    let making = client.create_queue(&name, said.options.clone());
    let queue = call.describe_while((&name, &said), making).await?;
    let view = queue.view().await?;
    call.describe(&name, (&said, Some(view.created_at))).await?;
    Ok(tell(call, &queue.view().await?, StatusCode::CREATED))
}

pub(crate) async fn change(call: &Call<'_>, view: &QueueView, text: &str) -> Answer {
    call.check_undefined(&view.name)?;
    let before = call.said(view);
    let mut said = before.clone();
    document::read(text, ELEMENT, |element| call.take(&mut said, element))?;
    said.options.order = before.options.order;
    said.check_change(&before)?;
    call.check_forwarding(view.name.as_str(), &said).await?;
    let client = call.access.acting(&call.shared.client)?;
    client.change_queue(&view.name, said.options.clone()).await?;
    call.describe(&view.name, (&said, Some(view.created_at))).await?;
    Ok(tell(call, &client.queue(&view.name)?.view().await?, StatusCode::OK))
}

pub(crate) async fn delete(call: &Call<'_>, view: &QueueView) -> Result<(), Refused> {
    call.check_undefined(&view.name)?;
    call.access.acting(&call.shared.client)?.delete_queue(&view.name).await?;
    Ok(call.shared.descriptions.describe(&view.name, &Description::default()).await?)
}
