//! From arguments to a client of the daemon.

use std::env;
use std::fs::File;
use std::future::Future;
use std::io;
use std::io::Read;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;

use seriatim::remote::Remote;
use seriatim::remote::RemoteOptions;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::arguments::serve::listen_address;
use crate::cli::failure::CliFailure;

/// Where HTTP is served by a daemon that is told no other port.
const PORT: u16 = 7700;

/// The longest key file that is read; a key is far shorter.
const KEY_BYTES_MAX: u64 = 4096;

/// A client of the daemon that is meant.
pub(crate) fn connect(arguments: &DaemonArguments) -> Result<Remote, CliFailure> {
    let key = key(arguments.key_file.as_deref())?;
    // A variable that is set to nothing is not set, as everywhere. An option that names nothing is wrong: who writes it meant somebody.
    let is_of_variable = |name| env::var_os(name).is_some_and(|value| value.is_empty());
    let ca_file = arguments.ca_file.clone();
    let ca_file = ca_file.filter(|file| !file.as_os_str().is_empty() || !is_of_variable("SERIATIM_CA_FILE"));
    let url = arguments.url.clone().filter(|url| !url.is_empty() || !is_of_variable("SERIATIM_URL"));
    let url = url.unwrap_or_else(|| {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        url_of(set("SERIATIM_HTTP").as_deref(), set("SERIATIM_TLS_CERTIFICATE").is_some())
    });
    Ok(Remote::connect_with(&url, key.as_deref(), &RemoteOptions { ca_file })?)
}

/// Where a daemon with these settings is found from its own machine: a container has them in its environment.
fn url_of(http: Option<&str>, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    // A port that the system chooses is not known here.
    let given = http.and_then(|http| listen_address(http).ok()).filter(|address| address.port() != 0);
    let mut address = given.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    format!("{scheme}://{address}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_looked_for_where_one_with_the_same_settings_listens() {
        assert_eq!(url_of(None, false), "http://127.0.0.1:7700");
        for (http, url) in [
            ("127.0.0.1:7800", "http://127.0.0.1:7800"),
            ("localhost:7800", "http://127.0.0.1:7800"),
            ("0.0.0.0:7800", "http://127.0.0.1:7800"),
            ("[::]:7800", "http://[::1]:7800"),
            ("10.1.2.3:7800", "http://10.1.2.3:7800"),
            ("127.0.0.1:0", "http://127.0.0.1:7700"),
            ("a name", "http://127.0.0.1:7700"),
        ] {
            assert_eq!(url_of(Some(http), false), url, "{http}");
        }
        assert_eq!(url_of(Some("0.0.0.0:7443"), true), "https://127.0.0.1:7443");
    }
}
