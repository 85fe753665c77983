//! `seriatim demo git --cluster`: the main job, while nodes and servers are killed.

use std::process::Command;

use serde_json::Value;

use crate::cli::scratch::shuffled;
use crate::cluster::nats_program::nats_program;

#[test]
fn a_history_on_a_cluster_ends_as_gits_own_tree_while_nodes_and_servers_are_killed() {
    let Some(program) = nats_program() else { return };
    let scratch = shuffled(200);
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    command.args(["demo", "git", "--cluster", "--json", "--failures", "0.1", "--crashes", "1"]);
    let output = command.arg(scratch.path()).env("NATS_SERVER", program).output().expect("the binary runs");
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(said.lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{said}\n{complaint}"));
    assert_eq!(output.status.code(), Some(0), "{report}\n{complaint}");
    assert_eq!((report["changes"].as_u64(), report["crashes"].as_u64()), (Some(400), Some(1)), "{report}");
    assert_eq!(
        (report["wrong_predecessors"].as_u64(), report["tree_equal"].as_bool()),
        (Some(0), Some(true))
    );
    assert!(report["failures_injected"].as_u64() > Some(10), "{report}");
}
