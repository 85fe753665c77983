// Each way to receive from queues, sessions and subscriptions, and bodies of each kind, sent again and scheduled.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, pause, play, promise, queue } from "./stage.mjs";

const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
const TOPIC = "topic.1";
const SUBSCRIPTION = "subscription.3";
const MODES = ["peekLock", "receiveAndDelete"];

const one = async (receiver, wait = 10_000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

/** A queue, a session and a subscription, each with who sends to it and who receives from it in a mode. */
async function places(mode) {
  const options = { receiveMode: mode };
  const plain = await queue();
  const ordered = await queue();
  return [
    { sender: client.createSender(plain), receiver: client.createReceiver(plain, options) },
    { sender: client.createSender(ordered), receiver: await client.acceptSession(ordered, "s", options), sessionId: "s" },
    { sender: client.createSender(TOPIC), receiver: client.createReceiver(TOPIC, SUBSCRIPTION, options) },
  ];
}

promise("an_iterator_gives_each_message_of_a_queue_a_session_and_a_subscription", async () => {
  for (const mode of MODES) {
    for (const { sender, receiver, sessionId } of await places(mode)) {
      await sender.sendMessages(["a", "b"].map((body) => ({ body, sessionId })));
      const bodies = [];
      for await (const message of receiver.getMessageIterator()) {
        bodies.push(message.body);
        if (mode === "peekLock") await receiver.completeMessage(message);
        if (bodies.length === 2) break;
      }
      assert.deepEqual(bodies, ["a", "b"]);
      await receiver.close();
    }
  }
});

promise("a_handler_gets_each_message_of_a_queue_a_session_and_a_subscription", async () => {
  for (const mode of MODES) {
    for (const { sender, receiver, sessionId } of await places(mode)) {
      await sender.sendMessages(["a", "b"].map((body) => ({ body, sessionId })));
      const bodies = [], errors = [];
      receiver.subscribe({
        processMessage: async (message) => {
          if (mode === "peekLock") await receiver.completeMessage(message);
          bodies.push(message.body);
        },
        processError: async ({ error }) => void errors.push(error),
      });
      for (let tries = 0; bodies.length < 2 && tries < 500; tries++) await pause(20);
      assert.deepEqual([bodies, errors], [["a", "b"], []]);
      await receiver.close();
    }
  }
});

promise("a_handler_of_a_session_gets_no_message_of_another", async () => {
  const name = await queue();
  await client.createSender(name).sendMessages({ body: "a", sessionId: "full" });
  const empty = await client.acceptSession(name, "empty");
  const bodies = [];
  const handle = (receiver) => receiver.subscribe({
    processMessage: async (message) => void bodies.push(message.body),
    processError: async ({ error }) => void bodies.push(error),
  });
  handle(empty);
  await pause(300);
  assert.deepEqual(bodies, []);
  await empty.close();
  const next = await client.acceptNextSession(name);
  handle(next);
  for (let tries = 0; bodies.length < 1 && tries < 500; tries++) await pause(20);
  assert.deepEqual([next.sessionId, bodies], ["full", ["a"]]);
});

promise("a_deferred_message_of_a_queue_a_session_and_a_subscription_is_received_and_deleted", async () => {
  const [plain, ordered] = [await queue(), await queue()];
  for (const [entity, sender, accept] of [
    [plain, client.createSender(plain), (options) => client.createReceiver(plain, options)],
    [ordered, client.createSender(ordered), (options) => client.acceptSession(ordered, "s", options)],
    [TOPIC, client.createSender(TOPIC), (options) => client.createReceiver(TOPIC, SUBSCRIPTION, options)],
  ]) {
    await sender.sendMessages({ body: "a", sessionId: entity === ordered ? "s" : undefined });
    const holder = await accept();
    const message = await one(holder);
    await holder.deferMessage(message);
    await holder.close();
    const receiver = await accept({ receiveMode: "receiveAndDelete" });
    const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
    assert.deepEqual([deferred.body, deferred.deliveryCount], ["a", 1]);
    await assert.rejects(receiver.receiveDeferredMessages(message.sequenceNumber), { code: "MessageNotFound" });
    await receiver.close();
  }
});

promise("a_body_of_each_kind_is_sent_again_and_scheduled_as_it_was", async () => {
  const name = await queue();
  const [sender, receiver] = [client.createSender(name), client.createReceiver(name, { receiveMode: "receiveAndDelete" })];
  const values = [[1, 2, 3], 1, 1.5, "hello", { hello: "world" }];
  const kinds = [
    ...values.map((body) => ["value", body]), ["sequence", [[1], [2], [3]]], ["sequence", [1, 2, 3]],
    ...values.map((body) => ["data", body]), ["data", Buffer.from("hello")],
  ];
  for (const [bodyType, body] of kinds) {
    await sender.sendMessages({ body, bodyType });
    const first = await one(receiver);
    await sender.sendMessages(first);
    await sender.scheduleMessages({ body, bodyType }, new Date());
    for (const message of [first, await one(receiver), await one(receiver)]) {
      assert.equal(message._rawAmqpMessage.bodyType, bodyType);
      assert.deepEqual(message.body, body);
    }
  }
});

await play();
