//! File systems made for one test, of a size and in a state that ordinary ones are not in.
//!
//! Making one needs rights that most machines do not give; the reason is handed back, so that the test can say so.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

/// Read-only after an error, and with contents in the journal. Without the latter, ext4 on Linux 6.18 lets an fdatasync
/// succeed and loses what it synced, when the error falls into a write to blocks that were not in use before: then no
/// engine can keep its word, and the test would judge the file system.
const EXT4_OPTIONS: &str = "errors=remount-ro,data=journal";

/// A mounted file system. Dropped, it is unmounted.
pub(crate) struct Disk {
    point: PathBuf,
    /// The loop device that holds it; a file system in memory has none.
    device: Option<String>,
}

impl Disk {
    /// A file system in memory of a size.
    ///
    /// # Errors
    /// Why this machine does not allow it.
    pub(crate) fn in_memory(point: &Path, kilobytes: u64) -> Result<Disk, String> {
        std::fs::create_dir_all(point).map_err(|error| error.to_string())?;
        let size = format!("size={kilobytes}k");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", text(point)])?;
        Ok(Disk { point: point.to_owned(), device: None })
    }

    /// A file system in a file, that becomes read-only when it fails.
    ///
    /// # Errors
    /// Why this machine does not allow it.
    pub(crate) fn in_file(point: &Path, image: &Path, megabytes: u64) -> Result<Disk, String> {
        std::fs::create_dir_all(point).map_err(|error| error.to_string())?;
        let file = std::fs::File::create(image).map_err(|error| error.to_string())?;
        file.set_len(megabytes << 20).map_err(|error| error.to_string())?;
        run("mkfs.ext4", &["-q", "-F", text(image)])?;
        let device = run("losetup", &["--find", "--show", text(image)])?;
        let disk = Disk { point: point.to_owned(), device: Some(device) };
        disk.mount()?;
        match disk.switch().exists() {
            true => Ok(disk),
            false => Err("the system has no switch that lets a file system fail".to_owned()),
        }
    }

    /// Gives it another size.
    pub(crate) fn resize(&self, kilobytes: u64) {
        let options = format!("remount,size={kilobytes}k");
        run("mount", &["-o", &options, text(&self.point)]).expect("who may mount may remount");
    }

    /// Lets it fail, as a disk with a bad block does: from now on it is read-only, whoever is writing.
    pub(crate) fn fail(&self) {
        std::fs::write(self.switch(), "1").expect("the switch takes a number");
    }

    /// Makes it read-only while nobody writes.
    pub(crate) fn make_read_only(&self) {
        run("mount", &["-o", "remount,ro", text(&self.point)]).expect("who may mount may remount");
    }

    /// Makes it writable after [`Disk::fail`] or [`Disk::make_read_only`]: mounts it anew.
    pub(crate) fn repair(&self) {
        run("umount", &[text(&self.point)]).expect("nobody uses it");
        self.mount().expect("it was mounted before");
    }

    fn mount(&self) -> Result<String, String> {
        let device = self.device.as_deref().unwrap_or_default();
        run("mount", &["-t", "ext4", "-o", EXT4_OPTIONS, device, text(&self.point)])
    }

    fn switch(&self) -> PathBuf {
        let device = self.device.as_deref().unwrap_or_default();
        let name = Path::new(device).file_name().unwrap_or_default();
        Path::new("/sys/fs/ext4").join(name).join("trigger_fs_error")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &[text(&self.point)]);
        if let Some(device) = &self.device {
            let _ = run("losetup", &["--detach", device]);
        }
    }
}

/// Runs a program and returns what it prints.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} fails: {}", complaint.lines().next().unwrap_or("it does not say why")))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
