//! Documents as requests send them: an entry whose content describes an entity.

use axum::body::Body;
use roxmltree::Node;

use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::shared::EndpointState;
use crate::xml;

/// Reads the body of a request to its end.
pub(crate) async fn whole(shared: &EndpointState, body: Body) -> Result<String, AdminRefusal> {
    let reading = Inflow::new(&shared.reading, body, limits::SERVICE_BUS_DOCUMENT_BYTES_MAX);
    let (body, _room) = reading.all().await?;
    let text = std::str::from_utf8(&body).map_err(|_| AdminRefusal::bad("the body is not UTF-8"))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Reads an entry, and gives what describes an entity to `inside`. Namespaces and their prefixes are not looked at: each
/// SDK writes others.
pub(crate) fn read<T>(
    text: &str,
    element: &str,
    inside: impl FnOnce(Node<'_, '_>) -> Result<T, AdminRefusal>,
) -> Result<T, AdminRefusal> {
    let wrong =
        |why: String| AdminRefusal::bad(format!("the body is no Atom entry with a <{element}>: {why}"));
    let document = xml::parse(text).map_err(wrong)?;
    let root = document.root_element();
    let described = match root.tag_name().name() {
        "entry" => child(root, "content").and_then(|content| child(content, element)),
        _ => None,
    };
    inside(described.ok_or_else(|| wrong("it is not there".to_owned()))?)
}

/// The first element of a name in another.
pub(crate) fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    elements(node).find(|child| child.tag_name().name() == name)
}

/// The elements in another.
pub(crate) fn elements<'a, 'input>(node: Node<'a, 'input>) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(Node::is_element)
}

/// All text of an element.
pub(crate) fn text(node: Node<'_, '_>) -> String {
    node.children().filter(Node::is_text).filter_map(|part| part.text()).collect()
}

/// The type that an element says it has, without the prefix of its namespace.
pub(crate) fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    let kind = node.attributes().find(|attribute| attribute.name() == "type");
    let kind = kind.map_or("", |attribute| attribute.value());
    kind.rsplit_once(':').map_or(kind, |(_, name)| name)
}
