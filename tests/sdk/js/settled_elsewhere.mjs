// Settling over the management: deferred messages, of queues and of sessions, and messages whose link is gone.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, pause, play, promise, queue } from "./stage.mjs";

const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
const ADDED = { step: 2, by: "me" };
const DEAD = { deadLetterReason: "bad", deadLetterErrorDescription: "it has no number" };
// Of a queue, and of a session.
const KINDS = [undefined, "s"];

const one = async (receiver, wait = 10_000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

/** A queue with a message, a receiver of it, and the message, received. */
async function received(sessionId) {
  const name = await queue();
  await client.createSender(name).sendMessages({ body: "a", messageId: "m", sessionId });
  const receiver = sessionId ? await client.acceptSession(name, sessionId) : client.createReceiver(name);
  return { name, receiver, message: await one(receiver) };
}

/** The same, deferred and received by its number. */
async function deferred(sessionId, added) {
  const { name, receiver, message } = await received(sessionId);
  await receiver.deferMessage(message, added);
  const fetch = async () => (await receiver.receiveDeferredMessages(message.sequenceNumber))[0];
  const found = await fetch();
  assert.deepEqual([found.body, found.messageId, found.state, found.deliveryCount], ["a", "m", "deferred", 1]);
  return { name, receiver, fetch, message: found };
}

/** Completes what was deferred again, which has failed so often, and leaves nothing. */
async function end({ receiver, fetch }, count, added) {
  const message = await fetch();
  assert.equal(message.deliveryCount, count);
  for (const [name, value] of Object.entries(added)) assert.equal(message.applicationProperties[name], value);
  await receiver.completeMessage(message);
  await assert.rejects(fetch(), { code: "MessageNotFound" });
}

async function deadLetter(name) {
  const letters = client.createReceiver(name, { subQueueType: "deadLetter" });
  const letter = await one(letters);
  await letters.completeMessage(letter);
  return letter;
}

promise("a_deferred_message_that_is_abandoned_stays_deferred_with_what_was_added", async () => {
  for (const kind of KINDS) {
    const stage = await deferred(kind);
    await stage.receiver.abandonMessage(stage.message, ADDED);
    await end(stage, 2, ADDED);
  }
});

promise("a_deferred_message_that_is_deferred_stays_deferred_with_what_was_added", async () => {
  for (const kind of KINDS) {
    const stage = await deferred(kind, { before: 1 });
    assert.equal(stage.message.applicationProperties.before, 1);
    await stage.receiver.deferMessage(stage.message, ADDED);
    await end(stage, 2, { ...ADDED, before: 1 });
  }
});

promise("a_deferred_message_is_dead_lettered_with_what_was_added", async () => {
  for (const kind of KINDS) {
    const { name, receiver, message } = await deferred(kind);
    await receiver.deadLetterMessage(message, { ...DEAD, ...ADDED });
    const letter = await deadLetter(name);
    assert.deepEqual([letter.body, letter.messageId, letter.deliveryCount], ["a", "m", 1]);
    assert.deepEqual([letter.deadLetterReason, letter.deadLetterErrorDescription], Object.values(DEAD));
    assert.equal(letter.applicationProperties.by, "me");
  }
});

promise("the_lock_of_a_deferred_message_is_renewed", async () => {
  const stage = await deferred();
  const before = stage.message.lockedUntilUtc;
  await pause(50);
  assert.ok((await stage.receiver.renewMessageLock(stage.message)) > before);
  await stage.receiver.deferMessage(stage.message);
  await end(stage, 2, {});
});

promise("a_message_whose_link_is_gone_is_settled_in_each_way", async () => {
  // The link only, behind the receiver's back: what it does next goes over the management.
  const cut = async ({ receiver, message }) => {
    await receiver["_context"].messageReceivers[message.delivery.link.name].close();
  };
  const stages = await Promise.all(Array.from({ length: 5 }, () => received()));
  await Promise.all(stages.map(cut));
  const [completed, abandoned, put, dead, renewed] = stages;
  await completed.receiver.completeMessage(completed.message);
  assert.deepEqual(await client.createReceiver(completed.name).peekMessages(1), []);

  await abandoned.receiver.abandonMessage(abandoned.message);
  const again = client.createReceiver(abandoned.name);
  const message = await one(again);
  assert.equal(message.deliveryCount, 1);
  await again.completeMessage(message);

  await put.receiver.deferMessage(put.message);
  const other = client.createReceiver(put.name);
  const [found] = await other.receiveDeferredMessages(put.message.sequenceNumber);
  await other.completeMessage(found);

  await dead.receiver.deadLetterMessage(dead.message, DEAD);
  assert.equal((await deadLetter(dead.name)).deadLetterReason, "bad");

  const before = renewed.message.lockedUntilUtc;
  assert.ok((await renewed.receiver.renewMessageLock(renewed.message)) > before);
  await renewed.receiver.completeMessage(renewed.message);
});

promise("settlements_of_messages_and_sessions_carry_what_was_added", async () => {
  for (const kind of KINDS) {
    const { receiver, message } = await received(kind);
    await receiver.abandonMessage(message, ADDED);
    const again = await one(receiver);
    assert.equal(again.applicationProperties.step, 2);
    await receiver.deadLetterMessage(again, { ...DEAD, late: true });
    const letter = await deadLetter(receiver.entityPath);
    assert.deepEqual([letter.applicationProperties.by, letter.applicationProperties.late], ["me", true]);
  }
});

promise("nothing_is_asked_of_no_numbers", async () => {
  const name = await queue();
  const [sender, receiver] = [client.createSender(name), client.createReceiver(name)];
  assert.deepEqual(await receiver.receiveDeferredMessages([]), []);
  assert.deepEqual(await sender.scheduleMessages([], new Date()), []);
  await sender.cancelScheduledMessages([]);
});

await play();
