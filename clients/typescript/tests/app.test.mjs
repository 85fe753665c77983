// What handlers are promised, by a worker over HTTP and by a program that the daemon runs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, Context, DeadLetter, Defer, Received, Retry, Worker } from "../dist/index.js";
import { DevDaemon } from "../dist/testing.js";

const INDEX = new URL("../dist/index.js", import.meta.url).href;
const OPTIONS = { order: "position", retry: { backoff: { first: "1ms", max: "1ms" } } };
let daemon, client, made = 0;
before(async () => {
  daemon = await DevDaemon.start();
  client = daemon.client();
});
after(() => daemon.stop());

async function until(condition, ms = 30_000) {
  for (const ends = Date.now() + ms; ; await new Promise((next) => setTimeout(next, 20))) {
    if (await condition()) return;
    assert.ok(Date.now() < ends, "it did not come about in time");
  }
}

async function orders(count, options = OPTIONS, of = client) {
  const queue = of.queue(`orders-${made++}`);
  await queue.create(options);
  const messages = Array.from({ length: count }, (_, at) => ({ body: `${at + 1}`, workflow: "w", position: at + 1 }));
  if (count > 0) await queue.sendBatch(messages);
  return queue;
}

const completed = async (queue) => (await queue.view()).counts.completed;

async function working(app, queue, count, ms) {
  const worker = new Worker(app, client, 8);
  const running = worker.run();
  try {
    await until(async () => (await completed(queue)) === count, ms);
  } finally {
    worker.stop();
    await running;
  }
}

// What a handler may do by mistake, and a part of the reason that is told.
const MISTAKES = `{
  defers: () => new Defer(new Date(NaN)),
  retries: () => new Retry({ afterMs: -1 }),
  sends: (context) => context.send("orders", "x", { timeToLiveMs: -1 }),
  sets: (context) => void (context.state = 1n),
  "sets no number": (context) => void (context.state = 0 / 0),
  "sets a function": (context) => void (context.state = () => {}),
  "sends half": (context) => context.send("orders", "\\ud83d"),
  cut: () => { throw new Error("x".repeat(992) + "\u{1F600}"); },
  "retries half": () => new Retry({ reason: "half \\ud83d" }),
}`;
const REASONS = {
  defers: /RangeError: Invalid time/,
  retries: /negative/,
  sends: /negative/,
  sets: /BigInt/,
  "sets no number": /what JSON has, and not NaN/,
  "sets a function": /what JSON has/,
  "sends half": /half of a character/,
  cut: /x\uFFFD$/,
  "retries half": /half \uFFFD$/,
};

test("an outcome that cannot be told is a failed attempt with its reason", async () => {
  const mistakes = new Function("Defer", "Retry", `return ${MISTAKES}`)(Defer, Retry);
  const queue = await orders(0);
  await queue.sendBatch(Object.keys(mistakes).map((workflow) => ({ workflow, position: 1 })));
  const reasons = {};
  const app = new App().handler(queue.name, (message, context) => {
    if (context.attempt === 1) return mistakes[message.workflow](context);
    reasons[message.workflow] = message.envelope.attempts[0].reason;
  });
  await working(app, queue, Object.keys(mistakes).length, 10_000);
  for (const [workflow, reason] of Object.entries(REASONS)) assert.match(reasons[workflow], reason);
});

test("what the daemon refuses for good is a failed attempt with its reason", async () => {
  const queue = await orders(0);
  await queue.sendBatch(["sends", "sets"].map((workflow) => ({ workflow, position: 1 })));
  const reasons = {};
  const app = new App().handler(queue.name, (message, context) => {
    if (context.attempt > 1) reasons[message.workflow] = message.envelope.attempts[0].reason;
    else if (message.workflow === "sends") context.send("missing", "x");
    else context.state = "x".repeat(1024 * 1024 + 1);
  });
  // A third of what a lock takes to run out.
  await working(app, queue, 2, 10_000);
  assert.match(reasons.sends, /missing/);
  assert.match(reasons.sets, /state/);
});

// A queue whose handler sends to a workflow that is full, with what it sends to and which attempts it has seen.
async function full() {
  const [queue, bills, attempts] = [await orders(1), client.queue(`bills-${made++}`), []];
  await bills.create({ order: "position", limits: { early_max: 1 } });
  await bills.send("waits for the first", { workflow: "w", position: 2 });
  const app = new App().handler(queue.name, (message, context) => {
    attempts.push(context.attempt);
    context.send(bills.name, message.body, { workflow: "w", position: 3 });
  });
  return { queue, bills, attempts, app };
}

// Does something once a worker has said that there is no room.
function onceWithoutRoom(context, act) {
  const said = new EventEmitter();
  said.once("no room", act);
  context.mock.method(console, "error", (text) => void (/no room/.test(text) && said.emit("no room")));
}

test("a completion without room waits for it with the message in hand", async (context) => {
  const { queue, bills, attempts, app } = await full();
  onceWithoutRoom(context, () => bills.send("the first", { workflow: "w", position: 1 }));
  await working(app, queue, 1, 10_000);
  assert.deepEqual([attempts, (await bills.receiveRun()).messages.length], [[1], 3]);
});

test("a worker that stops waits for no room, and gives the message back uncounted", async (context) => {
  const { queue, attempts, app } = await full();
  const worker = new Worker(app, client, 8);
  onceWithoutRoom(context, () => worker.stop());
  await worker.run();
  const [delivery] = await queue.receive({ waitMs: 10_000 });
  assert.deepEqual([delivery.deliveryCount, attempts], [1, [1]]);
});

test("what finds no room in time is given back uncounted", async () => {
  const { settle } = await import("../dist/settling.js");
  const { Held } = await import("../dist/locks.js");
  const { queue, bills } = await full();
  const [delivery] = await queue.receive();
  const held = new Held(delivery, 0, 300_000, () => 0);
  const send = [{ queue: bills.name, workflow_id: "w", position: 3, body: 1 }];
  await settle(held, { verb: "complete", json: JSON.stringify({ send }) }, new AbortController().signal, 0);
  const [again] = await queue.receive();
  assert.equal(again.deliveryCount, 1);
});

test("a failing message holds back what is behind it", async () => {
  const queue = await orders(3);
  const seen = [];
  const app = new App().handler(queue.name, (message, context) => {
    seen.push(message.text);
    if (message.text === "2" && context.attempt === 1) throw new Retry({ afterMs: 0 });
  });
  await working(app, queue, 3);
  assert.deepEqual(seen, ["1", "2", "2", "3"]);
});

test("an error means what the handler says", async () => {
  const queue = await orders(4);
  const meant = (error) => (error instanceof RangeError ? new DeadLetter("bad") : undefined);
  const app = new App().handler(
    queue.name,
    (message) => {
      if (message.text === "2") throw new RangeError("x");
      if (message.text === "3") return new Defer();
    },
    { onError: meant },
  );
  await working(app, queue, 2);
  const { counts } = await queue.view();
  assert.deepEqual([counts.dead_lettered, counts.by_consumer], [1, 1]);
});

test("state and sends are in the transaction of the completion", async () => {
  const queue = await orders(3);
  const bills = client.queue("bills");
  await bills.create();
  const app = new App().handler(queue.name, async (message, context) => {
    context.state = [...(context.state ?? []), message.json()];
    context.send("bills", { of: message.json() }, { workflow: "w" });
    if (context.attempt === 1) return new Retry({ afterMs: 0 });
  });
  await working(app, queue, 3);
  assert.deepEqual(await queue.workflow("w").state(), [1, 2, 3]);
  assert.equal((await bills.view()).counts.stored, 3, "a failed attempt sends nothing");
});

test("a state that is set to nothing is left as it is", () => {
  const message = new Received({ queue: "orders", sequence_number: 1, delivery_count: 1, state: { seen: 1 } });
  const context = new Context(message, new AbortController().signal);
  context.state = undefined;
  assert.deepEqual([context.state, context.completion()], [{ seen: 1 }, {}]);
});

test("an app may have each byte of a body of JSON", async () => {
  const queue = await orders(0);
  await queue.send("[1.10 ]", { workflow: "w", position: 1, contentType: "application/json" });
  const seen = [];
  const app = new App({ raw: true }).handler(queue.name, (message) => void seen.push(message.text, message.json()));
  await working(app, queue, 1);
  assert.deepEqual(seen, ["[1.10 ]", [1.1]]);
});

test("a lock is renewed as long as the handler runs", async () => {
  const queue = await orders(1, { order: "position", delivery: { lock: "1s" } });
  const attempts = [];
  const app = new App().handler(queue.name, async (_, context) => {
    attempts.push(context.attempt);
    // Longer than two locks.
    await new Promise((done) => setTimeout(done, 2_500));
  });
  await working(app, queue, 1);
  assert.deepEqual(attempts, [1]);
});

test("a worker that is asked to end finishes what it has begun", async () => {
  const queue = await orders(2);
  const folder = await mkdtemp(join(tmpdir(), "seriatim-"));
  const text = `import { App } from ${JSON.stringify(INDEX)};
    await new App().handler(${JSON.stringify(queue.name)}, async () => {
      console.log("begun");
      await new Promise((done) => setTimeout(done, 1000));
    }).run({ concurrency: 1 });`;
  await writeFile(join(folder, "slow.mjs"), text);
  const env = { ...process.env, SERIATIM_URL: daemon.url };
  const worker = spawn(process.execPath, [join(folder, "slow.mjs")], { env, stdio: ["ignore", "pipe", "inherit"] });
  await once(worker.stdout, "data");
  worker.kill("SIGTERM");
  const [code] = await once(worker, "exit");
  await rm(folder, { recursive: true });
  assert.equal(code, 0);
  assert.equal(await completed(queue), 1);
  const [delivery] = await queue.receive({ waitMs: 5_000 });
  assert.deepEqual([delivery.text, delivery.deliveryCount], ["2", 1], "what was not begun is not counted");
});

// A daemon of its own that runs a text as its program, as long as a story lasts.
async function asProgram(text, story) {
  const folder = await mkdtemp(join(tmpdir(), "seriatim-"));
  await writeFile(join(folder, "handle.mjs"), text);
  const definition = `order = "position"\n[retry]\ndelays = ["1ms"]\n[[handler]]\npersistent = [${JSON.stringify(process.execPath)}, "handle.mjs"]\n`;
  await writeFile(join(folder, "orders.toml"), definition);
  const own = await DevDaemon.start(folder);
  try {
    await story(own.client().queue("orders"), own);
  } finally {
    await own.stop();
    await rm(folder, { recursive: true });
  }
}

test("a daemon runs an app as a program", async () => {
  const text = `import { App, DeadLetter } from ${JSON.stringify(INDEX)};
    await new App().handler("orders", (message, context) => {
      console.log("this is no answer");
      if (message.text === "2") throw new DeadLetter("bad");
      if (message.text === "3" && context.attempt === 1) throw new Error("again");
      context.state = [...(context.state ?? []), message.json()];
    }).run();`;
  await asProgram(text, async (queue, own) => {
    await queue.sendBatch([1, 2, 3, 4].map((n) => ({ body: `${n}`, workflow: "w", position: n })));
    await until(async () => (await completed(queue)) === 3);
    assert.deepEqual(await queue.workflow("w").state(), [1, 3, 4]);
    assert.match(own.log(), /this is no answer/);
  });
});

test("a program reads texts with any character in them", async () => {
  const text = `import { App } from ${JSON.stringify(INDEX)};
    await new App().handler("orders", (message, context) => {
      context.state = [...(context.state ?? []), message.text];
    }).run();`;
  const bodies = ["a\u2028b\u2029c", "\r\n\u0085", "€".repeat(100_000)];
  await asProgram(text, async (queue) => {
    await queue.sendBatch(bodies.map((body, at) => ({ body, workflow: "w", position: at + 1, contentType: "text/plain" })));
    await until(async () => (await completed(queue)) === 3);
    assert.deepEqual(await queue.workflow("w").state(), bodies);
  });
});

// As an older daemon writes them, whose lines have these characters as they are.
test("a program's line ends at a line feed and nowhere else", async () => {
  const text = `import { App } from ${JSON.stringify(INDEX)};
    import { Program } from ${JSON.stringify(new URL("../dist/program.js", import.meta.url).href)};
    await new Program(new App().handler("orders", (message, context) => void (context.state = message.text))).run();`;
  const program = spawn(process.execPath, ["--input-type=module", "-e", text], { stdio: ["pipe", "pipe", "inherit"] });
  const message = { queue: "orders", sequence_number: 1, body_text: "a\u2028b\u2029c" };
  program.stdin.end(`${JSON.stringify({ id: 7, message })}\n`);
  let answer = "";
  for await (const read of program.stdout.setEncoding("utf8")) answer += read;
  assert.deepEqual(JSON.parse(answer), { id: 7, outcome: "complete", state: message.body_text });
});

test("an app that is started for one message does not end as if it had handled it", async () => {
  const text = `import { App } from ${JSON.stringify(INDEX)};
    await new App().handler("orders", () => {}).run();`;
  const env = { ...process.env, SERIATIM_CHILD: "store#1", SERIATIM_SEQUENCE_NUMBER: "1" };
  const program = spawn(process.execPath, ["--input-type=module", "-e", text], { env, stdio: ["pipe", "ignore", "pipe"] });
  program.stdin.on("error", () => {}).end('{"a":1}');
  let said = "";
  for await (const read of program.stderr.setEncoding("utf8")) said += read;
  if (program.exitCode === null) await once(program, "exit");
  assert.notEqual(program.exitCode, 0);
  assert.match(said, /write persistent/);
});

test("a program answers an outcome that cannot be told with its reason", async () => {
  const text = `import { App, Defer, Retry } from ${JSON.stringify(INDEX)};
    const mistakes = ${MISTAKES};
    await new App().handler("orders", (message, context) => {
      if (context.attempt === 1) return mistakes[message.workflow](context);
      context.state = message.envelope.attempts[0].reason;
    }).run();`;
  await asProgram(text, async (queue) => {
    await queue.sendBatch(Object.keys(REASONS).map((workflow) => ({ workflow, position: 1 })));
    await until(async () => (await completed(queue)) === Object.keys(REASONS).length, 10_000);
    for (const [workflow, reason] of Object.entries(REASONS)) assert.match(await queue.workflow(workflow).state(), reason);
  });
});

test("two handlers for one subject are a mistake", () => {
  const app = new App().handler("orders", () => {}).handler("orders", () => {}, { subject: "paid" });
  assert.throws(() => app.handler("orders", () => {}, { subject: "paid" }), /already/);
});
