//! Threads that a test schedules, and what passes between them.

use std::io;

pub(crate) use shuttle::sync::Mutex;
pub(crate) use shuttle::sync::MutexGuard;
pub(crate) use shuttle::sync::atomic::AtomicBool;
pub(crate) use shuttle::sync::atomic::AtomicU64;
pub(crate) use shuttle::sync::atomic::AtomicUsize;
pub(crate) use shuttle::thread::JoinHandle;

pub(crate) use super::disk::Committer;
pub(crate) use super::disk::Job;
pub(crate) use super::disk::Snapshot;
use crate::error::Fault;

/// Starts a thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    shuttle::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Does something. A panic is for the test to notice.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    Ok(work())
}

/// Channels. What still waits in one whose receiver goes is dropped with it, as by the real ones.
pub(crate) mod mpsc {
    use std::time::Duration;

    use shuttle::sync::mpsc;
    pub(crate) use shuttle::sync::mpsc::RecvError;
    pub(crate) use shuttle::sync::mpsc::RecvTimeoutError;
    pub(crate) use shuttle::sync::mpsc::Sender;
    pub(crate) use shuttle::sync::mpsc::SyncSender;
    pub(crate) use shuttle::sync::mpsc::TryRecvError;

    pub(crate) struct Receiver<T>(mpsc::Receiver<T>);

    pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = mpsc::channel();
        (sender, Receiver(receiver))
    }

    pub(crate) fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
        let (sender, receiver) = mpsc::sync_channel(bound);
        (sender, Receiver(receiver))
    }

    impl<T> Receiver<T> {
        pub(crate) fn recv(&self) -> Result<T, RecvError> {
            self.0.recv()
        }

        pub(crate) fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
            self.0.recv_timeout(timeout)
        }

        pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
            self.0.try_recv()
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            // A schedule that has failed is unwound, and takes no further steps.
            while !std::thread::panicking() && self.0.try_recv().is_ok() {}
        }
    }
}
