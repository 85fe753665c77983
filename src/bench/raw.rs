//! The fastest that can be on disk at all: appending the same bytes in the same batches, one fdatasync each.

use std::fs::File;
use std::io::Seek;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;

use crate::bench::body::BODY_LEN;
use crate::bench::body::BodyStamp;
use crate::bench::error::BenchError;

/// A file whose blocks are there already, so that an append changes nothing but their content.
pub(crate) struct RawAppend {
    file: File,
    bytes: usize,
    at: usize,
    sync_delay: Duration,
}

impl RawAppend {
    /// Makes a file with room for so many bytes.
    pub(crate) fn preallocate(
        folder: &Path,
        bytes: usize,
        sync_delay: Duration,
    ) -> Result<RawAppend, BenchError> {
        let made = || {
            let mut file = File::create(folder.join("raw.bin"))?;
            let zeros = vec![0; bytes.clamp(1, 1 << 20)];
            let mut written = 0;
            while written < bytes {
                written += file.write(&zeros[..zeros.len().min(bytes - written)])?;
            }
            file.sync_all()?;
            file.rewind()?;
            Ok::<File, std::io::Error>(file)
        };
        let file = made().map_err(BenchError::system("preallocate the file of the raw append"))?;
        Ok(RawAppend { file, bytes, at: 0, sync_delay })
    }

    /// Appends a batch; when it returns, the batch is on disk. A full file begins anew.
    pub(crate) fn append(&mut self, batch: &[u8]) -> Result<(), BenchError> {
        self.write(batch).map_err(BenchError::system("append"))?;
        wait(self.sync_delay);
        Ok(())
    }

    fn write(&mut self, batch: &[u8]) -> std::io::Result<()> {
        if self.at + batch.len() > self.bytes {
            self.file.rewind()?;
            self.at = 0;
        }
        self.file.write_all(batch)?;
        self.at += batch.len();
        self.file.sync_data()
    }
}

/// Waits for a slower disk than there is.
#[expect(clippy::disallowed_methods, reason = "the delay is what was asked for, a few milliseconds at most")]
pub(crate) fn wait(sync_delay: Duration) {
    if !sync_delay.is_zero() {
        std::thread::sleep(sync_delay);
    }
}

/// Appends so many bodies, `batch_len` at a time, and says how long each append took.
pub(crate) fn append_all(
    folder: &Path,
    messages: u64,
    batch_len: usize,
    sync_delay: Duration,
) -> Result<Vec<Duration>, BenchError> {
    let messages = usize::try_from(messages).unwrap_or(usize::MAX);
    let mut raw = RawAppend::preallocate(folder, messages * BODY_LEN, sync_delay)?;
    let batch: Vec<u8> =
        (0..batch_len as u32).flat_map(|index| BodyStamp::new(0, index, Duration::ZERO).write()).collect();
    let clock = SystemClock::default();
    let mut ends = vec![clock.elapsed()];
    let mut left = messages;
    while left > 0 {
        let len = left.min(batch_len);
        raw.append(&batch[..len * BODY_LEN])?;
        ends.push(clock.elapsed());
        left -= len;
    }
    Ok(ends.windows(2).map(|pair| pair[1] - pair[0]).collect())
}
