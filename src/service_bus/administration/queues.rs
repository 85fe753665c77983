//! Queues: made, changed, shown, deleted.

use axum::response::Response;
use http::StatusCode;

use crate::engine::QueueView;
use crate::id::QueueName;
use crate::queue::QueueOptions;
use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::fields::EntitySettings;
use crate::service_bus::administration::properties;
use crate::service_bus::administration::properties::EntityProperties;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::description::Description;

/// The element that describes a queue.
pub(crate) const ELEMENT: &str = "QueueDescription";

pub(crate) fn entry<'a>(view: &'a QueueView, known: &EntityProperties<'_>) -> AtomEntry<'a> {
    known.entry_of(&view.name, ELEMENT)
}

pub(crate) fn answer_with(call: &AdminCall<'_>, view: &QueueView, status: StatusCode) -> Response {
    let known = call.known(view);
    entry(view, &known).answer(status, call.caller, |xml| known.write(xml, properties::QUEUE))
}

pub(crate) async fn create(call: &AdminCall<'_>, name: &str, text: &str) -> AdminResult {
    let mut settings = EntitySettings::new();
    document::read(text, ELEMENT, |element| call.take(&mut settings, element))?;
    call.check_forwarding(name, &settings).await?;
    let name = QueueName::new(name)?;
    let client = call.access.acting(&call.shared.client)?;
    let making = client.create_queue(&name, settings.options.clone());
    let queue = call.describe_while((&name, &settings), making).await?;
    let view = queue.view().await?;
    call.describe(&name, (&settings, Some(view.created_at))).await?;
    Ok(answer_with(call, &queue.view().await?, StatusCode::CREATED))
}

pub(crate) async fn change(call: &AdminCall<'_>, view: &QueueView, text: &str) -> AdminResult {
    Ok(answer_with(call, &changed(call, view, None, (text, ELEMENT)).await?, StatusCode::OK))
}

/// Changes a queue, which may be that of a subscription of a topic, to what an element of a document says.
pub(crate) async fn changed(
    call: &AdminCall<'_>,
    view: &QueueView,
    of_topic: Option<&QueueOptions>,
    (text, element): (&str, &str),
) -> Result<QueueView, AdminRefusal> {
    call.shared.check_undefined(&view.name)?;
    call.check_whole(view)?;
    let before = call.settings(view);
    let mut settings = before.clone();
    document::read(text, element, |element| call.take(&mut settings, element))?;
    settings.options.order = before.options.order;
    if let Some(topic) = of_topic {
        settings.stay_within(topic, &before);
    }
    settings.check_change(&before)?;
    call.check_forwarding(view.name.as_str(), &settings).await?;
    let client = call.access.acting(&call.shared.client)?;
    client.change_queue(&view.name, settings.options.clone()).await?;
    call.describe(&view.name, (&settings, Some(view.created_at))).await?;
    Ok(client.queue(&view.name)?.view().await?)
}

pub(crate) async fn delete(call: &AdminCall<'_>, view: &QueueView) -> Result<(), AdminRefusal> {
    call.shared.check_undefined(&view.name)?;
    call.access.acting(&call.shared.client)?.delete_queue(&view.name).await?;
    Ok(call.shared.descriptions.describe(&view.name, &Description::default()).await?)
}
