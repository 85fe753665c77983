//! Topics: list, look, create, delete, subscribe, send.

use axum::extract::Request;
use axum::extract::State;
use http::StatusCode;

use crate::api::PageQuery;
use crate::api::PublishResponse;
use crate::api::RuleEnvelope;
use crate::api::SendEnvelope;
use crate::api::SubscriptionEnvelope;
use crate::api::SubscriptionRequest;
use crate::api::TopicEnvelope;
use crate::api::TopicPage;
use crate::api::TopicRequest;
use crate::engine::Topic;
use crate::engine::TopicView;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::id::SubscriptionName;
use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::message::Message;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::answer::json_as;
use crate::server::answer::no_content;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::extract::QueryParams;
use crate::server::extract::check_not_encoded;
use crate::server::extract::read_json;
use crate::server::headers::message_of;
use crate::server::impersonation::Acting;
use crate::server::page::page_of_reached;
use crate::server::principal::Principal;
use crate::server::queues::check_not_defined;
use crate::server::send::has_lines;
use crate::server::send::messages_of;
use crate::server::send::once;
use crate::server::send::once_key;
use crate::server::shared::SharedServer;

pub(crate) async fn list(
    State(shared): State<SharedServer>,
    principal: Principal,
    QueryParams(page): QueryParams<PageQuery>,
) -> HttpResult {
    let (views, after) = page_of_reached(&shared.client, &principal, page).await?;
    json(&TopicPage { topics: views.iter().map(TopicEnvelope::show).collect(), after })
}

pub(crate) async fn look(State(shared): State<SharedServer>, extract: PathParams) -> HttpResult {
    let topic = shared.client.topic(extract.text("topic")?)?;
    json(&TopicEnvelope::show(&view_of(&topic).await?))
}

pub(crate) async fn put(
    Acting(client): Acting,
    extract: PathParams,
    JsonBody(TopicRequest {}): JsonBody<TopicRequest>,
) -> HttpResult {
    let topic = client.topic(extract.text("topic")?)?;
    let existed = topic.view().await?.is_some();
    client.create_topic(topic.name()).await?;
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json_as(status, &TopicEnvelope::show(&view_of(&topic).await?)))
}

pub(crate) async fn delete(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
) -> HttpResult {
    let topic = shared.client.topic(extract.text("topic")?)?;
    for subscription in view_of(&topic).await?.subscriptions {
        check_not_defined(&shared, &subscription.queue)?;
    }
    client.delete_topic(topic.name()).await?;
    no_content()
}

pub(crate) async fn put_subscription(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
    JsonBody(request): JsonBody<SubscriptionRequest>,
) -> HttpResult {
    let name = SubscriptionName::new(extract.text("subscription")?)?;
    let topic = client.topic(extract.text("topic")?)?;
    check_not_defined(&shared, topic.subscription(&name)?.name())?;
    let rules = request.read_rules()?;
    let options = request.options.read()?;
    let existed = known(&topic, &name).await?.is_some();
    topic.put_subscription(&name, options, rules).await?;
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    let shown = known(&topic, &name).await?;
    let shown = shown.ok_or_else(|| not_found(&topic, &name))?;
    Ok(json_as(status, &shown))
}

pub(crate) async fn put_rule(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
    JsonBody(request): JsonBody<RuleEnvelope>,
) -> HttpResult {
    let topic = client.topic(extract.text("topic")?)?;
    let (subscription, name) = (extract.text("subscription")?, extract.text("rule")?);
    check_not_defined(&shared, topic.subscription(subscription)?.name())?;
    let rule = RuleEnvelope { name: Some(name.to_owned()), ..request }.read()?;
    topic.add_rule(subscription, rule.clone()).await?;
    Ok(json_as(StatusCode::CREATED, &RuleEnvelope::show(&rule)))
}

pub(crate) async fn delete_rule(
    State(shared): State<SharedServer>,
    Acting(client): Acting,
    extract: PathParams,
) -> HttpResult {
    let topic = client.topic(extract.text("topic")?)?;
    let subscription = extract.text("subscription")?;
    check_not_defined(&shared, topic.subscription(subscription)?.name())?;
    topic.remove_rule(subscription, extract.text("rule")?).await?;
    no_content()
}

pub(crate) async fn send(
    State(shared): State<SharedServer>,
    extract: PathParams,
    request: Request,
) -> HttpResult {
    let topic = shared.client.topic(extract.text("topic")?)?;
    let (parts, body) = request.into_parts();
    check_not_encoded(&parts.headers)?;
    let key = once_key(&parts.headers)?;
    let (body, _room) = Inflow::new(&shared.reading, body, limits::HTTP_MESSAGES_BYTES_MAX).all().await?;
    let once = once(key, &parts.headers, &body)?;
    let messages = match has_lines(&parts.headers) {
        true => messages_of(&shared, body, message_in)?,
        false => vec![message_of(&parts.headers, Message::new(body))?],
    };
    let copies = match once {
        Some(key) => topic.send_batch_once(key, messages).await?,
        None => topic.send_batch(messages).await?,
    };
    Ok(json_as(StatusCode::CREATED, &PublishResponse::show(copies)))
}

fn message_in(line: &[u8]) -> Result<Message, HttpRefusal> {
    let envelope: SendEnvelope = read_json(line)?;
    match envelope.queue {
        None => Ok(envelope.into_message()?),
        Some(_) => {
            Err(HttpRefusal::misuse("queue", "is given, and a topic sends to all of its subscriptions"))
        }
    }
}

async fn view_of(topic: &Topic) -> Result<TopicView, HttpRefusal> {
    let view = topic.view().await?;
    view.ok_or_else(|| TopicError::from(TopicRefusal::TopicNotFound(topic.name().clone())).into())
}

async fn known(topic: &Topic, name: &SubscriptionName) -> Result<Option<SubscriptionEnvelope>, HttpRefusal> {
    let view = view_of(topic).await?;
    let found = view.subscriptions.iter().find(|subscription| subscription.name == *name);
    Ok(found.map(SubscriptionEnvelope::show))
}

fn not_found(topic: &Topic, name: &SubscriptionName) -> HttpRefusal {
    let refusal = TopicRefusal::SubscriptionNotFound(topic.name().clone(), name.clone());
    TopicError::from(refusal).into()
}
