//! The supervisor of a replay on a cluster: starts NATS servers and nodes, kills both on the way, and starts them again.

use std::sync::mpsc;
use std::time::Duration;

use seriatim::cluster::LocalNats;

use crate::demo::replay::error::ReplayError;
use crate::demo::replay::plan::NATS_FOLDER;
use crate::demo::replay::plan::NodePlan;
use crate::demo::replay::progress::ReplayOutcome;
use crate::demo::replay::progress::ReplayProgress;
use crate::demo::replay::story::Story;
use crate::demo::replay::supervision::EngineProcess;
use crate::demo::replay::supervision::Supervision;

/// NATS servers: as many as can lose one.
const SERVERS: usize = 3;

/// Nodes: each handles, and the first sends.
const NODES: usize = 3;

/// How long no node has to say anything before the replay is given up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What a node says, with its number and how often it was started before; `None` when it has ended.
type HeardProgress = (usize, u32, Result<Option<ReplayProgress>, ReplayError>);

/// Servers and nodes of a replay.
struct ClusterSupervision<'s, 'p> {
    supervision: &'s mut Supervision<'p>,
    nats: LocalNats,
    /// Each node with how often it was started before.
    nodes: Vec<(u32, EngineProcess)>,
    sender: mpsc::Sender<HeardProgress>,
}

/// Replays on a cluster.
pub(crate) fn run(
    supervision: &mut Supervision<'_>,
    story: &mut Story,
) -> Result<ReplayOutcome, ReplayError> {
    let program = LocalNats::program().map_err(ReplayError::cluster)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ReplayError::system("start the runtime"))?;
    let folder = supervision.data.join(NATS_FOLDER);
    let nats =
        runtime.block_on(LocalNats::start(&program, &folder, SERVERS)).map_err(ReplayError::cluster)?;
    story.say(&format!("{SERVERS} NATS servers and {NODES} nodes, each a process; node 1 sends, all handle"));
    let (sender, heard) = mpsc::channel();
    let mut cluster = ClusterSupervision { supervision, nats, nodes: Vec::new(), sender };
    for number in 0..NODES {
        let process = cluster.start(number, 0)?;
        cluster.nodes.push((0, process));
    }
    cluster.follow(&heard, story)
}

impl ClusterSupervision<'_, '_> {
    fn start(&self, number: usize, restarts: u32) -> Result<EngineProcess, ReplayError> {
        let node = NodePlan {
            name: format!("node-{}", number + 1),
            nats: self.nats.as_argument(),
            feeds: number == 0,
        };
        let mut process = self.supervision.start(Some(&node))?;
        let (mut lines, sender) = (process.lines(), self.sender.clone());
        let tell = move || {
            loop {
                let said = lines.next();
                let is_last = !matches!(said, Ok(Some(_)));
                if sender.send((number, restarts, said)).is_err() || is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("node-{}-output", number + 1)).spawn(tell);
        thread.map_err(ReplayError::system("listen to a node"))?;
        Ok(process)
    }

    /// Follows all nodes until one says that everything is done.
    fn follow(
        &mut self,
        heard: &mpsc::Receiver<HeardProgress>,
        story: &mut Story,
    ) -> Result<ReplayOutcome, ReplayError> {
        loop {
            let Ok((number, restarts, said)) = heard.recv_timeout(TIMEOUT) else {
                return Err(ReplayError::Silent(TIMEOUT.as_secs()));
            };
            if self.nodes[number].0 != restarts {
                continue;
            }
            match said? {
                None => return Err(ReplayError::EngineEnded(self.nodes[number].1.end()?)),
                Some(ReplayProgress::Done(outcome)) => return Ok(outcome),
                Some(ReplayProgress::Going { applied, deferred }) => {
                    self.supervision.note(applied, deferred, story);
                    if self.supervision.is_crash_due(applied) {
                        self.crash(applied, story)?;
                    }
                }
            }
        }
    }

    /// Kills a node and a server, each time others, and starts both again.
    fn crash(&mut self, applied: u64, story: &mut Story) -> Result<(), ReplayError> {
        let crash = self.supervision.crashes;
        self.supervision.crashes += 1;
        let (node, server) = (crash as usize % NODES, crash as usize % SERVERS);
        let (restarts, process) = &mut self.nodes[node];
        process.kill()?;
        let restarts = *restarts + 1;
        self.nats.kill(server).map_err(ReplayError::system("kill a NATS server"))?;
        let what = format!("node {} and NATS server {}", node + 1, server + 1);
        story.say(&format!("kill -9 number {} after {applied} changes: {what}", crash + 1));
        self.nats.start_again(server).map_err(ReplayError::system("start a NATS server again"))?;
        self.nodes[node] = (restarts, self.start(node, restarts)?);
        Ok(())
    }
}
