//! Signals to a daemon: stop, or read the definitions again.

use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

use crate::daemon::error::DaemonError;
use crate::shown::shown;

/// A signal to a daemon.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

shown!(Signals {});

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// [`DaemonError::Signals`].
    pub fn listen() -> Result<Signals, DaemonError> {
        let listen = |kind| signal(kind).map_err(DaemonError::Signals);
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits until the process is asked to stop, with SIGTERM or SIGINT.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
