// What the client promises, towards a real daemon.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, LockLost, NotFound, PlaceTaken, Refused, Unreachable } from "../dist/index.js";
import { DevDaemon } from "../dist/testing.js";

let daemon, client, made = 0;
before(async () => {
  daemon = await DevDaemon.start();
  client = daemon.client();
});
after(() => daemon.stop());

async function queue(options = {}) {
  const queue = client.queue(`q${made++}`);
  await queue.create(options);
  return queue;
}

async function one(queue, options = {}) {
  const deliveries = await queue.receive({ waitMs: 5_000, ...options });
  assert.equal(deliveries.length, 1);
  return deliveries[0];
}

test("messages come in the order of their positions, one at a time", async () => {
  const orders = await queue({ order: "position" });
  await orders.send("second", { workflow: "w", position: 2 });
  assert.deepEqual(await orders.receive(), []);
  await orders.send("first", { workflow: "w", position: 1 });
  for (const text of ["first", "second"]) {
    const delivery = await one(orders);
    assert.equal(delivery.text, text);
    assert.deepEqual(await orders.receive(), [], "one at a time");
    await delivery.complete();
  }
});

test("every kind of body and property survives", async () => {
  const orders = await queue();
  const properties = { text: "ü", number: 7, truth: true, bytes: new Uint8Array([255]) };
  for (const [body, read] of [
    [new Uint8Array([0, 255]), Buffer.from([0, 255])],
    ["häh", Buffer.from("häh")],
    [{ a: [1, null] }, Buffer.from('{"a":[1,null]}')],
  ]) {
    await orders.send(body, { workflow: "w", subject: "s", properties });
    const delivery = await one(orders);
    assert.deepEqual(Buffer.from(delivery.body), read);
    assert.deepEqual(delivery.properties, properties);
    assert.deepEqual([delivery.workflow, delivery.subject, delivery.deliveryCount], ["w", "s", 1]);
    await delivery.complete();
  }
});

test("a raw body of JSON has each byte that was sent", async () => {
  const [orders, text] = [await queue(), '{\n "a": 1.10, "a": 9007199254740993\n}'];
  for (const workflow of ["v", "w"]) await orders.send(text, { workflow, contentType: "application/json" });
  assert.notEqual((await one(orders)).text, text, "without the word it is a value");
  const delivery = await one(orders, { raw: true });
  assert.equal(delivery.text, text);
  await delivery.defer();
  const [deferred] = await orders.receiveDeferred([delivery.sequenceNumber], false, true);
  assert.equal(deferred.text, text);
});

test("a state of bytes is those bytes", async () => {
  const orders = await queue();
  // The second would be JSON if what is no UTF-8 in it were replaced.
  for (const state of [new Uint8Array([255, 0, 123]), new Uint8Array([34, 255, 34])]) {
    await orders.send("x", { workflow: "w" });
    await (await one(orders)).complete({ state });
    assert.deepEqual(await orders.workflow("w").state(), state);
  }
});

test("a batch is accepted whole or not at all", async () => {
  const orders = await queue({ order: "position" });
  const same = ["a", "b"].map((body) => ({ body, workflow: "w", position: 1 }));
  await assert.rejects(orders.sendBatch(same), Refused);
  assert.equal((await orders.view()).counts.stored, 0);
  await assert.rejects(orders.sendBatch([]), RangeError);
});

test("state and messages are one transaction with a completion", async () => {
  const [orders, other] = [await queue(), await queue()];
  await orders.sendBatch([{ workflow: "w" }, { workflow: "w" }]);
  const send = [{ queue: other.name, message: { body: "sent", workflow: "x" } }];
  const receipts = await (await one(orders)).complete({ state: { seen: 1 }, send });
  assert.equal(receipts[0].status, "accepted");
  const delivery = await one(orders, { state: true });
  assert.deepEqual(delivery.state, { seen: 1 });
  await delivery.complete({ state: null });
  assert.equal(await orders.workflow("w").state(), undefined);
  assert.equal((await one(other)).text, "sent");
});

test("a failed message keeps its place until it is a dead letter", async () => {
  const orders = await queue();
  await orders.sendBatch(["a", "b"].map((body) => ({ body, workflow: "w" })));
  await (await one(orders)).abandon({ afterMs: 0, reason: "busy" });
  const again = await one(orders);
  assert.deepEqual([again.text, again.deliveryCount], ["a", 2]);
  await again.deadLetter("bad", "very bad");
  assert.equal((await one(orders)).text, "b");
  const [dead] = (await orders.deadLetters()).dead_letters;
  assert.deepEqual([dead.reason, dead.description], ["bad", "very bad"]);
});

test("deferred, released and scheduled messages come back as was said", async () => {
  const orders = await queue();
  const { sequenceNumber } = await orders.send("later", { workflow: "w" });
  await (await one(orders)).defer();
  assert.deepEqual(await orders.receive(), []);
  const [deferred] = await orders.receiveDeferred([sequenceNumber]);
  await deferred.release();
  const at = new Date(Date.now() + 3_600_000);
  const scheduled = await orders.send("due", { workflow: "x", scheduleAt: at });
  await orders.reschedule(scheduled.sequenceNumber, new Date(Date.now() - 1_000));
  assert.equal((await one(orders)).text, "due");
  const never = await orders.send("never", { workflow: "y", scheduleAt: at });
  await orders.cancel(never.sequenceNumber);
  assert.equal((await orders.view()).counts.scheduled, 0);
});

test("a run is settled from its first message on", async () => {
  const orders = await queue();
  await orders.sendBatch([0, 1, 2].map((n) => ({ body: `${n}`, workflow: "w" })));
  const run = await orders.receiveRun({ waitMs: 5_000 });
  assert.deepEqual(run.messages.map(({ text }) => text), ["0", "1", "2"]);
  await run.settle(2);
  assert.equal((await one(orders)).text, "2");
});

test("a run is renewed, and keeps state, messages and a retry in one transaction", async () => {
  const [orders, other] = [await queue({ delivery: { lock: "90s" } }), await queue()];
  await orders.sendBatch([0, 1, 2].map((n) => ({ body: `${n}`, workflow: "w" })));
  const run = await orders.receiveRun({ waitMs: 5_000 });
  const lockedUntil = async () => new Date((await orders.workflow("w").view()).until).getTime();
  const before = await lockedUntil();
  await orders.create({ delivery: { lock: "1h" } });
  await run.renew();
  assert.ok((await lockedUntil()) > before + 60_000);
  assert.deepEqual([run.lockMs, run.lockedUntil.getTime() > before + 60_000], [3_600_000, true]);
  const send = [{ queue: other.name, message: { body: "sent", workflow: "x" } }];
  await run.settle(1, { verb: "abandon", afterMs: 0, reason: "busy" }, { state: { seen: 1 }, send });
  const again = await one(orders, { state: true });
  assert.deepEqual([again.text, again.deliveryCount, again.state], ["1", 2, { seen: 1 }]);
  assert.equal((await one(other)).text, "sent");
});

test("each message of a run has the state of its workflow", async () => {
  const orders = await queue();
  await orders.send("first", { workflow: "w" });
  await (await one(orders)).complete({ state: { seen: 1 } });
  await orders.sendBatch([0, 1, 2].map((n) => ({ body: `${n}`, workflow: "w" })));
  const run = await orders.receiveRun({ waitMs: 5_000, state: true });
  assert.deepEqual(run.messages.map(({ state }) => state), [{ seen: 1 }, { seen: 1 }, { seen: 1 }]);
});

test("an operator holds, skips and resumes", async () => {
  const orders = await queue();
  await orders.sendBatch(["a", "b"].map((body) => ({ body, workflow: "w" })));
  const workflow = orders.workflow("w");
  await workflow.operate("hold", { reason: "look first", dryRun: true });
  assert.equal((await orders.blocked()).length, 0);
  await workflow.operate("hold", { reason: "look first" });
  assert.deepEqual((await orders.blocked()).map((row) => row.workflow_id), ["w"]);
  const seen = await workflow.operate("skip", { dryRun: true });
  const skip = { reason: "unwanted", sequenceNumber: seen.sequence_number };
  await workflow.operate("skip", skip);
  await assert.rejects(workflow.operate("skip", skip), Refused);
  await workflow.operate("resume");
  assert.equal((await one(orders)).text, "b");
});

test("a hold is resumed by its cause", async () => {
  const orders = await queue();
  await orders.send("a", { workflow: "w" });
  const workflow = orders.workflow("w");
  await workflow.operate("hold", { reason: "look first" });
  await assert.rejects(workflow.operate("resume", { cause: "gap" }), Refused);
  await workflow.operate("resume", { cause: "operator", reason: "looked" });
  assert.equal((await one(orders)).text, "a");
});

test("all workflows that do not go on are listed", async () => {
  const orders = await queue();
  for (let number = 0; number < 101; number++) await orders.workflow(`${number}`).operate("hold");
  assert.equal((await orders.blocked()).length, 101);
  assert.equal((await client.blocked()).filter((row) => row.queue === orders.name).length, 101);
});

test("refusals are errors with a code", async () => {
  await assert.rejects(client.queue("absent").view(), (error) => error instanceof NotFound && error.code === "queue_not_found");
  const orders = await queue({ order: "position" });
  await orders.send("x", { workflow: "w", position: 1, id: "a" });
  await assert.rejects(orders.send("y", { workflow: "w", position: 1, id: "b" }), PlaceTaken);
});

test("a lost lock cannot complete", async () => {
  const orders = await queue({ delivery: { lock: "1s" } });
  await orders.send("x", { workflow: "w" });
  const first = await one(orders);
  const second = await one(orders, { waitMs: 20_000 });
  await assert.rejects(first.complete(), LockLost);
  await second.complete();
});

test("a delivery says how long its lock lasts", async () => {
  const orders = await queue({ delivery: { lock: "90s" } });
  await orders.send("x", { workflow: "w" });
  const delivery = await one(orders);
  assert.equal(delivery.lockMs, 90_000);
  await orders.create({ delivery: { lock: "2m" } });
  await delivery.renew({ timeoutMs: 20_000 });
  assert.equal(delivery.lockMs, 120_000);
});

test("nobody there is said with how to start it", async () => {
  const alone = new Client({ url: "http://127.0.0.1:1", retryForMs: 0 });
  await assert.rejects(alone.status(), (error) => error instanceof Unreachable && error.message.includes("`seriatim run` starts it"));
  assert.throws(() => new Client({ url: "localhost:7700" }), TypeError);
});
