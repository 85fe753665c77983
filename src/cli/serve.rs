//! `seriatim run` and `seriatim dev`.

use std::io;
use std::io::IsTerminal;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;
use seriatim::Fault;
use seriatim::daemon::Daemon;
use seriatim::daemon::DaemonError;
use seriatim::daemon::DaemonOptions;
use seriatim::daemon::Signals;
use seriatim::definition::LoadError;
use tokio_util::sync::CancellationToken;

use crate::bench::folder::Folder;
use crate::cli::arguments::serve::DevArguments;
use crate::cli::arguments::serve::EndpointArguments;
use crate::cli::arguments::serve::RunArguments;
#[cfg(feature = "cluster")]
use crate::cli::dev_cluster;
use crate::cli::failure::CliFailure;
use crate::cli::insistence::asked_again;
use crate::cli::limits;
use crate::cli::logs;
use crate::cli::out::remark;
use crate::cli::out::write_unless_unread;
use crate::cli::word::counted;

/// The folder of definitions that `dev` uses when it is given none, if there is one.
const DEFINITIONS: &str = "workflows";

/// The definitions that `dev` shows when it is given none.
const DEMO: [(&str, &str); 7] = [
    ("nightly.py", include_str!("../../workflows/nightly.py")),
    ("nightly.toml", include_str!("../../workflows/nightly.toml")),
    ("orders.py", include_str!("../../workflows/orders.py")),
    ("orders.toml", include_str!("../../workflows/orders.toml")),
    ("shipments.py", include_str!("../../workflows/shipments.py")),
    ("shipments.toml", include_str!("../../workflows/shipments.toml")),
    ("tell.py", include_str!("../../workflows/tell.py")),
];

/// How a daemon has ended.
enum ServeEnd {
    /// As it was told to.
    InOrder,
    /// Before it was drained: it was told so a second time, or what it needs was gone.
    CutOff,
    /// A fault has stopped its engine.
    Fault(Fault),
}

/// Runs the daemon until it is told to stop; false when the definitions have mistakes.
pub(crate) fn run(arguments: &RunArguments) -> Result<bool, CliFailure> {
    let _logs = logs::start(arguments.log_json)?;
    let mut options = DaemonOptions::new(&arguments.data, &arguments.definitions);
    options.http = arguments.http;
    set_endpoints(&mut options, &arguments.endpoints);
    options.keys = arguments.keys.clone();
    options.page = arguments.page;
    options.environment = arguments.environment.clone();
    options.trace_url = arguments.trace_url.clone();
    options.tls = arguments.tls_certificate.clone().zip(arguments.tls_key.clone());
    options.drain = arguments.drain.0;
    if let Some(bytes) = arguments.head_room {
        options.head_room_bytes = bytes;
    }
    #[cfg(feature = "cluster")]
    {
        if let Some(what) = arguments.unheeded() {
            tracing::warn!("{what}");
        }
        options.cluster = arguments.cluster.options(&arguments.data).map_err(CliFailure::Argument)?;
    }
    serve(options, arguments.json, arguments.end_with_input)
}

/// Runs a daemon on a store that is gone afterwards.
pub(crate) fn dev(arguments: &DevArguments) -> Result<bool, CliFailure> {
    let _logs = logs::start(false)?;
    let folder = Folder::make_for("dev", None)?;
    let definitions = match &arguments.definitions {
        Some(definitions) => definitions.clone(),
        None if Path::new(DEFINITIONS).is_dir() => PathBuf::from(DEFINITIONS),
        None => demo(folder.path())?,
    };
    #[cfg(feature = "cluster")]
    if let Some(nodes) = arguments.nodes {
        return dev_cluster::run(arguments, nodes, folder.path(), &definitions);
    }
    let mut options = DaemonOptions::new(folder.path().join("data"), &definitions);
    // What is gone afterwards needs no room kept for it.
    options.head_room_bytes = 0;
    options.history = Some(limits::HISTORY_OF_DEV);
    options.http = arguments.http;
    options.page = Some(true);
    set_endpoints(&mut options, &arguments.endpoints);
    eprintln!("definitions: {}", definitions.display());
    serve(options, arguments.json, false)
}

fn set_endpoints(options: &mut DaemonOptions, endpoints: &EndpointArguments) {
    options.amqp = endpoints.amqp.clone();
    options.insecure_network = endpoints.insecure_network;
    options.config_json = endpoints.config_json.clone();
    options.storage_queue = endpoints.storage_queue;
}

fn demo(folder: &Path) -> io::Result<PathBuf> {
    let definitions = folder.join("workflows");
    std::fs::create_dir_all(&definitions)?;
    for (name, text) in DEMO {
        std::fs::write(definitions.join(name), text)?;
    }
    Ok(definitions)
}

fn serve(options: DaemonOptions, json: bool, ends_with_input: bool) -> Result<bool, CliFailure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let orphaned = CancellationToken::new();
    if ends_with_input {
        watch_input(orphaned.clone())?;
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let daemon = tokio::select! {
            started = Daemon::start(options) => started?,
            () = signals.stop() => return Ok(ServeEnd::InOrder),
            () = orphaned.cancelled() => return Ok(ServeEnd::InOrder),
        };
        announce(&daemon, scheme, json);
        let fault = tokio::select! {
            () = signals.stop() => None,
            fault = daemon.failed() => Some(fault),
            () = orphaned.cancelled() => None,
        };
        match fault.is_some() {
            true => show_fault(&mut signals).await,
            false => tracing::info!("draining; a second signal ends at once"),
        }
        let is_cut_off = tokio::select! {
            () = daemon.stop() => false,
            () = asked_again(async || signals.stop().await) => true,
            () = last_moment(&orphaned) => true,
        };
        Ok(match fault {
            Some(fault) => ServeEnd::Fault(fault),
            None if is_cut_off => ServeEnd::CutOff,
            None => ServeEnd::InOrder,
        })
    });
    // What a second signal cut off is not waited for.
    runtime.shutdown_background();
    match served {
        Ok(ServeEnd::InOrder) => Ok(true),
        Ok(ServeEnd::CutOff) => Err(CliFailure::CutOff),
        Ok(ServeEnd::Fault(fault)) => Err(CliFailure::Fault(fault)),
        Err(DaemonError::Definitions(LoadError::Mistakes(mistakes))) => {
            let colours = std::io::stderr().is_terminal();
            mistakes.iter().for_each(|mistake| eprintln!("{}\n", mistake.render(colours)));
            let count = counted(mistakes.len() as u64, "mistake");
            remark(format!("seriatim: cannot start: {count} in the definitions"));
            Ok(false)
        }
        Err(DaemonError::Definitions(LoadError::Folder { folder, error }))
            if error.kind() == io::ErrorKind::NotFound =>
        {
            Err(CliFailure::Other(no_folder(&folder).into()))
        }
        Err(error) => Err(error.into()),
    }
}

/// There are no definitions where they were looked for: what to do, for whoever just wants to see the daemon run.
fn no_folder(folder: &Path) -> String {
    format!(
        "cannot start: there is no folder of definitions {folder}: make it (`mkdir {folder}`; it may be empty), name another, \
         or try `seriatim dev`, which needs none",
        folder = folder.display()
    )
}

/// Says when nobody holds the standard input any more. The thread ends with the process.
fn watch_input(orphaned: CancellationToken) -> io::Result<()> {
    let watch = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        orphaned.cancel();
    };
    std::thread::Builder::new().name("seriatim-input".to_owned()).spawn(watch).map(drop)
}

/// What a daemon may take to end in order when whoever started it is gone, and perhaps what it needs with it.
async fn last_moment(orphaned: &CancellationToken) {
    orphaned.cancelled().await;
    let _ = tokio::time::timeout(limits::ORPHAN_STOP, std::future::pending::<()>()).await;
}

/// Goes on serving for a moment after a fault: who asks how the daemon is shall read of it, and not just find nobody.
async fn show_fault(signals: &mut Signals) {
    let _ = tokio::time::timeout(limits::FAULT_SHOWN, signals.stop()).await;
}

/// Says where the daemon is reached; HTTP and storage queues by this scheme.
fn announce(daemon: &Daemon, scheme: &str, json: bool) {
    let (address, definitions) = (daemon.address(), daemon.definitions());
    let amqp: Vec<String> =
        daemon.amqp_addresses().iter().map(|address| format!("amqp://{address}")).collect();
    let storage_queue = daemon.storage_queue_address().map(|address| format!("{scheme}://{address}"));
    match json {
        true => {
            let http = format!("{scheme}://{address}");
            let ready = json!({
                "http": http,
                "amqp": amqp.first(),
                "amqp_addresses": amqp,
                "storage_queue": storage_queue,
                "page": daemon.page(),
                "definitions": definitions,
            });
            write_unless_unread(&ready.to_string());
        }
        false => {
            let others: String =
                amqp.into_iter().chain(storage_queue).map(|other| format!(", {other}")).collect();
            let definitions = counted(definitions as u64, "definition");
            write_unless_unread(&format!(
                "seriatim is ready: {scheme}://{address}{others}, {definitions}; Ctrl-C stops it"
            ));
            if let Some(page) = daemon.page() {
                write_unless_unread(&format!("what is stuck, and what to do about it: {page}"));
            }
        }
    }
}
