//! The socket on which the endpoint listens: its segments are small, for clients with a small receive buffer.

use std::io;
use std::net::SocketAddr;

use socket2::Domain;
use socket2::Protocol;
use socket2::Socket;
use socket2::Type;
use tokio::net::TcpListener;

use crate::limits;

/// Listens at an address, and says at which; port 0 takes any that is free.
pub(crate) fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A daemon that is started again takes its address again, although connections of the one before linger.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    // Connections have it from the listener: on one that is open it is too late. Without it, clients are only slower.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Err(error) = socket.set_tcp_mss(limits::AMQP_SEGMENT_BYTES) {
        tracing::warn!(%error, "failed to set the size of segments on {address} for AMQP");
    }
    socket.bind(&address.into())?;
    socket.listen(limits::AMQP_BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.into())?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    use super::*;

    /// What .NET sets once it has connected.
    const SMALL_BUFFER_BYTES: usize = 8 * 1_024;

    #[tokio::test]
    async fn a_client_with_a_small_receive_buffer_is_sent_900_kb_in_small_segments() {
        let (listener, address) = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let sending = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&[7; 900_000]).await.unwrap();
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let socket = Socket::from(stream.into_std().unwrap());
        socket.set_recv_buffer_size(SMALL_BUFFER_BYTES).unwrap();
        assert!(
            socket.tcp_mss().unwrap() <= limits::AMQP_SEGMENT_BYTES,
            "a segment is not half of the buffer"
        );
        let mut stream = TcpStream::from_std(socket.into()).unwrap();
        let mut received = Vec::new();
        // It takes 10 ms; with the segments that the loopback has by itself, more than 10 seconds.
        let reading = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut received));
        reading.await.expect("the window is never shut for long").unwrap();
        assert_eq!(received.len(), 900_000);
        sending.await.unwrap();
    }
}
