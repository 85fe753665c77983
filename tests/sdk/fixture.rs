//! A daemon in a process of its own, on a temporary folder, that can be killed and started again where it was.

use std::path::Path;
use std::path::PathBuf;

use crate::fixture::daemon_process::ANYWHERE;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::daemon_process::daemon_command;

/// The texts of the keys that scenarios sign with, where keys are needed.
pub(crate) const SECRETS: [(&str, &str); 3] = [
    ("SERIATIM_SECRET", "c2VyaWF0aW0tc2NlbmFyaW9zLWtleS0wMTIzNDU2Nzg5YWI="),
    ("SERIATIM_SENDER_SECRET", "YW5vdGhlci1vZi10aGUtc2NlbmFyaW9zLTAxMjM0NTY3ODk="),
    ("SERIATIM_RECEIVER_SECRET", "dGhlLWxpc3RlbmVyLW9mLXRoZS1zY2VuYXJpb3MtMDEyMzQ="),
];

/// The certificate with which a daemon serves `localhost`; its key lies beside it.
pub(crate) fn certificate() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/testdata/certificate.pem")
}

/// A store, and the daemon that runs on it.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    process: Option<DaemonProcess>,
    /// Where it listens: HTTP, Service Bus, Storage Queue.
    pub(crate) addresses: Addresses,
    with: Vec<String>,
}

/// Where a daemon listens.
#[derive(Clone, Default)]
pub(crate) struct Addresses {
    pub(crate) http: String,
    pub(crate) amqp: String,
    pub(crate) storage_queue: String,
}

impl Fixture {
    /// Starts a daemon on a new store, with the definitions of a folder if one is given, and perhaps with keys and an
    /// emulator's file of queues.
    pub(crate) fn open(definitions: Option<&Path>, keys: Option<&str>, config: Option<&Path>) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = folder.path().join("workflows");
        std::fs::create_dir(&own).expect("a folder for definitions");
        for definition in
            definitions.into_iter().flat_map(|folder| std::fs::read_dir(folder).expect("it is there"))
        {
            let definition = definition.expect("the folder can be read").path();
            let to = own.join(definition.file_name().expect("a file"));
            std::fs::copy(definition, to).expect("a definition can be copied");
        }
        let mut with = keys.map(|keys| keys_in(&folder, keys)).unwrap_or_default();
        if let Some(config) = config {
            let file = folder.path().join("Config.json");
            std::fs::copy(config, &file).expect("the file can be copied");
            with.extend(["--config-json".to_owned(), file.display().to_string()]);
        }
        let mut fixture = Fixture { folder, process: None, addresses: Addresses::default(), with };
        fixture.start();
        fixture
    }

    /// Starts a daemon with a certificate, for `localhost`, an emulator's file of queues, and perhaps with keys.
    pub(crate) fn open_encrypted(config: &Path, keys: Option<&str>) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("workflows")).expect("a folder for definitions");
        let certificate = certificate();
        let key = certificate.with_file_name("key.pem");
        let with = [
            "--tls-certificate".as_ref(),
            &*certificate,
            "--tls-key".as_ref(),
            &key,
            "--config-json".as_ref(),
            config,
        ];
        let mut with: Vec<String> =
            with.iter().map(|argument: &&Path| argument.display().to_string()).collect();
        with.extend(keys.map(|keys| keys_in(&folder, keys)).unwrap_or_default());
        let mut fixture = Fixture { folder, process: None, addresses: Addresses::default(), with };
        fixture.start();
        fixture
    }

    /// Kills the daemon with SIGKILL, and starts another at the same addresses.
    pub(crate) fn kill_and_start(&mut self) {
        self.process = None;
        self.start();
    }

    /// A file in the temporary folder.
    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn start(&mut self) {
        let at = |address: &String| if address.is_empty() { ANYWHERE.to_owned() } else { address.clone() };
        let mut command = daemon_command(self.folder.path(), &at(&self.addresses.http));
        command.args(["--storage-queue", &at(&self.addresses.storage_queue)]);
        command.args(["--amqp", &at(&self.addresses.amqp)]).args(&self.with).envs(SECRETS);
        let process = DaemonProcess::start(&mut command);
        let address = |server: &str| process.address(server).expect("an address");
        self.addresses = Addresses {
            http: address("http"),
            amqp: address("amqp"),
            storage_queue: address("storage_queue"),
        };
        self.process = Some(process);
    }
}

/// Writes a file of keys, and says the arguments by which a daemon reads it.
fn keys_in(folder: &tempfile::TempDir, keys: &str) -> Vec<String> {
    let file = folder.path().join("keys.toml");
    std::fs::write(&file, keys).expect("the folder can be written");
    vec!["--keys".to_owned(), file.display().to_string()]
}
