//! The routes of topics, a part of the table of routes.

use http::StatusCode;

use crate::api::PageQuery;
use crate::api::PublishResponse;
use crate::api::RuleEnvelope;
use crate::api::SubscriptionEnvelope;
use crate::api::SubscriptionRequest;
use crate::api::TopicEnvelope;
use crate::api::TopicPage;
use crate::api::TopicRequest;
use crate::server::headers::HEADERS;
use crate::server::route::Route;
use crate::server::route::delete;
use crate::server::route::get;
use crate::server::route::post;
use crate::server::route::put;
use crate::server::topics;

const OK: StatusCode = StatusCode::OK;
const CREATED: StatusCode = StatusCode::CREATED;

/// A rule of a subscription.
const RULE: &str = "/v1/topics/{topic}/subscriptions/{subscription}/rules/{rule}";

pub(crate) fn topic_routes() -> Vec<Route> {
    vec![
        get("/v1/topics", "Lists topics, with their subscriptions and rules", topics::list)
            .for_listeners()
            .of_each_queue()
            .asks::<PageQuery>()
            .gives::<TopicPage>(OK, "A page of topics"),
        get("/v1/topics/{topic}", "A topic, with its subscriptions and rules", topics::look)
            .for_listeners()
            .gives::<TopicEnvelope>(OK, "The topic"),
        put("/v1/topics/{topic}", "Creates a topic, if it is not there", topics::put)
            .takes::<TopicRequest>()
            .gives::<TopicEnvelope>(CREATED, "The topic was created")
            .gives::<TopicEnvelope>(OK, "The topic was there"),
        delete(
            "/v1/topics/{topic}",
            "Deletes a topic with its subscriptions and everything in them",
            topics::delete,
        )
        .gives_nothing("It is deleted"),
        put(
            "/v1/topics/{topic}/subscriptions/{subscription}",
            "Subscribes to a topic, or changes a subscription's rules and options",
            topics::put_subscription,
        )
        .takes::<SubscriptionRequest>()
        .gives::<SubscriptionEnvelope>(CREATED, "The subscription was created")
        .gives::<SubscriptionEnvelope>(OK, "The subscription was there; it has these rules and options now"),
        put(RULE, "Adds a rule to a subscription", topics::put_rule)
            .takes::<RuleEnvelope>()
            .gives::<RuleEnvelope>(CREATED, "The rule was added"),
        delete(RULE, "Removes a rule from a subscription", topics::delete_rule)
            .gives_nothing("It is removed"),
        post(
            "/v1/topics/{topic}/messages",
            "Sends a message, or one a line, to every subscription that wants it",
            topics::send,
        )
        .for_senders()
        .with_messages()
        .headers(HEADERS)
        .takes_bytes(&["application/octet-stream", "application/json", "application/x-ndjson"])
        .gives::<PublishResponse>(CREATED, "Every copy is on disk"),
    ]
}
