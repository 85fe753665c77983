//! Every route there is, in one table.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use http::StatusCode;

use crate::api::AbandonRequest;
use crate::api::AuditPage;
use crate::api::AuditQuery;
use crate::api::BackupRequest;
use crate::api::BackupView;
use crate::api::BlockedPage;
use crate::api::BlockedQuery;
use crate::api::BulkRequest;
use crate::api::BulkResponse;
use crate::api::CancelQuery;
use crate::api::CompleteManyRequest;
use crate::api::CompleteManyResponse;
use crate::api::CompleteRequest;
use crate::api::CompleteResponse;
use crate::api::DeadLetterPage;
use crate::api::DeadLetterRequest;
use crate::api::DeadLettersQuery;
use crate::api::DeferRequest;
use crate::api::DefinitionPage;
use crate::api::DrainNodeRequest;
use crate::api::EventsQuery;
use crate::api::HistoryPage;
use crate::api::HistoryQuery;
use crate::api::KeyQuery;
use crate::api::MessagePage;
use crate::api::MessageQuery;
use crate::api::MessagesQuery;
use crate::api::MovePartitionRequest;
use crate::api::OperateRequest;
use crate::api::OperateResponse;
use crate::api::PageQuery;
use crate::api::PurgeRequest;
use crate::api::PurgeResponse;
use crate::api::QueuePage;
use crate::api::ReceiptView;
use crate::api::ReceiveDeferredRequest;
use crate::api::ReceiveRequest;
use crate::api::ReceiveResponse;
use crate::api::RedriveManyRequest;
use crate::api::RedriveManyResponse;
use crate::api::RedriveRequest;
use crate::api::RedriveResponse;
use crate::api::RenewResponse;
use crate::api::RescheduleRequest;
use crate::api::RunScheduleRequest;
use crate::api::RunScheduleResponse;
use crate::api::SchedulePage;
use crate::api::SendQuery;
use crate::api::SentLine;
use crate::api::SettleRunRequest;
use crate::api::WorkflowAuditQuery;
use crate::api::WorkflowMessagesQuery;
use crate::api::WorkflowPage;
use crate::api::WorkflowQuery;
use crate::api::WorkflowsQuery;
use crate::api::options::OptionsEnvelope;
use crate::api::views::ClusterView;
use crate::api::views::DeadLetterGroupsView;
use crate::api::views::KeyView;
use crate::api::views::MessageEnvelope;
use crate::api::views::QueueEnvelope;
use crate::api::views::RatesView;
use crate::api::views::StatusView;
use crate::api::views::WorkflowEnvelope;
use crate::inbound::browser::bytes_as;
use crate::server::answer::HttpRefusal;
use crate::server::audit;
use crate::server::authorize::authorize;
use crate::server::blocked;
use crate::server::bulk;
use crate::server::cluster;
use crate::server::daemon;
use crate::server::dead_letters;
use crate::server::events;
use crate::server::groups;
use crate::server::headers::HEADERS;
use crate::server::history;
use crate::server::openapi;
use crate::server::operate;
use crate::server::peek;
use crate::server::queues;
use crate::server::receive;
use crate::server::route::Route;
use crate::server::route::delete;
use crate::server::route::get;
use crate::server::route::post;
use crate::server::route::put;
use crate::server::send;
use crate::server::settle;
use crate::server::shared::SharedServer;
use crate::server::topic_routes::topic_routes;
use crate::server::workflows;

const OK: StatusCode = StatusCode::OK;
const CREATED: StatusCode = StatusCode::CREATED;

/// Every route there is.
pub(crate) fn routes() -> Vec<Route> {
    [health(), around(), queues_and_messages(), topic_routes(), receiving(), looking(), operating()]
        .into_iter()
        .flatten()
        .collect()
}

fn health() -> Vec<Route> {
    vec![
        get("/healthz", "Whether the process lives", daemon::healthz)
            .open()
            .quiet()
            .gives_text(daemon::TEXT, "It lives"),
        get("/readyz", "Whether work is accepted", daemon::readyz)
            .open()
            .quiet()
            .gives_text(daemon::TEXT, "It is ready"),
        get("/metrics", "Metrics in the text format of OpenMetrics", daemon::metrics)
            .for_listeners()
            .quiet()
            .gives_text(daemon::METRICS, "The metrics"),
        get("/openapi.json", "This document", document).open().gives::<serde_json::Value>(OK, "The document"),
    ]
}

fn around() -> Vec<Route> {
    vec![
        get("/v1/status", "How the daemon is", daemon::status)
            .for_listeners()
            .of_each_queue()
            .gives::<StatusView>(OK, "Its state"),
        get("/v1/key", "What the key of this request may do", daemon::key)
            .for_listeners()
            .of_each_queue()
            .asks::<KeyQuery>()
            .gives::<KeyView>(OK, "Its rights"),
        get("/v1/definitions", "The definitions in use", daemon::definitions)
            .for_listeners()
            .of_each_queue()
            .gives::<DefinitionPage>(OK, "The definitions"),
        post("/v1/definitions/reload", "Reads the definition files again", daemon::reload)
            .gives::<DefinitionPage>(OK, "The definitions as they are now"),
        get("/v1/schedules", "The schedules, with their next instants", daemon::schedules)
            .for_listeners()
            .of_each_queue()
            .gives::<SchedulePage>(OK, "The schedules"),
        get("/v1/rates", "How much came and was completed in each minute of the last hour", daemon::rates)
            .for_listeners()
            .of_each_queue()
            .gives::<RatesView>(OK, "The rates"),
        get("/v1/audit", "What operators did", audit::audit)
            .asks::<AuditQuery>()
            .gives::<AuditPage>(OK, "A page of what they did"),
        post("/v1/backup", "Copies everything to a new file while work goes on", daemon::backup)
            .takes::<BackupRequest>()
            .gives::<BackupView>(OK, "The copy is made"),
        get("/v1/cluster", "The nodes and partitions of the cluster", cluster::look)
            .gives::<ClusterView>(OK, "As the daemon sees it"),
        post("/v1/cluster/drain", "Has a node give its partitions to others", cluster::drain)
            .takes::<DrainNodeRequest>()
            .gives::<ClusterView>(OK, "It has begun to"),
        post("/v1/cluster/move", "Has a node own a partition", cluster::move_partition)
            .takes::<MovePartitionRequest>()
            .gives::<ClusterView>(OK, "It is to"),
        get("/v1/blocked", "Every workflow that does not get on, and what happens next", blocked::list)
            .for_listeners()
            .of_each_queue()
            .asks::<BlockedQuery>()
            .gives::<BlockedPage>(OK, "A page of them"),
        get("/v1/events", "What happens from now on, as server-sent events", events::listen)
            .for_listeners()
            .of_each_queue()
            .asks::<EventsQuery>()
            .gives_text("text/event-stream", "The events; `missed` means that the reader was too slow"),
    ]
}

fn queues_and_messages() -> Vec<Route> {
    vec![
        get("/v1/queues", "Lists queues", queues::list)
            .for_listeners()
            .of_each_queue()
            .asks::<PageQuery>()
            .gives::<QueuePage>(OK, "A page of queues"),
        get("/v1/queues/{queue}", "A queue, with its counts and options", queues::look)
            .for_listeners()
            .gives::<QueueEnvelope>(OK, "The queue"),
        put(
            "/v1/queues/{queue}",
            "Creates a queue, or gives it these options in the place of all that it had",
            queues::put,
        )
        .takes::<OptionsEnvelope>()
        .gives::<QueueEnvelope>(CREATED, "The queue was created")
        .gives::<QueueEnvelope>(OK, "The queue was there; it has these options now"),
        delete("/v1/queues/{queue}", "Deletes a queue with everything in it", queues::delete)
            .gives_nothing("It is deleted"),
        post("/v1/queues/{queue}/pause", "Pauses the handlers of a queue", queues::pause)
            .gives_nothing("They are paused"),
        post("/v1/queues/{queue}/resume", "Lets the handlers of a queue go on", queues::resume)
            .gives_nothing("They go on"),
        post(
            "/v1/queues/{queue}/schedules/{schedule}/run",
            "Sends at once what a schedule sends",
            daemon::run_schedule,
        )
        .takes::<RunScheduleRequest>()
        .gives::<RunScheduleResponse>(OK, "What was sent"),
        post("/v1/queues/{queue}/purge", "Removes every message for good", queues::purge)
            .takes::<PurgeRequest>()
            .gives::<PurgeResponse>(OK, "How many were removed"),
        post("/v1/queues/{queue}/messages", "Sends a message, or one a line", send::send)
            .for_senders()
            .with_messages()
            .headers(HEADERS)
            .asks::<SendQuery>()
            .takes_bytes(&["application/octet-stream", "application/json", "application/x-ndjson"])
            .gives::<ReceiptView>(CREATED, "The message is on disk")
            .gives::<ReceiptView>(OK, "The message was sent before")
            .gives_lines::<SentLine>("Of a batch: what became of each line, in order"),
        get("/v1/queues/{queue}/messages", "Looks at messages of any status", peek::list)
            .for_listeners()
            .asks::<MessagesQuery>()
            .gives::<MessagePage>(OK, "A page of messages"),
        get("/v1/queues/{queue}/messages/{number}", "Looks at a message", peek::look)
            .for_listeners()
            .asks::<MessageQuery>()
            .gives::<MessageEnvelope>(OK, "The message"),
        delete("/v1/queues/{queue}/messages/{number}", "Cancels a scheduled message", peek::cancel)
            .for_senders()
            .asks::<CancelQuery>()
            .gives_nothing("It is cancelled, and its place is free again, or void if that was requested"),
        post(
            "/v1/queues/{queue}/messages/{number}/reschedule",
            "Lets a scheduled message come at another instant",
            peek::reschedule,
        )
        .for_senders()
        .takes::<RescheduleRequest>()
        .gives_nothing("It comes at that instant, with its place, ID and number"),
    ]
}

fn receiving() -> Vec<Route> {
    vec![
        post("/v1/queues/{queue}/receive", "Receives messages, waiting for the first", receive::receive)
            .for_listeners()
            .takes::<ReceiveRequest>()
            .gives::<ReceiveResponse>(OK, "What was handed out"),
        post(
            "/v1/queues/{queue}/receive_deferred",
            "Receives messages that were set aside",
            receive::receive_deferred,
        )
        .for_listeners()
        .takes::<ReceiveDeferredRequest>()
        .gives::<ReceiveResponse>(OK, "What was handed out"),
        post("/v1/queues/{queue}/complete", "Completes many deliveries", settle::complete_many)
            .for_listeners()
            .takes::<CompleteManyRequest>()
            .gives::<CompleteManyResponse>(OK, "What became of each"),
        settling(
            "/v1/queues/{queue}/deliveries/{delivery}/complete",
            "Ends a delivery well",
            settle::complete,
        )
        .with_messages()
        .takes::<CompleteRequest>()
        .gives_nothing("It is completed")
        .gives::<CompleteResponse>(OK, "It is completed, and messages were sent with it"),
        settling(
            "/v1/queues/{queue}/deliveries/{delivery}/abandon",
            "Ends a delivery as failed, to be tried again",
            settle::abandon,
        )
        .takes::<AbandonRequest>()
        .gives_nothing("It will be tried again"),
        settling("/v1/queues/{queue}/deliveries/{delivery}/defer", "Sets a delivery aside", settle::defer)
            .takes::<DeferRequest>()
            .gives_nothing("It is set aside"),
        settling(
            "/v1/queues/{queue}/deliveries/{delivery}/dead_letter",
            "Moves a delivery aside for good",
            settle::dead_letter,
        )
        .takes::<DeadLetterRequest>()
        .gives_nothing("It is a dead letter"),
        settling(
            "/v1/queues/{queue}/deliveries/{delivery}/release",
            "Gives a delivery back unstarted",
            settle::release,
        )
        .gives_nothing("It is given back as if it had not been handed out"),
        settling(
            "/v1/queues/{queue}/deliveries/{delivery}/renew",
            "Prolongs the lock of a delivery",
            settle::renew,
        )
        .gives::<RenewResponse>(OK, "Until when it lasts now"),
        post("/v1/queues/{queue}/runs/{run}/settle", "Settles a run from its first on", settle::settle_run)
            .for_listeners()
            .with_messages()
            .takes::<SettleRunRequest>()
            .gives_nothing("It is settled")
            .gives::<CompleteResponse>(OK, "It is settled, and messages were sent with it"),
        post("/v1/queues/{queue}/runs/{run}/renew", "Prolongs the lock of a run", settle::renew_run)
            .for_listeners()
            .gives::<RenewResponse>(OK, "Until when it lasts now"),
    ]
}

fn looking() -> Vec<Route> {
    vec![
        get("/v1/queues/{queue}/workflows", "Lists workflows", workflows::list)
            .for_listeners()
            .asks::<WorkflowsQuery>()
            .gives::<WorkflowPage>(OK, "A page of workflows"),
        get("/v1/queues/{queue}/workflow", "A workflow: what it does, or why nothing", workflows::look)
            .for_listeners()
            .asks::<WorkflowQuery>()
            .gives::<WorkflowEnvelope>(OK, "The workflow"),
        get("/v1/queues/{queue}/workflow/messages", "The line of a workflow", workflows::messages)
            .for_listeners()
            .asks::<WorkflowMessagesQuery>()
            .gives::<MessagePage>(OK, "A page of its messages, in order"),
        get("/v1/queues/{queue}/workflow/state", "The state of a workflow", workflows::state)
            .for_listeners()
            .asks::<WorkflowQuery>()
            .gives_text("application/octet-stream", "The state; `application/json` if it is JSON"),
        get("/v1/queues/{queue}/workflow/audit", "What operators did to a workflow", audit::of_workflow)
            .asks::<WorkflowAuditQuery>()
            .gives::<AuditPage>(OK, "What they did lately, newest first"),
        put("/v1/queues/{queue}/workflow/state", "Sets the state of a workflow", workflows::put_state)
            .asks::<WorkflowQuery>()
            .takes_bytes(&["application/octet-stream", "application/json"])
            .gives_nothing("It is set"),
        delete(
            "/v1/queues/{queue}/workflow/state",
            "Clears the state of a workflow",
            workflows::delete_state,
        )
        .asks::<WorkflowQuery>()
        .gives_nothing("It is cleared"),
        get("/v1/queues/{queue}/history", "Lists how messages have ended, newest first", history::list)
            .for_listeners()
            .asks::<HistoryQuery>()
            .gives::<HistoryPage>(OK, "A page of what the queue remembers"),
        get("/v1/queues/{queue}/dead_letters", "Lists dead letters", dead_letters::list)
            .for_listeners()
            .asks::<DeadLettersQuery>()
            .gives::<DeadLetterPage>(OK, "A page of dead letters"),
        get("/v1/queues/{queue}/dead_letters/groups", "Dead letters in groups of one kind", groups::list)
            .for_listeners()
            .gives::<DeadLetterGroupsView>(OK, "The groups"),
    ]
}

fn operating() -> Vec<Route> {
    vec![
        post("/v1/queues/{queue}/workflow/{verb}", "Operates on a workflow", operate::operate)
            .asks::<WorkflowQuery>()
            .takes::<OperateRequest>()
            .gives::<OperateResponse>(OK, "What was done"),
        post("/v1/queues/{queue}/operate", "Operates on all workflows a filter finds", bulk::bulk)
            .takes::<BulkRequest>()
            .gives::<BulkResponse>(OK, "What was done, and where to go on"),
        post(
            "/v1/queues/{queue}/dead_letters/{number}/redrive",
            "Puts a dead letter back",
            dead_letters::redrive,
        )
        .takes::<RedriveRequest>()
        .gives::<RedriveResponse>(OK, "How it came back"),
        post("/v1/queues/{queue}/dead_letters/redrive", "Puts dead letters back", dead_letters::redrive_many)
            .takes::<RedriveManyRequest>()
            .gives::<RedriveManyResponse>(OK, "Which came back, and where to go on"),
        post(
            "/v1/queues/{queue}/dead_letters/purge",
            "Removes all dead letters for good",
            dead_letters::purge,
        )
        .takes::<PurgeRequest>()
        .gives::<PurgeResponse>(OK, "How many were removed"),
    ]
}

/// A way to settle one delivery.
fn settling<H: Handler<T, SharedServer>, T: 'static>(
    path: &'static str,
    says: &'static str,
    handler: H,
) -> Route {
    post(path, says, handler).for_listeners()
}

/// The router of all routes.
pub(crate) fn router(shared: &SharedServer) -> Router {
    let mut router = Router::new();
    for Route { facts, handler } in routes() {
        let (path, facts) = (facts.path, Arc::new(facts));
        let guarded = handler.layer(from_fn_with_state((shared.clone(), facts), authorize));
        router = router.route(path, guarded);
    }
    router.fallback(nothing_here).method_not_allowed_fallback(not_this_method).with_state(shared.clone())
}

/// The description of the API is a route of it.
async fn document() -> Response {
    bytes_as(StatusCode::OK, "application/json", openapi::document(routes).to_vec())
}

async fn nothing_here() -> HttpRefusal {
    HttpRefusal::new("route_not_found", "there is nothing at this address; /openapi.json lists what there is")
}

async fn not_this_method() -> HttpRefusal {
    HttpRefusal::new(
        "method_not_allowed",
        "the method is not allowed here; /openapi.json lists those that are",
    )
}
