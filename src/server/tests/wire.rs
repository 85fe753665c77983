//! A connection that is spoken to byte by byte, as clients do that mean no good.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Longer than anything a test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A connection.
pub(crate) struct Wire {
    stream: TcpStream,
    incoming: Vec<u8>,
}

impl Wire {
    pub(crate) async fn open(address: SocketAddr) -> Wire {
        Wire { stream: TcpStream::connect(address).await.unwrap(), incoming: Vec::new() }
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until a text has come, and returns everything up to its end.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            let incoming = String::from_utf8_lossy(&self.incoming).into_owned();
            if let Some(at) = incoming.find(text) {
                self.incoming.drain(..at + text.len());
                return incoming[..at + text.len()].to_owned();
            }
            let read = tokio::time::timeout(LONG, self.stream.read(&mut buffer)).await;
            match read.expect("an answer comes").expect("the connection is there") {
                0 => panic!("it ended after {incoming:?}, before {text:?}"),
                read => self.incoming.extend_from_slice(&buffer[..read]),
            }
        }
    }

    /// Reads until the server ends the connection.
    pub(crate) async fn end(mut self) -> String {
        let rest = self.stream.read_to_end(&mut self.incoming);
        let _ = tokio::time::timeout(LONG, rest).await.expect("the server ends the connection");
        String::from_utf8_lossy(&self.incoming).into_owned()
    }
}
