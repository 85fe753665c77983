// Nothing is lost, doubled or overtaken when the daemon and the worker are killed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client } from "../dist/index.js";

const INDEX = new URL("../dist/index.js", import.meta.url).href;
const [WORKFLOWS, MESSAGES, KILLS] = [8, 60, 8];
const SEED = Number(process.env.SERIATIM_SEED ?? Math.floor(Math.random() * 2 ** 31));

// Appends the position to the workflow's state and sends it on: both are in the transaction of the completion.
const APP = `import { App } from ${JSON.stringify(INDEX)};
await new App().handler("orders", async (message, context) => {
  context.state = [...(context.state ?? []), message.json()];
  context.send("copies", message.json(), { workflow: message.workflow });
  await new Promise((done) => setTimeout(done, 2));
}).run();`;

function dice(seed) {
  let state = seed || 1;
  return () => ((state = (Math.imul(state, 48271) >>> 0) % 2147483647) / 2147483647);
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  return port;
}

async function killed(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

test(`each message is handled once and in order (SERIATIM_SEED=${SEED})`, { timeout: 200_000 }, async () => {
  const chance = dice(SEED);
  const folder = await mkdtemp(join(tmpdir(), "seriatim-"));
  await mkdir(join(folder, "workflows"));
  await writeFile(join(folder, "handlers.mjs"), APP);
  const address = `127.0.0.1:${await freePort()}`;
  const options = { cwd: folder, stdio: "ignore", env: { ...process.env, SERIATIM_URL: `http://${address}` } };
  const start = {
    daemon: () => spawn(process.env.SERIATIM_PROGRAM, ["run", "workflows", "--data", "data", "--http", address], options),
    worker: () => spawn(process.execPath, ["handlers.mjs"], options),
  };
  const running = { daemon: start.daemon(), worker: start.worker() };
  try {
    const client = new Client({ url: `http://${address}`, retryForMs: 60_000 });
    const [orders, copies] = [client.queue("orders"), client.queue("copies")];
    await orders.create({ order: "position", delivery: { lock: "1s", count_max: 1000 } });
    await copies.create();
    const sends = [];
    for (let w = 0; w < WORKFLOWS; w++) for (let n = 1; n <= MESSAGES; n++) sends.push([`w${w}`, n]);
    for (let at = sends.length - 1; at > 0; at--) {
      const other = Math.floor(chance() * (at + 1));
      [sends[at], sends[other]] = [sends[other], sends[at]];
    }
    for (let kill = 0; kill < KILLS; kill++) {
      const part = sends.splice(0, Math.ceil(sends.length / (KILLS - kill)));
      for (const [workflow, position] of part) await orders.send(position, { workflow, position, id: `${workflow}-${position}` });
      const who = chance() < 0.5 ? "daemon" : "worker";
      await killed(running[who]);
      running[who] = start[who]();
    }
    const expected = Array.from({ length: MESSAGES }, (_, at) => at + 1);
    for (const ends = Date.now() + 120_000; (await orders.view()).counts.completed < WORKFLOWS * MESSAGES; ) {
      assert.ok(Date.now() < ends, "not all is handled in time");
      await new Promise((next) => setTimeout(next, 50));
    }
    for (let w = 0; w < WORKFLOWS; w++) assert.deepEqual(await orders.workflow(`w${w}`).state(), expected);
    const copied = new Map();
    for (let deliveries; (deliveries = await copies.receive({ max: 100 })).length > 0; await copies.complete(deliveries)) {
      for (const delivery of deliveries) copied.set(delivery.workflow, [...(copied.get(delivery.workflow) ?? []), delivery.json()]);
    }
    assert.equal(copied.size, WORKFLOWS);
    for (const numbers of copied.values()) assert.deepEqual(numbers, expected);
  } finally {
    await killed(running.worker);
    await killed(running.daemon);
    await rm(folder, { recursive: true });
  }
});
