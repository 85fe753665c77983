//! `seriatim cluster`: who owns what, and who is to.

use seriatim::api::views::ClusterView;
use seriatim::api::views::LagView;
use seriatim::api::views::NodeView;
use seriatim::api::views::PartitionView;

use crate::cli::arguments::operate::ClusterVerb;
use crate::cli::arguments::operate::ClusterVerbArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::failure::unless_cut_off;
use crate::cli::out::Stdout;
use crate::cli::table::TextTable;
use crate::cli::word::counted;

/// Shows the cluster, drains a node or moves a partition; false when too few servers answer, or some partition has no owner or is stopped somewhere.
pub(crate) async fn run(arguments: ClusterVerbArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    match arguments.what.unwrap_or(ClusterVerb::Status) {
        ClusterVerb::Status => {
            let view = remote.cluster().await.map_err(CliFailure::to("look at the cluster"))?;
            unless_cut_off(print(&view, &out))?;
            Ok(is_well(&view))
        }
        ClusterVerb::Drain { node, undo } => {
            let drained = remote.drain_node(&node, undo).await;
            let view = drained.map_err(CliFailure::to(format!("drain {node}")))?;
            out.json(&view)?;
            out.say(match undo {
                false => format!(
                    "{node} gives its partitions to others; `seriatim cluster status` shows how far it is"
                ),
                true => format!("{node} takes partitions again"),
            })?;
            Ok(true)
        }
        ClusterVerb::Move { partition, node } => {
            let moved = remote.move_partition(partition, node.as_deref()).await;
            let view = moved.map_err(CliFailure::to(format!("move partition {partition}")))?;
            out.json(&view)?;
            out.say(match node {
                Some(node) => format!("partition {partition} goes to {node} as long as that is alive"),
                None => format!("partition {partition} goes where the hash says"),
            })?;
            Ok(true)
        }
    }
}

fn print(view: &ClusterView, out: &Stdout) -> Result<(), CliFailure> {
    out.json(view)?;
    let mut nodes = TextTable::new(&["node", ">partitions", "", "problem"]);
    for NodeView { node, drains, owned, problem, stopped, .. } in &view.nodes {
        let stopped =
            stopped.iter().map(|stopped| format!("partition {}: {}", stopped.partition, stopped.reason));
        let problems: Vec<String> = problem.iter().cloned().chain(stopped).collect();
        let drains = if *drains { "drains" } else { "" };
        nodes.row([node.clone(), owned.to_string(), drains.to_owned(), problems.join("; ")]);
    }
    let mut partitions =
        TextTable::new(&[">partition", "owner", "moved to", ">epoch", ">position", ">lag", ">snapshot"]);
    for PartitionView { partition, owner, moved_to, epoch, position, lags, snapshots } in &view.partitions {
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let lag = lags.iter().map(|LagView { entries, .. }| *entries).max();
        partitions.row([
            partition.to_string(),
            owner.clone().unwrap_or_else(|| "nobody".to_owned()),
            shown(moved_to.clone()),
            epoch.to_string(),
            position.to_string(),
            shown(lag.map(|lag| lag.to_string())),
            shown(snapshots.first().map(|snapshot| snapshot.position.to_string())),
        ]);
    }
    let (nodes_count, partitions_count) = (view.nodes.len() as u64, view.partitions.len() as u64);
    out.say(format!(
        "cluster {}: {}, {}, as {} sees it",
        view.cluster,
        counted(nodes_count, "node"),
        counted(partitions_count, "partition"),
        view.node
    ))?;
    if let Some(problem) = &view.problem {
        out.say(format!("PROBLEM: {problem}"))?;
    }
    out.say(format!("\n{nodes}\n{partitions}"))?;
    Ok(())
}

/// Whether all that a cluster should have is there.
fn is_well(view: &ClusterView) -> bool {
    let are_well = view.nodes.iter().all(|node| node.problem.is_none() && node.stopped.is_empty());
    let are_owned = view.partitions.iter().all(|partition| partition.owner.is_some());
    view.problem.is_none() && are_well && are_owned
}
