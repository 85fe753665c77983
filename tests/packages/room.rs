//! A room of its own: mounts and a network that nobody else sees, and a root folder in which commands run.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use crate::fixture::skip::skip;

/// Mounts that make a Debian out of this one: what is written stays in the room, `/usr/local`, `/opt` and all homes are
/// not there, and neither is a running systemd.
const DEBIAN: &str = r#"
mkdir -p "$root"/dev "$root"/proc "$root"/root "$root"/run "$root"/tmp
chmod 1777 "$root"/tmp
for name in bin sbin lib lib64; do ln -s usr/$name "$root/$name"; done
for name in usr etc var; do
    mkdir -p "$room/upper/$name" "$room/work/$name" "$root/$name"
    mount -t overlay overlay -o "lowerdir=/$name,upperdir=$room/upper/$name,workdir=$room/work/$name" "$root/$name"
done
mount -t tmpfs tmpfs "$root/usr/local"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
"#;

/// Mounts as a container with a read-only root and one volume has them, names looked up at a server of the room.
const CONTAINER: &str = r#"
mkdir -p "$room/data" "$root"/dev "$root"/proc
chown 65532:65532 "$room/data"
echo "nameserver 127.0.0.1" >"$root/etc/resolv.conf"
mount --bind "$root" "$root"
mount --bind "$room/data" "$root/var/lib/seriatim"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
"#;

/// A room, which is gone with all that was written in it when it is dropped.
pub(crate) struct Room {
    /// Keeps the namespaces while it lives.
    keeper: Child,
    folder: tempfile::TempDir,
}

/// A process in a room, killed when it is dropped.
pub(crate) struct Running(Child);

impl Room {
    /// A Debian in which nothing has been done yet; `None`, and a line that says so, where none can be had.
    pub(crate) fn debian() -> Option<Room> {
        let tool = Command::new("dpkg-deb").arg("--version").output();
        if tool.is_err() {
            skip("Debian package", "there is no dpkg-deb here");
            return None;
        }
        Room::with(DEBIAN, tempfile::tempdir().expect("a temporary folder"))
    }

    /// A container whose image is in the folder `root` of this folder.
    pub(crate) fn container(folder: tempfile::TempDir) -> Option<Room> {
        Room::with(CONTAINER, folder)
    }

    fn with(mounts: &str, folder: tempfile::TempDir) -> Option<Room> {
        let script = format!(
            "set -e; room=$1 root=$1/root; mkdir -p \"$root\"; {mounts}\nip link set lo up; echo ready; exec cat"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "sh", "-c", &script, "sh"]).arg(folder.path());
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut keeper = match spawned {
            Ok(keeper) => keeper,
            Err(error) => {
                skip("packages", &format!("unshare cannot be started: {error}"));
                return None;
            }
        };
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        if line.trim() != "ready" {
            let said = keeper.wait_with_output().expect("it has ended").stderr;
            let said = String::from_utf8_lossy(&said);
            skip("packages", &format!("nobody here may make a namespace with its mounts: {}", said.trim()));
            return None;
        }
        Some(Room { keeper, folder })
    }

    /// The root folder, as it is seen from outside the room, where nothing is mounted.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command in the room's network and in the file system of everybody.
    pub(crate) fn network(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.keeper.id())).arg(program);
        command
    }

    /// A command in the room, as a user, in a clean environment.
    pub(crate) fn command(&self, user: &str, environment: &[(String, String)]) -> Command {
        let mut command = Command::new("nsenter");
        for (option, kind) in [("net", "net"), ("mount", "mnt")] {
            command.arg(format!("--{option}=/proc/{}/ns/{kind}", self.keeper.id()));
        }
        command.args(["env", "-i"]);
        command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(["/usr/sbin/chroot", &format!("--userspec={user}"), "--groups="]);
        command.arg(self.folder.path().join("root"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a shell script as root, which has to succeed; what it printed.
    pub(crate) fn shell(&self, script: &str) -> String {
        let output = self.debian_command("root:root").args(["sh", "-ec", script]).output();
        succeeded(script, output.expect("nsenter is there"))
    }

    /// A command in a Debian.
    pub(crate) fn debian_command(&self, user: &str) -> Command {
        let path = ("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        self.command(user, &[path, ("HOME".to_owned(), "/root".to_owned())])
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.keeper.kill().and_then(|()| self.keeper.wait());
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("nsenter is there"))
    }

    /// A line of `/proc/../status` of the process, which is the program itself: whoever led to it has become it.
    pub(crate) fn status(&self, name: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let found = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        found.unwrap_or_else(|| panic!("there is no {name} in {status}")).to_owned()
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a command printed; it has to have succeeded.
pub(crate) fn succeeded(what: &str, output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{what}\nended with {}:\n{printed}\n{said}", output.status);
    printed.into_owned()
}

/// Asks until the answer is what is wanted, about ten times a second, for a minute at most.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(answer) = ask() {
            return answer;
        }
        let _ = Command::new("sleep").arg("0.1").status();
    }
    panic!("this never came: {what}");
}
