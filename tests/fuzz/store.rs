//! A file of which bytes were changed: it is refused, or what it serves is what was sent, and nothing panics or aborts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use seriatim::Engine;
use seriatim::SequenceNumber;
use seriatim::store::Check;
use seriatim::view::MessageView;
use tokio::runtime::Runtime;

use super::rich::rich_file;

/// Changes of one file that are made; more would only be more of the same.
const CHANGES_MAX: usize = 64;

/// Bytes of one change: where, and what to flip there.
const CHANGE_BYTES: usize = 5;

/// A file as it was closed, and every message in it.
struct Whole {
    bytes: Vec<u8>,
    /// The bytes of pages in which anything is.
    written: Vec<usize>,
    messages: Messages,
}

type Messages = BTreeMap<(String, SequenceNumber), String>;

/// Changes a file as the bytes say: which of two files in the first byte, whether and where it is cut in the next
/// four, then places and what to flip there.
pub(crate) fn store(data: &[u8]) {
    let runtime = runtime();
    let Some((which, rest)) = data.split_first() else { return };
    let Some((cut, changes)) = rest.split_first_chunk::<4>() else { return };
    let whole = whole(&runtime, usize::from(which % 2));
    let mut bytes = whole.bytes.clone();
    for change in changes.chunks_exact(CHANGE_BYTES).take(CHANGES_MAX) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
        bytes[whole.written[place % whole.written.len()]] ^= change[4];
    }
    if let Some(cut) = (u32::from_le_bytes(*cut) as usize).checked_sub(1) {
        bytes.truncate(cut % bytes.len());
    }
    let folder = folder();
    let path = folder.path().join("a.redb");
    std::fs::write(&path, &bytes).expect("there is room");
    let is_sound = seriatim::store::verify(&path, |_| {}).is_ok_and(|found| found.is_sound());
    assert!(std::fs::read(&path).expect("it is there") == bytes, "verifying has changed the file");
    runtime.block_on(async {
        // Unchecked, it may show less than there is, for a page that leads elsewhere; but nothing that was not sent.
        for check in [Check::Never, Check::Always] {
            std::fs::write(&path, &bytes).expect("there is room");
            let served = messages(&path, check).await;
            if let Some(served) = &served {
                for (key, message) in served {
                    assert_eq!(Some(message), whole.messages.get(key), "{key:?} was not sent so");
                }
            }
            assert!(!is_sound || served.is_some(), "a sound file does not open");
        }
    });
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A folder for one file, in memory where that is possible: nothing here outlives the process.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a temporary folder")
}

/// One of two files: everything in the journal, or most of it in tables.
fn whole(runtime: &Runtime, which: usize) -> &'static Whole {
    static WHOLE: [OnceLock<Whole>; 2] = [const { OnceLock::new() }; 2];
    WHOLE[which].get_or_init(|| {
        let (folder, window_bytes) = (folder(), [64 * 1024 * 1024, 1][which]);
        let (path, dense) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
        runtime.block_on(async {
            rich_file(&path, window_bytes).await;
            let engine = Engine::open(&path).await.expect("a whole file");
            // A backup has few pages that nothing uses any more.
            engine.client().backup(&dense).await.expect("there is room");
            engine.close().await;
            let bytes = std::fs::read(&dense).expect("it is there");
            let messages = messages(&dense, Check::Always).await.expect("a whole file");
            assert!(messages.len() > 60, "it has messages");
            let pages =
                bytes.chunks(4_096).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0));
            let written = pages.flat_map(|(n, page)| n * 4_096..n * 4_096 + page.len()).collect();
            Whole { bytes, written, messages }
        })
    })
}

/// Every message of a file that opens and can be read.
async fn messages(path: &Path, check: Check) -> Option<Messages> {
    let engine = Engine::builder(path).check(check).open().await.ok()?;
    let mut all = Messages::new();
    for view in engine.client().queues(None, 10).await.ok()? {
        let queue = engine.client().queue(view.name.as_str()).ok()?;
        for message in queue.peek(SequenceNumber::new(0), 1_000).await.ok()? {
            all.insert((view.name.to_string(), message.sequence_number), unchanging(&message));
        }
    }
    engine.close().await;
    Some(all)
}

/// What never changes of a message.
fn unchanging(message: &MessageView) -> String {
    let MessageView { workflow_id, message_id, position, after, headers, body, .. } = message;
    format!("{workflow_id:?} {message_id:?} {position:?} {after:?} {headers:?} {body:?}")
}
