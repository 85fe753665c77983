//! From arguments to a client of the daemon.

use std::env;
use std::fs::File;
use std::future::Future;
use std::io;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use seriatim::remote::Remote;
use seriatim::remote::RemoteOptions;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::failure::CliFailure;

/// The longest key file that is read; a key is far shorter.
const KEY_BYTES_MAX: u64 = 4096;

/// A client of the daemon that is meant.
pub(crate) fn connect(arguments: &DaemonArguments) -> Result<Remote, CliFailure> {
    let key = key(arguments.key_file.as_deref())?;
    let options = RemoteOptions { ca_file: arguments.ca_file.clone() };
    Ok(Remote::connect_with(&arguments.url, key.as_deref(), &options)?)
}

/// The key: it never stands among the arguments, where every process of the machine could read it.
fn key(file: Option<&Path>) -> Result<Option<String>, CliFailure> {
    if let Some(file) = file {
        return read_key(file).map(Some);
    }
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(key) = set("SERIATIM_KEY") {
        let key = key
            .into_string()
            .map_err(|_| CliFailure::Argument("read SERIATIM_KEY: it is not text".to_owned()))?;
        return Ok(Some(key.trim().to_owned()));
    }
    set("SERIATIM_KEY_FILE").map(|file| read_key(&PathBuf::from(file))).transpose()
}

fn read_key(path: &Path) -> Result<String, CliFailure> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(KEY_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| CliFailure::Argument(format!("read the key file {}: {error}", path.display())))?;
    match text.trim() {
        "" => Err(CliFailure::Argument(format!("read the key file {}: it is empty", path.display()))),
        key => Ok(key.to_owned()),
    }
}

/// Runs what waits for answers.
pub(crate) fn run<F, T>(work: F) -> Result<T, CliFailure>
where
    F: Future<Output = Result<T, CliFailure>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| io::Error::new(error.kind(), format!("start a runtime: {error}")))?;
    let done = runtime.block_on(work);
    // A thread that reads stdin cannot be stopped, and must not be waited for.
    runtime.shutdown_background();
    done
}
