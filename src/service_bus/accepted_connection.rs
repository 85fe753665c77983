//! A connection from when it is accepted to its end, whatever it speaks meanwhile.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::amqp::Connection;
use crate::amqp::ConnectionOptions;
use crate::limits;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::meters::OpenConnection;
use crate::service_bus::piped_stream::Pipe;
use crate::service_bus::piped_stream::PipedStream;
use crate::service_bus::prompt::Prompt;
use crate::service_bus::prompt::Silence;
use crate::service_bus::rights::PLAIN;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::stream::ConnectionStream;

/// A connection that was accepted; it counts as open as long as there is a clone of this.
#[derive(Clone)]
pub(crate) struct AcceptedConnection {
    pub(crate) peer: IpAddr,
    /// Whether it is encrypted.
    pub(crate) is_tls: bool,
    counted: Arc<OpenCount>,
}

struct OpenCount {
    /// Set when it is to end at once.
    cut: CancellationToken,
    silence: Silence,
    _place: OwnedSemaphorePermit,
    _open: OpenConnection,
    /// The endpoint waits for it when it stops.
    _awaited: TaskTrackerToken,
}

impl AcceptedConnection {
    pub(crate) fn new(
        peer: IpAddr,
        place: OwnedSemaphorePermit,
        open: OpenConnection,
        awaited: TaskTrackerToken,
        cut: CancellationToken,
    ) -> AcceptedConnection {
        let counted = Arc::new(OpenCount {
            cut,
            silence: Silence::default(),
            _place: place,
            _open: open,
            _awaited: awaited,
        });
        AcceptedConnection { peer: peer.to_canonical(), is_tls: false, counted }
    }

    pub(crate) fn is_from_here(&self) -> bool {
        self.peer.is_loopback()
    }

    /// Its socket, for what stands upon it.
    pub(crate) fn over(&self, stream: TcpStream) -> Prompt {
        Prompt::new(stream, self.counted.silence.clone())
    }

    /// What stands upon its socket, as what it speaks AMQP over.
    pub(crate) fn piped(&self, pipe: impl Pipe + 'static) -> ConnectionStream {
        ConnectionStream::Piped(PipedStream::new(pipe, self.counted.silence.clone()))
    }

    /// Does something as long as the connection is not cut.
    pub(crate) async fn unless_cut(&self, doing: impl Future<Output = ()>) {
        self.counted.cut.run_until_cancelled(doing).await;
    }

    /// Speaks AMQP.
    pub(crate) async fn speak(self, shared: Arc<EndpointState>, stream: ConnectionStream) {
        let mut options = ConnectionOptions {
            message_bytes_max: limits::SERVICE_BUS_MESSAGE_BYTES_MAX,
            ..ConnectionOptions::default()
        };
        let is_readable_by_others = !self.is_tls && !self.is_from_here();
        let has_keys = shared.keys.load().is_some();
        options.mechanisms.retain(|mechanism| is_offered(mechanism, has_keys, is_readable_by_others));
        let now_ms = elapsed_ms(&*shared.clock);
        let changes = shared.keys.changes();
        let mut connection_task = ConnectionTask::new(Connection::new(options, now_ms), shared);
        connection_task.watch_keys(changes);
        self.unless_cut(connection_task.over(stream)).await;
    }
}

/// Whether a client may say who it is in this way. Where there are keys, PLAIN says the text of one to everybody on the way.
fn is_offered(mechanism: &str, has_keys: bool, is_readable_by_others: bool) -> bool {
    mechanism != PLAIN || !has_keys || !is_readable_by_others
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::sync::Semaphore;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::service_bus::meters::Meters;

    /// A connection from an address.
    pub(crate) fn accepted(peer: &str) -> AcceptedConnection {
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let awaited = TaskTracker::new().token();
        let cut = CancellationToken::new();
        AcceptedConnection::new(peer.parse().unwrap(), place, Meters::default().open(), awaited, cut)
    }

    #[test]
    fn a_peer_is_here_by_each_name_of_this_machine_and_no_other() {
        for here in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(accepted(here).is_from_here(), "{here}");
        }
        for elsewhere in ["10.0.0.1", "169.254.0.1", "0.0.0.0", "2001:db8::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!accepted(elsewhere).is_from_here(), "{elsewhere}");
        }
    }

    #[test]
    fn plain_is_not_offered_where_it_would_tell_a_key_to_others() {
        let offered = |has_keys: bool, is_readable_by_others: bool| {
            let mut mechanisms = ConnectionOptions::default().mechanisms;
            mechanisms.retain(|mechanism| is_offered(mechanism, has_keys, is_readable_by_others));
            assert!(mechanisms.contains(&"ANONYMOUS"), "who shows a token says nothing before");
            mechanisms.contains(&PLAIN)
        };
        assert!(!offered(true, true));
        assert!(offered(true, false) && offered(false, true) && offered(false, false));
    }
}
