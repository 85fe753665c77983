// Messages that are handed to a handler, of queues and of sessions, and dead letters.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, pause, play, promise, queue, short } from "./stage.mjs";

const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
// Of a queue, and of a session.
const KINDS = [undefined, "s"];
const LONG = { maxWaitTimeInMs: 10_000 };

const one = async (receiver, wait = 10_000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

async function until(happened) {
  for (let tries = 0; !(await happened()); tries++) {
    assert.ok(tries < 500, "it never happened");
    await pause(20);
  }
}

async function open(sessionId, bodies, options = {}, queueOptions = {}) {
  const name = await queue(queueOptions);
  const accept = (more) => (sessionId ? client.acceptSession(name, sessionId, more) : client.createReceiver(name, more));
  if (bodies.length > 0) await client.createSender(name).sendMessages(bodies.map((body) => ({ body, sessionId })));
  return { name, accept, receiver: await accept(options) };
}

/** Hands messages to a handler, and keeps what it was given and what went wrong. */
function subscribe(receiver, handle, options) {
  const seen = { messages: [], errors: [] };
  const processMessage = async (message) => {
    seen.messages.push(message);
    await handle?.(message);
  };
  const processError = async ({ error }) => void seen.errors.push(error);
  seen.subscription = receiver.subscribe({ processMessage, processError }, options);
  return seen;
}

// A receiver goes on from where it has looked last, so each look is by another.
async function isEmpty({ entityPath }) {
  const looking = client.createReceiver(entityPath);
  const seen = await looking.peekMessages(1);
  await looking.close();
  return seen.length === 0;
}

promise("what_a_handler_has_seen_is_completed_unless_that_is_switched_off", async () => {
  for (const kind of KINDS) {
    const { receiver } = await open(kind, ["a"]);
    const seen = subscribe(receiver);
    await until(async () => seen.messages.length === 1 && (await isEmpty(receiver)));
    await assert.rejects(receiver.abandonMessage(seen.messages[0]));
    assert.deepEqual(seen.errors, []);

    const other = await open(kind, ["b"]);
    const kept = subscribe(other.receiver, undefined, { autoCompleteMessages: false });
    await until(() => kept.messages.length === 1);
    assert.equal(await isEmpty(other.receiver), false);
    await other.receiver.completeMessage(kept.messages[0]);
    assert.equal(await isEmpty(other.receiver), true);
  }
});

promise("a_handler_settles_in_each_way", async () => {
  for (const kind of KINDS) {
    for (const autoCompleteMessages of [false, true]) {
      const { name, receiver } = await open(kind, ["complete", "defer", "dead"]);
      let number;
      const seen = subscribe(receiver, async (message) => {
        if (message.body === "complete") return receiver.completeMessage(message);
        if (message.body === "dead") return receiver.deadLetterMessage(message, { deadLetterReason: "bad" });
        await receiver.deferMessage(message);
        number = message.sequenceNumber;
      }, { autoCompleteMessages });
      await until(() => seen.messages.length === 3 && number);
      const [deferred] = await receiver.receiveDeferredMessages(number);
      assert.deepEqual([deferred.body, deferred.deliveryCount], ["defer", 1]);
      await receiver.completeMessage(deferred);
      const letters = client.createReceiver(name, { subQueueType: "deadLetter" });
      assert.equal((await one(letters)).body, "dead");
      assert.deepEqual(seen.errors, []);
    }
  }
});

promise("what_a_handler_abandons_comes_again_counted", async () => {
  for (const kind of KINDS) {
    const { accept, receiver } = await open(kind, ["a"]);
    const seen = subscribe(receiver, async (message) => {
      await receiver.abandonMessage(message);
      await receiver.close();
    }, { autoCompleteMessages: false });
    await until(() => seen.messages.length === 1 && receiver.isClosed);
    const again = await accept();
    const message = await one(again);
    assert.equal(message.deliveryCount, 1);
    await again.completeMessage(message);
  }
});

promise("a_handler_that_throws_is_told_and_its_message_comes_again", async () => {
  for (const kind of KINDS) {
    const { receiver } = await open(kind, ["a"]);
    const seen = subscribe(receiver, (message) => {
      if (message.deliveryCount === 0) throw new Error("no");
    });
    await until(async () => seen.messages.length === 2 && (await isEmpty(receiver)));
    assert.deepEqual([seen.errors[0].message, seen.messages[1].deliveryCount], ["no", 1]);
  }
});

promise("as_many_are_handled_at_once_as_is_said", async () => {
  for (const kind of KINDS) {
    for (const maxConcurrentCalls of [1, 2]) {
      const { receiver } = await open(kind, ["a", "b", "c", "d"]);
      let now = 0, most = 0;
      const seen = subscribe(receiver, async () => {
        most = Math.max(most, ++now);
        await pause(100);
        now--;
      }, { maxConcurrentCalls });
      await until(async () => seen.messages.length === 4 && (await isEmpty(receiver)));
      // In a queue with an order, messages without a session are of no workflow, and come at once.
      assert.equal(most, maxConcurrentCalls);
    }
  }
});

promise("nothing_comes_after_a_subscription_is_closed_or_its_receiver", async () => {
  for (const kind of KINDS) {
    const { name, accept, receiver } = await open(kind, ["a"]);
    const seen = subscribe(receiver, undefined, { autoCompleteMessages: false });
    await until(() => seen.messages.length === 1);
    await seen.subscription.close();
    await receiver.completeMessage(seen.messages[0]);
    await client.createSender(name).sendMessages({ body: "b", sessionId: kind });
    await pause(300);
    assert.equal(seen.messages.length, 1);
    await receiver.close();
    const last = await accept({ receiveMode: "receiveAndDelete" });
    const closed = subscribe(last);
    await last.close();
    const next = await accept();
    assert.equal((await next.receiveMessages(1, LONG)).length + closed.messages.length, 1);
  }
});

promise("what_a_handler_is_given_to_delete_is_gone", async () => {
  for (const kind of KINDS) {
    for (const autoCompleteMessages of [false, true]) {
      const { receiver } = await open(kind, ["a"], { receiveMode: "receiveAndDelete" });
      const seen = subscribe(receiver, undefined, { autoCompleteMessages });
      await until(async () => seen.messages.length === 1 && (await isEmpty(receiver)));
      assert.equal(seen.messages[0].lockToken, undefined);
      await assert.rejects(receiver.completeMessage(seen.messages[0]));
    }
  }
});

promise("locks_are_renewed_as_long_as_is_said_and_no_longer", async () => {
  const play = async ([kind, code], [renewed, waits, isLost]) => {
    const { receiver } = await open(kind, ["a"], { maxAutoLockRenewalDurationInMs: renewed }, short("2s"));
    const message = await one(receiver);
    await pause(waits);
    const completing = receiver.completeMessage(message);
    await (isLost ? assert.rejects(completing, { code }) : completing);
  };
  const kinds = [[undefined, "MessageLockLost"], ["s", "SessionLockLost"]];
  // Not at all, for less than the lock lasts, long enough, and not long enough.
  const lengths = [[0, 3_000, true], [1_000, 3_000, true], [10_000, 4_000, false], [3_000, 8_000, true]];
  await Promise.all(kinds.flatMap((kind) => lengths.map((length) => play(kind, length))));
});

promise("a_message_that_is_abandoned_ten_times_is_a_dead_letter", async () => {
  for (const kind of KINDS) {
    const { name, receiver } = await open(kind, ["a"]);
    for (let count = 0; count < 10; count++) {
      const message = await one(receiver);
      assert.equal(message.deliveryCount, count);
      await receiver.abandonMessage(message);
    }
    assert.equal(await isEmpty(receiver), true);
    const letters = client.createReceiver(name, { subQueueType: "deadLetter" });
    const letter = await one(letters);
    assert.equal(letter.deadLetterReason, "MaxDeliveryCountExceeded");
    await letters.completeMessage(letter);
  }
});

promise("a_dead_letter_is_abandoned_deferred_and_never_dead_lettered_again", async () => {
  const { name, receiver } = await open(undefined, ["a"], {}, short());
  await receiver.deadLetterMessage(await one(receiver));
  const letters = client.createReceiver(name, { subQueueType: "deadLetter", maxAutoLockRenewalDurationInMs: 0 });
  await assert.rejects(letters.deadLetterMessage(await one(letters)));
  await letters.abandonMessage(await one(letters));
  const third = await one(letters);
  await letters.deferMessage(third);
  const [deferred] = await letters.receiveDeferredMessages(third.sequenceNumber);
  assert.equal(deferred.body, "a");
  await letters.completeMessage(deferred);
  assert.equal(await isEmpty(letters), true);
});

await play();
