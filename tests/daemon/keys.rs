//! Keys that are taken away while the daemon runs, from who speaks another protocol than the API's.

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use jiff::Timestamp;
use sha2::Sha256;

use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;

/// Writes the keys file, with one key of this text.
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
fn write_keys(folder: &Path, text: &str) {
    std::fs::write(folder.join("shop.key"), text).unwrap();
    let entry = "[[key]]\nname = \"shop\"\nkey_file = \"shop.key\"\nrights = [\"manage\"]\n";
    std::fs::write(folder.join("keys.toml"), entry).unwrap();
}

/// The status with which a list of storage queues is answered, signed with a key.
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
fn list_signed(daemon: &Daemon, key: &str) -> u16 {
    let date = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let text = format!(
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-12-02\n/shop/shop\ncomp:list"
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(&BASE64.decode(key).unwrap()).unwrap();
    mac.update(text.as_bytes());
    let signature = BASE64.encode(mac.finalize().into_bytes());
    let address = daemon.storage_queue.as_ref().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "GET /shop?comp=list HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-ms-date: {date}\r\n\
         x-ms-version: 2021-12-02\r\nauthorization: SharedKey shop:{signature}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The code with which a client is answered over AMQP that says the text of a key: 0 lets it in.
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
fn open_amqp(daemon: &Daemon, key: &str) -> u8 {
    let mut stream = TcpStream::connect(daemon.amqp.as_ref().unwrap()).unwrap();
    let response = [b"\0shop\0", key.as_bytes()].concat();
    let fields =
        [b"\xa3\x05PLAIN\xa0".as_slice(), &[u8::try_from(response.len()).unwrap()], &response].concat();
    let list =
        [b"\0\x53\x41\xc0".as_slice(), &[u8::try_from(fields.len() + 1).unwrap(), 2], &fields].concat();
    let size = u32::try_from(list.len() + 8).unwrap().to_be_bytes();
    stream.write_all(&[b"AMQP\x03\x01\0\0".as_slice(), &size, b"\x02\x01\0\0", &list].concat()).unwrap();
    let mut header = [0; 8];
    stream.read_exact(&mut header).unwrap();
    loop {
        stream.read_exact(&mut header).unwrap();
        let size = u32::from_be_bytes(header[..4].try_into().unwrap());
        let mut body = vec![0; usize::try_from(size).unwrap() - 8];
        stream.read_exact(&mut body).unwrap();
        // The outcome is a list whose first field is the code.
        if body[..3] == *b"\0\x53\x44" {
            let at = body.iter().position(|byte| *byte == 0x50).unwrap();
            return body[at + 1];
        }
    }
}

#[test]
fn a_key_that_was_taken_out_signs_nothing_and_opens_no_connection_after_a_reload() {
    let fixture = Fixture::new();
    let (shop, till) = (BASE64.encode([b'k'; 48]), BASE64.encode([b't'; 48]));
    write_keys(fixture.path(), &shop);
    let keys = fixture.path().join("keys.toml");
    let anywhere = "127.0.0.1:0";
    let arguments = ["--keys", keys.to_str().unwrap(), "--amqp", anywhere, "--storage-queue", anywhere];
    let daemon = fixture.start_with(&arguments);
    let seen = |key: &str| (list_signed(&daemon, key), open_amqp(&daemon, key));
    assert_eq!((seen(&shop), seen(&till)), ((200, 0), (403, 1)));
    write_keys(fixture.path(), &till);
    let authorization = format!("Bearer {shop}");
    let (status, said) =
        daemon.ask("POST", "/v1/definitions/reload", &[("authorization", &authorization)], b"");
    assert_eq!(status, 200, "{said}");
    assert_eq!((seen(&shop), seen(&till)), ((403, 1), (200, 0)));
    assert_eq!(daemon.stop(), Some(0));
}
