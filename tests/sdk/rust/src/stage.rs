//! What every scenario stands on: a client, and how a promise is told.

use std::error::Error;
use std::time::Duration;

use azservicebus::ServiceBusClient;
use azservicebus::ServiceBusClientOptions;
use azservicebus::ServiceBusMessage;
use azservicebus::ServiceBusReceivedMessage;
use azservicebus::ServiceBusReceiver;
use azservicebus::ServiceBusReceiverOptions;
use azservicebus::ServiceBusRetryOptions;
use azservicebus::authorization::AzureNamedKeyCredential;
use azservicebus::core::BasicRetryPolicy;

/// How long a promise may take.
const PROMISE_MAX: Duration = Duration::from_secs(30);

/// How long a receiver waits for what should come.
pub(crate) const WAIT: Duration = Duration::from_secs(5);

/// How long a receiver waits for what should not come.
pub(crate) const SHORTLY: Duration = Duration::from_millis(400);

pub(crate) type Client = ServiceBusClient<BasicRetryPolicy>;
pub(crate) type Kept = Result<(), Box<dyn Error + Send + Sync>>;

/// A client of the daemon, over plain AMQP.
pub(crate) async fn client() -> Result<Client, Box<dyn Error + Send + Sync>> {
    let address = std::env::var("SERIATIM_AMQP")?;
    let key = AzureNamedKeyCredential::new("RootManageSharedAccessKey", "c2VjcmV0");
    let retry_options =
        ServiceBusRetryOptions { max_retries: 0, try_timeout: WAIT, ..ServiceBusRetryOptions::default() };
    let options = ServiceBusClientOptions { retry_options, ..ServiceBusClientOptions::default() };
    Ok(ServiceBusClient::unsecured().new_from_named_key_credential(address, key, options).await?)
}

/// Sends messages to a queue or a topic, as one batch.
pub(crate) async fn send(client: &mut Client, to: &str, messages: Vec<ServiceBusMessage>) -> Kept {
    let mut sender = client.create_sender(to, Default::default()).await?;
    sender.send_messages(messages).await?;
    Ok(sender.dispose().await?)
}

/// Messages with these bodies.
pub(crate) fn messages<const N: usize>(bodies: [&str; N]) -> Vec<ServiceBusMessage> {
    bodies.into_iter().map(ServiceBusMessage::new).collect()
}

/// A receiver of a queue.
pub(crate) async fn receiver(
    client: &mut Client,
    queue: &str,
) -> Result<ServiceBusReceiver, Box<dyn Error + Send + Sync>> {
    Ok(client.create_receiver_for_queue(queue, ServiceBusReceiverOptions::default()).await?)
}

/// The body of a message as text.
pub(crate) fn body(message: &ServiceBusReceivedMessage) -> String {
    String::from_utf8_lossy(message.body().unwrap_or_default()).into_owned()
}

/// Receives and completes until nothing comes for a while.
pub(crate) async fn drain(
    receiver: &mut ServiceBusReceiver,
) -> Result<Vec<ServiceBusReceivedMessage>, Box<dyn Error + Send + Sync>> {
    let mut received = Vec::new();
    loop {
        let some = receiver.receive_messages_with_max_wait_time(10, SHORTLY).await?;
        if some.is_empty() {
            return Ok(received);
        }
        for message in some {
            receiver.complete_message(&message).await?;
            received.push(message);
        }
    }
}

/// Tells whether a promise was kept.
pub(crate) async fn promise(name: &str, kept: impl Future<Output = Kept>) {
    let outcome = match tokio::time::timeout(PROMISE_MAX, kept).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:?}")),
        Err(_) => Some(format!("it is not done after {PROMISE_MAX:?}")),
    };
    let word = if outcome.is_none() { "kept" } else { "broken" };
    println!("{}", serde_json::json!({"promise": name, "outcome": word, "detail": outcome}));
}

/// Breaks a promise unless two things are the same.
#[macro_export]
macro_rules! same {
    ($left:expr, $right:expr) => {
        match (&$left, &$right) {
            (left, right) if left == right => {}
            (left, right) => return Err(format!("{}: {left:?} is not {right:?}", stringify!($left)).into()),
        }
    };
}
