//! The screen of a cluster: who has what, and giving partitions to others.

use fantoccini::key::Key;
use serde_json::Value;
use serde_json::json;
use seriatim::cluster::ClusterNode;
use seriatim::cluster::ClusterOptions;
use seriatim::cluster::LocalNats;

use crate::cluster::nats_program::nats_program;
use crate::page::axe;
use crate::page::browser::Chromium;
use crate::page::browser::TOO_WIDE;
use crate::page::browser::UNNAMED;
use crate::page::fixture::Fixture;
use crate::page::fixture::TIMEOUT;
use crate::page::stock::DEFINED;

/// A daemon that is a node, another node, and their server.
struct SmallCluster {
    fixture: Fixture,
    second: ClusterNode,
    _nats: LocalNats,
    _folder: tempfile::TempDir,
}

impl SmallCluster {
    /// Starts them; `None` where there is no NATS server.
    async fn start() -> Option<SmallCluster> {
        let program = nats_program()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let nats = LocalNats::start(&program, folder.path(), 1).await.expect("a server starts");
        let options = |node: &str| {
            let options =
                ClusterOptions::new("shop", node, folder.path().join(node)).partitions(4).replicas(1);
            nats.servers().fold(options, |options, (server, monitor, _)| options.server(server, monitor))
        };
        let own = options("first");
        let fixture = Fixture::open_with(&[DEFINED], |options, _| options.cluster = Some(own)).await;
        let second = ClusterNode::start(options("second")).await.expect("a node starts");
        let cluster = SmallCluster { fixture, second, _nats: nats, _folder: folder };
        cluster.until(|view| view["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)).await;
        Some(cluster)
    }

    /// Looks until something is so.
    async fn until(&self, is_so: impl Fn(&Value) -> bool) {
        let looked = async {
            while !is_so(&self.fixture.api("GET", "/cluster", "").await) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, looked).await.expect("the cluster comes to be so");
    }

    /// Asks the API until it is done: while partitions move, nobody may have one, or answer for it.
    async fn ask(&self, method: &str, path: &str, body: &str) {
        let mut last = None;
        let asked = async {
            loop {
                let answer = self.fixture.api_as(method, path, body, &[]).await;
                let is_for_now = matches!(answer.status, 503 | 504);
                let answer = last.insert(answer);
                if !is_for_now {
                    return assert!(answer.status < 300, "{method} {path}: {answer:?}");
                }
                tokio::task::yield_now().await;
            }
        };
        let done = tokio::time::timeout(TIMEOUT, asked).await;
        assert!(done.is_ok(), "{method} {path}: {last:?}");
    }

    async fn end(self) {
        self.second.close().await;
    }
}

/// Whether each partition is of this node.
fn all_of(view: &Value, node: &str) -> bool {
    view["partitions"].as_array().is_some_and(|all| all.iter().all(|partition| partition["owner"] == node))
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_partitions_are_shown_and_a_node_is_drained_and_a_partition_moved_after_a_review() {
    let Some(cluster) = SmallCluster::start().await else { return };
    let mut browser = cluster.fixture.browser();
    let screen = browser.screen("cluster").await;
    for shown in
        ["Cluster shop", "as first sees it", "id=\"node-second\"", "id=\"partition-3\"", "href=\"cluster\""]
    {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    let drain = "do=drain_node&node=second&back=cluster";
    let review = browser.screen(&format!("review?{drain}")).await;
    assert!(review.contains("to other nodes, one after the other"), "{review}");
    let drains = |view: &Value| view["nodes"][1]["drains"].clone();
    assert_eq!(drains(&cluster.fixture.api("GET", "/cluster", "").await), false, "looking changes nothing");
    let done = browser.act(drain, None).await;
    assert_eq!((done.status, done.header("location")), (303, Some("cluster")));
    cluster.until(|view| drains(view) == true && all_of(view, "first")).await;
    let told = browser.screen("cluster").await;
    assert!(told.contains("Drain, node second: it gives its partitions to others"), "{told}");
    assert!(told.contains("Let it take partitions"), "{told}");
    let last = browser.screen("review?do=drain_node&node=first").await;
    assert!(last.contains("there is no other node"), "{last}");
    browser.act("do=undrain_node&node=second&back=cluster", None).await;
    let asked = browser.screen("review?do=move_partition&partition=2&back=cluster").await;
    assert!(asked.contains("name=\"node\"") && asked.contains("value=\"second\""), "{asked}");
    browser.act("do=move_partition&partition=2&node=second&back=cluster", None).await;
    cluster.until(|view| view["partitions"][2]["owner"] == "second").await;
    assert!(browser.screen("cluster").await.contains("moved to second"));
    browser.act("do=unmove_partition&partition=2&back=cluster", None).await;
    cluster.until(|view| view["partitions"][2]["moved_to"].is_null()).await;
    let epochs = cluster.fixture.api("GET", "/cluster", "").await["partitions"][2]["epoch"].as_u64();
    assert!(epochs.is_some_and(|epoch| epoch >= 2), "each takeover is counted: {epochs:?}");
    let unknown = browser.screen("review?do=drain_node&node=nobody").await;
    assert!(unknown.contains("node nobody is not heard"), "{unknown}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_of_a_workflow_of_a_cluster_is_shown_to_who_may_operate_on_it() {
    let Some(cluster) = SmallCluster::start().await else { return };
    // So that no partition moves any more.
    cluster.ask("POST", "/cluster/drain", r#"{"node":"second"}"#).await;
    cluster.until(|view| all_of(view, "first")).await;
    cluster.ask("PUT", "/queues/orders", r#"{"order":"position"}"#).await;
    cluster.ask("POST", "/queues/orders/workflow/hold?id=order-17", r#"{"reason":"look"}"#).await;
    let screen = cluster.fixture.browser().screen("workflow?queue=orders&id=order-17").await;
    assert!(screen.contains("do=resume&amp;queue=orders&amp;id=order-17"), "{screen}");
    assert!(!screen.contains("href=\"audit\""), "there is no audit of all partitions: {screen}");
    cluster.end().await;
}

#[tokio::test]
async fn a_daemon_that_is_no_node_has_no_such_screen() {
    let fixture = Fixture::open(&[DEFINED]).await;
    let mut browser = fixture.browser();
    assert!(!browser.screen("overview").await.contains("href=\"cluster\""));
    let answer = browser.get("cluster").await;
    assert!(answer.status == 409 && answer.text().contains("no_cluster"), "{}", answer.text());
    assert_eq!(fixture.api("GET", "/status", "").await["cluster"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_drained_by_keyboard_alone_on_a_screen_that_fits_a_phone() {
    let Some(chromium) = Chromium::start().await else { return };
    let Some(cluster) = SmallCluster::start().await else { return };
    let page = format!("http://{}/ui/", cluster.fixture.address);
    for width in [1_440, 390] {
        chromium.client.set_window_size(width, 900).await.unwrap();
        for place in [
            "cluster",
            "review?do=move_partition&partition=1&back=cluster",
            "review?do=drain_node&node=second",
        ] {
            chromium.open(&format!("{page}{place}")).await;
            assert_eq!(chromium.script(TOO_WIDE).await, false, "{place} is wider than {width}");
            assert_eq!(chromium.script(UNNAMED).await, json!([]), "{place}");
            if let Ok(axe) = axe::axe() {
                chromium.script(&axe).await;
                let wrong = chromium.client.execute_async(axe::RUN, Vec::new()).await.unwrap();
                assert_eq!(wrong, json!([]), "{place}");
            }
        }
    }
    chromium.open(&format!("{page}review?do=drain_node&node=second&back=cluster")).await;
    chromium.tab_to("Drain").await;
    chromium.press(&char::from(Key::Enter).to_string()).await;
    let notice = chromium.find("#notice").await.text().await.unwrap();
    assert!(notice.contains("it gives its partitions to others"), "{notice}");
    cluster.until(|view| all_of(view, "first")).await;
    chromium.end().await;
    cluster.end().await;
}
