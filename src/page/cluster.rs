//! The cluster: which nodes there are, who has which partition, and giving partitions to others.

use maud::Markup;
use maud::html;

use crate::api::DrainNodeRequest;
use crate::api::MovePartitionRequest;
use crate::api::foreign_text::visible;
use crate::api::plural::counted;
use crate::api::views::ClusterView;
use crate::api::views::NodeView;
use crate::api::views::PartitionView;
use crate::page::answer::PageResult;
use crate::page::api::ApiRefusal;
use crate::page::fields::FormFields;
use crate::page::labels::sentence;
use crate::page::layout::Screen;
use crate::page::layout::Tab;
use crate::page::layout::heading;
use crate::page::layout::scrolling_table;
use crate::page::plan::ActionPlan;
use crate::page::plan::PageAction;
use crate::page::preview::Preview;
use crate::page::visitor::Visit;
use crate::page::visitor::Visitor;
use crate::remote::RequestPath;

async fn look(visitor: &Visitor) -> Result<ClusterView, ApiRefusal> {
    visitor.api.get(&RequestPath::new("/v1/cluster")).await
}

/// The nodes and the partitions.
pub(crate) async fn screen(visitor: Visit, _: FormFields) -> PageResult {
    let view = look(&visitor).await?;
    let aside = html! { "as " (visible(&view.node, false)) " sees it" };
    let nodes = html! { th { "Node" } th { "Heard since" } th.number { "Partitions" } th { "State" } th { span.sr { "What can be done" } } };
    let partitions = html! {
        th.number { "Partition" } th { "Owner" } th.number { "Epoch" } th.number { "Position" } th.number { "Lag" }
        th { "Newest snapshot" } th { span.sr { "What can be done" } }
    };
    let content = html! {
        (heading(html! { "Cluster " (visible(&view.cluster, false)) }, aside))
        @if let Some(problem) = &view.problem { p { strong { (sentence(problem)) } } }
        h2 { (counted(view.nodes.len() as u64, "node")) }
        (scrolling_table("Nodes", &nodes, &html! { @for node in &view.nodes { (node_row(&visitor, node)) } }))
        h2 { (counted(view.partitions.len() as u64, "partition")) }
        (scrolling_table("Partitions", &partitions,
            &html! { @for partition in &view.partitions { (partition_row(&visitor, partition)) } }))
    };
    Ok(Screen::live(Tab::Cluster, "Cluster", content).into())
}

fn node_row(visitor: &Visitor, node: &NodeView) -> Markup {
    let act = if node.drains { PageAction::UndrainNode } else { PageAction::DrainNode };
    html! {
        tr id={ "node-" (node.node) } {
            th scope="row" { (visible(&node.node, false)) }
            td { @match node.heard_since { Some(since) => (visitor.present.show(since)), None => "not known" } }
            td.number { (node.owned) }
            td {
                @if let Some(problem) = &node.problem { strong { "Does not answer: " } (visible(problem, false)) }
                @else if node.drains { "Drains" } @else { "Alive" }
                @for stopped in &node.stopped {
                    br; strong { "Partition " (stopped.partition) " is stopped: " } (visible(&stopped.reason, false))
                }
            }
            td { div.buttons { (ActionPlan::new(act).with("node", &node.node).with("back", "cluster").button()) } }
        }
    }
}

fn partition_row(visitor: &Visitor, partition: &PartitionView) -> Markup {
    let lag = partition.lags.iter().map(|lag| lag.entries).max();
    let plan = |act| ActionPlan::new(act).with("partition", partition.partition).with("back", "cluster");
    html! {
        tr id={ "partition-" (partition.partition) } {
            th.number scope="row" { (partition.partition) }
            td {
                @match &partition.owner { Some(owner) => (visible(owner, false)), None => strong { "nobody" } }
                @if let Some(node) = &partition.moved_to { br; span.quiet { "moved to " (visible(node, false)) } }
            }
            td.number { (partition.epoch) }
            td.number { (partition.position) }
            td.number { @match lag { Some(lag) => (lag), None => "-" } }
            td { @match partition.snapshots.first() {
                Some(snapshot) => { (snapshot.position) " " span.quiet { (visitor.present.show(snapshot.taken_at)) } },
                None => "none" } }
            td { div.buttons {
                (plan(PageAction::MovePartition).button())
                @if partition.moved_to.is_some() { (plan(PageAction::UnmovePartition).button()) }
            } }
        }
    }
}

/// What is meant, in a few words.
pub(crate) fn target(plan: &ActionPlan) -> String {
    match plan.act {
        PageAction::DrainNode | PageAction::UndrainNode => format!("node {}", node(plan)),
        _ => format!("partition {}", plan.one("partition").unwrap_or_default()),
    }
}

fn node(plan: &ActionPlan) -> &str {
    plan.one("node").unwrap_or_default()
}

/// What an act would come to. The API has no trial of it: it is judged by what the cluster looks like.
pub(crate) async fn preview(visitor: &Visitor, plan: &ActionPlan) -> Result<Preview, ApiRefusal> {
    let (view, name) = (look(visitor).await?, node(plan));
    let found = view.nodes.iter().find(|node| node.node == name);
    let refuse =
        |why: &str| Ok(Preview { refused: vec![(target(plan), why.to_owned())], ..Preview::default() });
    if found.is_none() && plan.act != PageAction::UnmovePartition {
        return refuse(&format!("node {name} is not heard"));
    }
    match (plan.act, found) {
        (PageAction::DrainNode, Some(node)) => {
            if view.nodes.iter().all(|other| other.node == name || other.drains) {
                return refuse("there is no other node that could have its partitions");
            }
            let partitions = counted(node.owned as u64, "partition");
            Ok(Preview::of(format!(
                "it gives {partitions} to other nodes, one after the other, and takes none any more"
            )))
        }
        (PageAction::UndrainNode, _) => Ok(Preview::of("it takes partitions again")),
        (PageAction::MovePartition, Some(node)) if node.drains => {
            refuse(&format!("node {name} gives its partitions to others and takes none"))
        }
        (PageAction::MovePartition, _) => {
            Ok(Preview::of(format!("{name} has the partition as long as it is alive and does not drain")))
        }
        _ => Ok(Preview::of("the partition goes to the node that the hash gives it to")),
    }
}

/// Does it. Returns what was done, in a sentence.
pub(crate) async fn carry_out(visitor: &Visitor, plan: &ActionPlan) -> Result<&'static str, ApiRefusal> {
    let (api, word) = (&visitor.api, |verb| RequestPath::new("/v1/cluster").word(verb));
    let node = plan.one("node").map(str::to_owned);
    let partition = plan.number("partition").and_then(|number| u16::try_from(number).ok());
    let drain = DrainNodeRequest { node: node.clone(), undo: plan.act == PageAction::UndrainNode };
    let _: ClusterView = match plan.act {
        PageAction::DrainNode | PageAction::UndrainNode => api.post(&word("drain"), &drain).await?,
        _ => api.post(&word("move"), &MovePartitionRequest { partition, node }).await?,
    };
    Ok(match plan.act {
        PageAction::DrainNode => "it gives its partitions to others",
        PageAction::UndrainNode => "it takes partitions again",
        _ => "it goes where it is to be",
    })
}

/// Asks to which node a partition is to go.
pub(crate) async fn ask_for_node(visitor: &Visitor, plan: &ActionPlan) -> Result<Markup, ApiRefusal> {
    let view = look(visitor).await?;
    let number = plan.number("partition");
    let owner = view.partitions.iter().find(|partition| Some(u64::from(partition.partition)) == number);
    let owner = owner.and_then(|partition| partition.owner.as_ref());
    Ok(html! {
        div.review {
            h1 { "Move a partition" }
            p.target { (sentence(&target(plan))) }
            form.card method="get" action="review" {
                (plan.hidden([]))
                label for="node" { "To which node" }
                select #node name="node" required autofocus {
                    @for node in view.nodes.iter().filter(|node| Some(&node.node) != owner) {
                        option value=(node.node) { (visible(&node.node, false)) }
                    }
                }
                div.buttons {
                    button.primary type="submit" { "See what would be done" }
                    a.button href=(plan.back()) { "Leave it" }
                }
            }
        }
    })
}
