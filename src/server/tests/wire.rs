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
        let (mut buffer, mut searched) = ([0; 4096], 0);
        loop {
            // Megabytes may come before it: only what is new is looked at.
            let mut places = self.incoming[searched..].windows(text.len());
            if let Some(at) = places.position(|place| place == text.as_bytes()) {
                let found = self.incoming.drain(..searched + at + text.len()).collect::<Vec<_>>();
                return String::from_utf8_lossy(&found).into_owned();
            }
            searched = (self.incoming.len() + 1).saturating_sub(text.len());
            let read = tokio::time::timeout(LONG, self.stream.read(&mut buffer)).await;
            match read.expect("an answer comes").expect("the connection is there") {
                0 => panic!("it ended after {:?}, before {text:?}", String::from_utf8_lossy(&self.incoming)),
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
