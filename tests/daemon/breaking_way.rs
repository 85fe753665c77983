//! A way to a server on which no connection lasts for long.

use std::io;
use std::io::Read;
use std::net::Shutdown;
use std::net::TcpListener;
use std::net::TcpStream;
use std::thread::Builder;

/// A port of this machine from which connections lead to another one, each until so many bytes of answers have come.
pub(crate) fn breaking_way(port: u16, bytes_max: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let way = listener.local_addr().expect("it is bound").port();
    let leading = Builder::new().spawn(move || {
        for client in listener.incoming().flatten() {
            // Where the server is gone, so is the connection.
            let _ = carry(client, port, bytes_max);
        }
    });
    leading.expect("a thread, which ends with the process");
    way
}

fn carry(mut client: TcpStream, port: u16, bytes_max: u64) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    let (mut asking, mut asked) = (client.try_clone()?, server.try_clone()?);
    Builder::new().spawn(move || {
        let _ = io::copy(&mut asking, &mut asked);
        let _ = asked.shutdown(Shutdown::Both);
    })?;
    Builder::new().spawn(move || {
        let _ = io::copy(&mut server.take(bytes_max), &mut client);
        let _ = client.shutdown(Shutdown::Both);
    })?;
    Ok(())
}
