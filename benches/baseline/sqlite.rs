//! The face of the queue on SQLite: requests go to the thread that writes, answers come back.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use seriatim::Clock;
use seriatim::SystemClock;
use tokio::sync::oneshot;

use crate::baseline::lanes::Held;
use crate::baseline::writer::Request;
use crate::baseline::writer::write;
use crate::bench::contender::Contender;
use crate::bench::error::BenchError;
use crate::bench::message::BenchMessage;
use crate::bench::message::MessageEnd;
use crate::bench::plan::Options;
use crate::bench::plan::Take;

/// An ordered queue on SQLite.
#[derive(Clone)]
pub(crate) struct Sqlite {
    requests: mpsc::Sender<Request>,
    failure: Arc<OnceLock<String>>,
}

impl Sqlite {
    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, BenchError> {
        let (reply, answer) = oneshot::channel();
        let posted = self.requests.send(request(reply));
        match (posted, answer.await) {
            (Ok(()), Ok(answer)) => Ok(answer),
            _ => {
                let failure = self.failure.get().map_or("it has ended", String::as_str).to_owned();
                Err(BenchError::system("reach the thread that writes")(failure))
            }
        }
    }
}

impl Contender for Sqlite {
    const NAME: &'static str = "sqlite";

    type Batch = Vec<Held>;

    async fn open(folder: &Path, options: Options) -> Result<Sqlite, BenchError> {
        let (requests, intake) = mpsc::channel();
        let failure = Arc::new(OnceLock::new());
        let (path, noted) = (folder.join("queue.sqlite"), failure.clone());
        let run = move || {
            if let Err(error) = write(&path, options, &intake) {
                let _ = noted.set(error.to_string());
            }
        };
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(run);
        thread.map_err(BenchError::system("start the thread that writes"))?;
        Ok(Sqlite { requests, failure })
    }

    async fn send(&self, messages: Vec<BenchMessage>) -> Result<(), BenchError> {
        self.ask(|reply| Request::Send { messages, reply }).await
    }

    async fn receive(&self, take: Take, wait: Duration) -> Result<Vec<Held>, BenchError> {
        let until = SystemClock::default().now() + wait;
        self.ask(|reply| Request::Receive { take, until, reply }).await
    }

    fn bodies(batch: &Vec<Held>) -> Vec<Bytes> {
        batch.iter().flat_map(|held| held.messages.iter().map(|message| message.body.clone())).collect()
    }

    async fn settle(&self, batch: Vec<Held>, verdicts: Vec<MessageEnd>) -> Result<(), BenchError> {
        let all_held = self.ask(|reply| Request::Settle { batch, verdicts, reply }).await?;
        if all_held { Ok(()) } else { Err(BenchError::system("settle")("a lock was lost")) }
    }

    async fn close(self) -> Result<(), BenchError> {
        self.ask(|reply| Request::Close { reply }).await
    }
}
