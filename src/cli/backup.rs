//! `seriatim backup`: a consistent copy, written by the daemon while it runs.

use std::path::Path;
use std::path::PathBuf;

use http::Uri;

use crate::cli::arguments::keep::BackupArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::out::Out;

/// Has the daemon write a copy of its file.
pub(crate) async fn run(arguments: BackupArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let path = path(&arguments.file, remote.url())?;
    let written = remote.backup(&path).await.map_err(Failure::to(format!("write {}", path.display())))?;
    out.json(&written)?;
    out.say(format!("{} bytes in {}", written.bytes, path.display()))?;
    out.say(format!("check it with: seriatim verify {}", path.display()))?;
    Ok(true)
}

/// The path as the daemon understands it: it runs in a folder of its own, and perhaps on another machine.
fn path(file: &Path, url: &str) -> Result<PathBuf, Failure> {
    if file.is_absolute() {
        return Ok(file.to_owned());
    }
    match is_here(url) {
        true => Ok(std::path::absolute(file)?),
        false => Err(Failure::Argument(format!(
            "back up to {}: the daemon is on another machine, so say the whole path on that",
            file.display()
        ))),
    }
}

fn is_here(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_only_completed_for_a_daemon_on_this_machine() {
        let file = Path::new("copy.redb");
        for here in ["http://127.0.0.1:7700", "http://localhost", "http://[::1]:7700"] {
            assert!(path(file, here).is_ok_and(|path| path.is_absolute()), "{here}");
        }
        assert!(path(file, "https://queue.example.org").is_err());
        assert!(path(Path::new("/copy.redb"), "https://queue.example.org").is_ok());
    }
}
