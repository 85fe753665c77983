// Sessions: taken by name or the next one, their order, state and lock.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, pause, play, promise, queue, short } from "./stage.mjs";

const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
const wait = { maxWaitTimeInMs: 10_000 };

async function open(options, sessions) {
  const name = await queue(options);
  const sender = client.createSender(name);
  for (const [sessionId, bodies] of Object.entries(sessions)) {
    await sender.sendMessages(bodies.map((body) => ({ body, sessionId })));
  }
  return name;
}

promise("a_named_session_gives_its_messages_in_order_and_no_others", async () => {
  const name = await open({}, { one: [1, 2, 3], two: ["x"] });
  const session = await client.acceptSession(name, "one");
  const received = [];
  while (received.length < 3) {
    for (const message of await session.receiveMessages(10, wait)) {
      assert.equal(message.sessionId, "one");
      received.push(message.body);
      await session.completeMessage(message);
    }
  }
  assert.deepEqual(received, [1, 2, 3]);
  await session.close();
});

promise("the_next_session_is_one_that_nobody_holds", async () => {
  const name = await open({}, { one: [1], two: [2] });
  const first = await client.acceptNextSession(name);
  const second = await client.acceptNextSession(name);
  assert.deepEqual([first.sessionId, second.sessionId].sort(), ["one", "two"]);
  await first.close();
  await second.close();
});

promise("a_session_has_one_holder", async () => {
  const name = await open({}, { one: [1] });
  const session = await client.acceptSession(name, "one");
  await assert.rejects(client.acceptSession(name, "one"), { code: "SessionCannotBeLocked" });
  await session.close();
  const again = await client.acceptSession(name, "one");
  const [message] = await again.receiveMessages(1, wait);
  await again.completeMessage(message);
  await again.close();
});

promise("the_state_of_a_session_outlives_its_messages", async () => {
  const name = await open({}, { one: [1] });
  const session = await client.acceptSession(name, "one");
  await session.setSessionState("step 1");
  const [message] = await session.receiveMessages(1, wait);
  await session.completeMessage(message);
  await session.close();
  const again = await client.acceptSession(name, "one");
  assert.equal(String(await again.getSessionState()), "step 1");
  await again.close();
});

promise("a_renewed_session_is_kept", async () => {
  const name = await open(short("2s"), { one: [1] });
  const session = await client.acceptSession(name, "one");
  const [message] = await session.receiveMessages(1, wait);
  for (let round = 0; round < 3; round++) {
    await pause(1_000);
    const before = session.sessionLockedUntilUtc;
    assert.ok((await session.renewSessionLock()) > before);
  }
  await session.completeMessage(message);
  await session.close();
});

promise("a_session_whose_lock_ran_out_cannot_complete", async () => {
  const name = await open(short(), { one: [1] });
  // This SDK renews locks by itself, unless it is told not to.
  const session = await client.acceptSession(name, "one", { maxAutoLockRenewalDurationInMs: 0 });
  const [message] = await session.receiveMessages(1, wait);
  await pause(1_500);
  await assert.rejects(session.completeMessage(message), { code: "SessionLockLost" });
});

await play();
