//! The image of the container: unpacked, and run as its configuration and compose.yaml say, without a container program.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::packages::compose::Service;
use crate::packages::made;
use crate::packages::network;
use crate::packages::room::Room;
use crate::packages::room::Running;
use crate::packages::room::eventually;
use crate::packages::room::succeeded;

/// A queue whose messages go to a name that a server in the network knows.
const PARCELS: &str = r#"
order = "position"
key = "/parcel"
position = "/step"

[retry]
delays = ["1h"]
then = "hold"

[[handler]]
http = "http://hook.test:8080/parcels"
allow_private = true
secret_env = "HOOK_SECRET"
"#;

/// An image that was loaded, and its configuration.
struct Image {
    room: Room,
    config: Value,
    environment: Vec<(String, String)>,
}

impl Image {
    /// Makes the image, and unpacks it as `docker load` and `docker create` do.
    fn loaded() -> Option<Image> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let archive = made::image(folder.path());
        let (blobs, root) = (folder.path().join("blobs"), folder.path().join("root"));
        unpack(&archive, &folder.path().join("archive"));
        let archive = folder.path().join("archive");
        let manifest = &json(&archive.join("manifest.json"))[0];
        let config = json(&archive.join(manifest["Config"].as_str().expect("a path")))["config"].clone();
        unpack(&archive.join(manifest["Layers"][0].as_str().expect("a path")), &root);
        assert!(!blobs.exists(), "only the layer is in the root");
        fs::write(root.join("etc/seriatim/workflows/parcels.toml"), PARCELS).expect("the folder is there");
        Some(Image { room: Room::container(folder)?, environment: environment(&config), config })
    }

    /// What runs in the container: words of the configuration, as its user.
    fn command(&self, words: &[&str]) -> Command {
        let user = self.config["User"].as_str().expect("a user");
        let mut command = self.room.command(user, &self.environment);
        command.args(words);
        command
    }

    /// Starts it, and waits until it is healthy, as the image itself says.
    fn start(&self) -> Running {
        let words = [list(&self.config["Entrypoint"]), list(&self.config["Cmd"])].concat();
        let running = Running::start(&mut self.command(&words));
        eventually("it is healthy", || self.is_healthy().then_some(()));
        running
    }

    fn is_healthy(&self) -> bool {
        let test = list(&self.config["Healthcheck"]["Test"]);
        assert_eq!(test[0], "CMD", "there is no shell in it");
        self.command(&test[1..]).output().expect("nsenter is there").status.success()
    }

    fn seriatim(&self, words: &[&str]) -> String {
        let words = [&["seriatim"], words].concat();
        succeeded(&words.join(" "), self.command(&words).output().expect("nsenter is there"))
    }
}

fn unpack(archive: &Path, folder: &Path) {
    fs::create_dir_all(folder).expect("the folder can be made");
    let done = Command::new("tar").arg("-xpf").arg(archive).arg("-C").arg(folder).status();
    assert!(done.expect("tar is there").success());
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the image has it");
    serde_json::from_str(&text).expect("it is JSON")
}

fn list(value: &Value) -> Vec<&str> {
    let words = value.as_array().expect("a list");
    words.iter().map(|word| word.as_str().expect("a text")).collect()
}

fn environment(config: &Value) -> Vec<(String, String)> {
    let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    list(&config["Env"]).into_iter().map(|word| pair(word).expect("a name and a value")).collect()
}

#[test]
fn the_image_is_loaded_under_its_version_and_under_the_name_that_the_documents_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    unpack(&made::image(folder.path()), &folder.path().join("archive"));
    let version = concat!("seriatim:", env!("CARGO_PKG_VERSION"));
    let manifest = json(&folder.path().join("archive/manifest.json"));
    assert_eq!(manifest[0]["RepoTags"], serde_json::json!([version, "seriatim:latest"]));
    let index = json(&folder.path().join("archive/index.json"));
    let names: Vec<&Value> =
        index["manifests"].as_array().expect("a list").iter().map(|one| &one["annotations"]).collect();
    let name = |tag: &str| format!("docker.io/library/{tag}");
    assert_eq!(names[0]["io.containerd.image.name"], name(version));
    assert_eq!(names[1]["io.containerd.image.name"], name("seriatim:latest"));
    let layer = manifest[0]["Layers"][0].as_str().expect("a path");
    unpack(&folder.path().join("archive").join(layer), &folder.path().join("root"));
    assert!(folder.path().join("root/usr/share/doc/seriatim/THIRD-PARTY.txt").exists());
}

#[test]
fn the_container_runs_without_rights_on_a_read_only_root_and_goes_on_after_kill_9() {
    let Some(mut image) = Image::loaded() else { return };
    let log = image.room.folder().join("log");
    let _servers = network::serve(&image.room, &log);
    image.environment.push(("HOOK_SECRET".to_owned(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()));
    assert!(!image.is_healthy(), "nothing runs yet");
    let daemon = image.start();
    assert_eq!(daemon.status("Uid"), "65532\t65532\t65532\t65532");
    let groups = daemon.status("Groups");
    assert!(groups.split_whitespace().all(|group| group == "65532"), "no other group: {groups}");

    for step in [2, 1, 4] {
        image.seriatim(&["send", "parcels", &format!("{{\"parcel\": \"p-1\", \"step\": {step}}}")]);
    }
    image.seriatim(&["send", "parcels", "{\"parcel\": \"p-1\", \"step\": 3, \"state\": \"wet\"}"]);
    eventually("the third step fails", || image.seriatim(&["blocked"]).contains("retry (1x)").then_some(()));
    let handled = fs::read_to_string(&log).expect("the receiver writes");
    let steps: Vec<char> =
        handled.lines().filter_map(|line| line.split_once("step\": ")?.1.chars().next()).collect();
    assert_eq!(steps, ['1', '2', '3'], "in order, and the fourth waits: {handled}");
    assert!(handled.contains("hook.test:8080 "), "the name was looked up: {handled}");

    daemon.kill();
    assert!(!image.is_healthy());
    let _again = image.start();
    let blocked = image.seriatim(&["blocked"]);
    assert!(blocked.contains("parcels/p-1") && blocked.contains("retry (1x)"), "{blocked}");
}

#[test]
fn the_container_of_compose_serves_the_queues_of_the_emulators_file() {
    let Some(service) = Service::read() else { return };
    let Some(mut image) = Image::loaded() else { return };
    // compose.yaml mounts the file where its variable says.
    let file = image.room.folder().join("data/Config.json");
    fs::copy(service.config_on_host(), file).expect("the volume can be written");
    for (name, value) in service.environment() {
        let value =
            if name == "SERIATIM_CONFIG_JSON" { "/var/lib/seriatim/Config.json".to_owned() } else { value };
        image.environment.push((name, value));
    }
    image.environment.push(("HOOK_SECRET".to_owned(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()));
    let _daemon = image.start();
    let queues = image.seriatim(&["queues"]);
    assert!(queues.contains("orders") && queues.contains("mails"), "{queues}");
    // The eight bytes with which a peer of AMQP begins, to an address that is not the loopback's: other machines reach it.
    let greeting = r#"
import socket
peer = socket.create_connection(("127.0.0.2", 5672), timeout=30)
peer.sendall(b"AMQP\x03\x01\x00\x00")
print(peer.recv(8))
"#;
    let output = image.room.network("python3").args(["-c", greeting]).output().expect("python3 is there");
    assert!(succeeded("a greeting", output).contains("AMQP"));
}
