// Sending, receiving and settling.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, pause, play, promise, queue, short } from "./stage.mjs";

const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });

async function open(options, ...bodies) {
  const name = await queue(options);
  const sender = client.createSender(name);
  if (bodies.length > 0) await sender.sendMessages(bodies.map((body) => ({ body })));
  return { name, sender, receiver: client.createReceiver(name) };
}

// This SDK renews locks by itself, unless it is told not to.
const unrenewed = { maxAutoLockRenewalDurationInMs: 0 };

const one = async (receiver, wait = 10_000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

promise("a_message_that_is_sent_is_received_as_it_was", async () => {
  const { sender, receiver } = await open({});
  await sender.sendMessages({
    body: { text: "hello" }, messageId: "m-1", subject: "greeting", correlationId: "c",
    applicationProperties: { number: 7, text: "x", yes: true },
  });
  const message = await one(receiver);
  assert.deepEqual(message.body, { text: "hello" });
  assert.equal(message.messageId, "m-1");
  assert.equal(message.subject, "greeting");
  assert.deepEqual(message.applicationProperties, { number: 7, text: "x", yes: true });
  assert.equal(message.deliveryCount, 0);
  await receiver.completeMessage(message);
  assert.equal(await one(receiver, 500), undefined);
});

promise("a_message_without_an_id_is_completed_too", async () => {
  const { receiver } = await open({}, "a");
  const message = await one(receiver);
  assert.ok(message.messageId);
  await receiver.completeMessage(message);
});

promise("a_batch_arrives_whole_and_in_order", async () => {
  const { sender, receiver } = await open({});
  const batch = await sender.createMessageBatch();
  for (let number = 0; number < 100; number++) assert.ok(batch.tryAddMessage({ body: number }));
  await sender.sendMessages(batch);
  const received = [];
  while (received.length < 100) {
    const messages = await receiver.receiveMessages(20, { maxWaitTimeInMs: 10_000 });
    assert.ok(messages.length > 0, `only ${received}`);
    received.push(...messages.map((message) => message.body));
    await Promise.all(messages.map((message) => receiver.completeMessage(message)));
  }
  assert.deepEqual(received, [...Array(100).keys()]);
});

promise("receive_and_delete_leaves_nothing_behind", async () => {
  const { name, receiver } = await open(short(), "a", "b");
  const taker = client.createReceiver(name, { receiveMode: "receiveAndDelete" });
  const taken = await taker.receiveMessages(2, { maxWaitTimeInMs: 10_000 });
  assert.deepEqual(taken.map((message) => message.body), ["a", "b"]);
  await pause(1_200);
  assert.equal(await one(receiver, 500), undefined);
});

promise("a_subscription_hands_out_every_message", async () => {
  const { receiver } = await open({}, "a", "b", "c");
  const received = [];
  await new Promise((resolve, reject) => {
    receiver.subscribe({
      processMessage: async (message) => {
        received.push(message.body);
        if (received.length === 3) resolve();
      },
      processError: async ({ error }) => reject(error),
    });
  });
  assert.deepEqual(received.sort(), ["a", "b", "c"]);
  await receiver.close();
});

promise("a_peek_takes_nothing", async () => {
  const { receiver } = await open({}, "a", "b");
  const peeked = await receiver.peekMessages(10);
  assert.deepEqual(peeked.map((message) => message.body), ["a", "b"]);
  assert.equal((await one(receiver)).body, "a");
});

promise("an_abandoned_message_comes_again_with_what_was_added", async () => {
  const { receiver } = await open({}, "a");
  await receiver.abandonMessage(await one(receiver), { step: 2, by: "me" });
  const again = await one(receiver);
  assert.equal(again.deliveryCount, 1);
  assert.equal(again.applicationProperties.step, 2);
  assert.equal(again.applicationProperties.by, "me");
  await receiver.completeMessage(again);
});

promise("a_dead_letter_is_in_the_dead_letter_queue_with_its_reason", async () => {
  const { name, receiver } = await open({}, "a");
  await receiver.deadLetterMessage(await one(receiver), {
    deadLetterReason: "bad", deadLetterErrorDescription: "it has no number", found: "here",
  });
  const letters = client.createReceiver(name, { subQueueType: "deadLetter" });
  const letter = await one(letters);
  assert.equal(letter.deadLetterReason, "bad");
  assert.equal(letter.deadLetterErrorDescription, "it has no number");
  assert.equal(letter.applicationProperties.found, "here");
  await letters.completeMessage(letter);
});

promise("a_deferred_message_is_received_by_number_and_in_no_other_way", async () => {
  const { receiver } = await open({}, "a");
  const message = await one(receiver);
  await receiver.deferMessage(message, { why: "later" });
  assert.equal(await one(receiver, 500), undefined);
  const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
  assert.equal(deferred.deliveryCount, 1);
  assert.equal(deferred.applicationProperties.why, "later");
  await receiver.completeMessage(deferred);
});

promise("a_scheduled_message_comes_when_it_is_due_and_a_cancelled_one_never", async () => {
  const { sender, receiver } = await open({});
  const due = new Date(Date.now() + 1_500);
  const numbers = await sender.scheduleMessages([{ body: "a" }, { body: "b" }], due);
  await sender.cancelScheduledMessages(numbers[1]);
  const message = await one(receiver);
  assert.equal(message.body, "a");
  assert.ok(Date.now() >= due.getTime());
  await receiver.completeMessage(message);
  assert.equal(await one(receiver, 500), undefined);
});

promise("a_renewed_lock_lasts_longer", async () => {
  const { receiver } = await open(short(), "a");
  const message = await one(receiver);
  for (let round = 0; round < 4; round++) {
    await pause(500);
    await receiver.renewMessageLock(message);
  }
  await receiver.completeMessage(message);
});

promise("a_lost_lock_cannot_complete", async () => {
  const { name } = await open(short(), "a");
  const receiver = client.createReceiver(name, unrenewed);
  const message = await one(receiver);
  const again = await one(receiver);
  assert.equal(again.deliveryCount, 1);
  await assert.rejects(receiver.completeMessage(message), { code: "MessageLockLost" });
  await receiver.completeMessage(again);
});

promise("a_lock_is_kept_when_its_link_is_closed", async () => {
  const { name, receiver } = await open({}, "a");
  const message = await one(receiver);
  await receiver.close();
  await client.createReceiver(name).completeMessage(message).catch(() => receiver.completeMessage(message));
  assert.equal(await one(client.createReceiver(name), 500), undefined);
});

await play();
