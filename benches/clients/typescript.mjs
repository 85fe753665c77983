// How quick the TypeScript client is beside Azure's own SDK, with the same work on the same daemon.
//
//   npm --prefix clients/typescript ci && npm --prefix clients/typescript run build
//   npm install --prefix target/clients --install-links ./clients/typescript @azure/service-bus@7.9.5
//   SERIATIM_PROGRAM=target/release/seriatim node benches/clients/typescript.mjs [MESSAGES]
//
// Messages of 200 bytes are sent in batches of 100, and then received, up to 100 at once, and completed. The contenders take
// turns; what counts is the median of the ratios of five rounds.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../target/clients/package.json", import.meta.url));
const { ServiceBusClient } = require("@azure/service-bus");
const { Client } = await import(require.resolve("seriatim"));

const [BODY, BATCH, ROUNDS] = ["x".repeat(200), 100, 5];
const COUNT = Number(process.argv[2] ?? 5_000);

const ours = {
  async send(client, name) {
    const queue = client.queue(name);
    for (let at = 0; at < COUNT; at += BATCH) {
      await queue.sendBatch(Array.from({ length: BATCH }, (_, n) => ({ body: BODY, id: `${at + n}` })));
    }
  },
  async receive(client, name) {
    const queue = client.queue(name);
    for (let done = 0; done < COUNT; ) {
      const deliveries = await queue.receive({ max: BATCH, waitMs: 5_000 });
      await queue.complete(deliveries);
      done += deliveries.length;
    }
  },
};

const azures = {
  async send(client, name) {
    const sender = client.createSender(name);
    for (let at = 0; at < COUNT; at += BATCH) {
      await sender.sendMessages(Array.from({ length: BATCH }, (_, n) => ({ body: BODY, messageId: `${at + n}` })));
    }
    await sender.close();
  },
  async receive(client, name) {
    const receiver = client.createReceiver(name);
    for (let done = 0; done < COUNT; ) {
      const messages = await receiver.receiveMessages(BATCH, { maxWaitTimeInMs: 5_000 });
      await Promise.all(messages.map((message) => receiver.completeMessage(message)));
      done += messages.length;
    }
    await receiver.close();
  },
};

async function timed(work, client, name) {
  const started = performance.now();
  await work(client, name);
  return performance.now() - started;
}

const median = (numbers) => numbers.sort((left, right) => left - right)[Math.floor(numbers.length / 2)];

const folder = mkdtempSync(join(tmpdir(), "seriatim-"));
const argv = ["dev", "--json", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", folder];
const daemon = spawn(process.env.SERIATIM_PROGRAM ?? "seriatim", argv, { stdio: ["ignore", "pipe", "ignore"] });
try {
  const [line] = await once(createInterface({ input: daemon.stdout }), "line");
  const { http, amqp } = JSON.parse(line);
  const port = amqp.split(":").pop();
  const endpoint = `Endpoint=sb://127.0.0.1:${port};SharedAccessKeyName=k;SharedAccessKey=k;UseDevelopmentEmulator=true;`;
  const [client, azure] = [new Client({ url: http }), new ServiceBusClient(endpoint)];
  const ratios = { send: [], receive: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const name = `bench-${round}`;
    await client.queue(name).create({ order: "none" });
    const row = {};
    // Each receives half of what both have sent.
    for (const verb of ["send", "receive"]) {
      const [own, other] = [await timed(ours[verb], client, name), await timed(azures[verb], azure, name)];
      ratios[verb].push(other / own);
      row[verb] = { seriatim: Math.round((COUNT / own) * 1000), azure: Math.round((COUNT / other) * 1000) };
    }
    console.log(JSON.stringify(row));
  }
  await azure.close();
  console.log(`send: ${median(ratios.send).toFixed(2)} times as quick as @azure/service-bus`);
  console.log(`receive and complete: ${median(ratios.receive).toFixed(2)} times as quick as @azure/service-bus`);
} finally {
  daemon.kill();
  rmSync(folder, { recursive: true });
}
