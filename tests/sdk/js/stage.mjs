// What every scenario stands on: where the daemon is, queues of its own, and how a promise is told.
import { createInterface } from "node:readline";

const { SERIATIM_AMQP, SERIATIM_HTTP, SERIATIM_STORAGE_QUEUE } = process.env;

export const SERVICE_BUS =
  `Endpoint=sb://${SERIATIM_AMQP};SharedAccessKeyName=RootManageSharedAccessKey;` +
  `SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true`;

// The development account and its key are known to everybody; every emulator has them.
export const ACCOUNT = "devstoreaccount1";
export const ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
export const STORAGE_URL = `http://${SERIATIM_STORAGE_QUEUE}/${ACCOUNT}`;

const promises = [];
let number = 0;

/** Declares a promise; it rejects when that is broken. */
export function promise(name, keep) {
  promises.push({ name, keep });
}

/** Makes a queue that nobody else uses; as Service Bus does, it gives up a message after ten deliveries. */
export async function queue(options = {}) {
  const name = `queue-${++number}`;
  const answer = await fetch(`http://${SERIATIM_HTTP}/v1/queues/${name}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ retry: { then: "skip" }, ...options }),
  });
  if (answer.status !== 201) throw new Error(`make a queue: ${answer.status} ${await answer.text()}`);
  return name;
}

/** Options of a queue with a short lock. */
export const short = (lock = "1s") => ({ delivery: { lock } });

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Kills the daemon with SIGKILL, and returns when it runs again. */
export async function kill() {
  console.log(JSON.stringify({ ask: "kill" }));
  const lines = createInterface({ input: process.stdin });
  await new Promise((resolve) => lines.once("line", resolve));
  lines.close();
}

/** Keeps every promise of the script, or only those that are named, and prints how it went. */
export async function play() {
  const only = process.argv.slice(2);
  for (const { name, keep } of promises) {
    if (only.length > 0 && !only.includes(name)) continue;
    const started = Date.now();
    const told = { promise: name, outcome: "kept" };
    try {
      await keep();
    } catch (error) {
      Object.assign(told, { outcome: "broken", detail: String(error.stack ?? error) });
    }
    console.log(JSON.stringify({ ...told, seconds: (Date.now() - started) / 1000 }));
  }
  // Clients that were left open would keep the process alive.
  process.exit(0);
}
