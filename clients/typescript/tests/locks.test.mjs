// What a worker promises of the locks on what it has in hand, towards a daemon that plays a script, and with a moved clock.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { App, Client, LockLost, NotFound, Unavailable, Unreachable, Worker } from "../dist/index.js";

// As long as a test waits for what has to come.
const PATIENCE_MS = 10_000;
// How long the locks of the script last.
const LOCK_MS = 2_000;

const waited = (emitter, event) => once(emitter, event, { signal: AbortSignal.timeout(PATIENCE_MS) });

// A daemon that hands out the deliveries once; `renew` says with which status a renewal is answered (0: the connection is cut), or
// nothing if it hangs. Its wall clock is ahead of that of the worker. Each renewal is an event with the delivery's name.
class ScriptedDaemon extends EventEmitter {
  renewals = {};

  constructor(deliveries, renew, aheadMs) {
    super();
    Object.assign(this, { left: deliveries, renew, aheadMs });
    this.server = createServer((request, response) => {
      request.resume().on("end", () => this.answer(request.url.split("/"), response));
    });
  }

  async start() {
    await once(this.server.listen(0, "127.0.0.1"), "listening");
    return new Client({ url: `http://127.0.0.1:${this.server.address().port}`, retryForMs: 0 });
  }

  lock() {
    return { locked_until: new Date(Date.now() + this.aheadMs + LOCK_MS).toISOString(), lock_ms: LOCK_MS };
  }

  answer(path, response) {
    const say = (status, fields) => response.writeHead(status).end(JSON.stringify(fields));
    if (path.at(-1) === "receive") {
      const common = { queue: "orders", sequence_number: 1, delivery_count: 1, ...this.lock() };
      return say(200, { deliveries: this.left.splice(0).map((delivery) => ({ delivery, ...common })) });
    }
    if (path.at(-1) !== "renew") return say(200, { results: [{}] });
    const name = path.at(-2);
    this.renewals[name] = (this.renewals[name] ?? 0) + 1;
    this.emit(name);
    const status = this.renew(name);
    if (status === 0) return response.destroy();
    if (status !== undefined) say(status, status === 200 ? this.lock() : { code: status === 409 ? "lock_lost" : "busy" });
  }

  async renewed(name, count) {
    while ((this.renewals[name] ?? 0) < count) await waited(this, name);
  }
}

// A story with a worker that has these deliveries in hand: it is told the daemon, and the signals of the handlers.
async function playing(deliveries, renew, story, aheadMs = 0, renewForMs = 300_000) {
  const daemon = new ScriptedDaemon([...deliveries], renew, aheadMs);
  const client = await daemon.start();
  const [signals, handlers] = [{}, new EventEmitter()];
  const app = new App().handler("orders", async (message, context) => {
    signals[message.delivery] = context.signal;
    handlers.emit("begun");
    await once(handlers, "end");
  });
  const worker = new Worker(app, client, deliveries.length, renewForMs);
  const running = worker.run();
  try {
    while (Object.keys(signals).length < deliveries.length) await waited(handlers, "begun");
    await story(daemon, signals);
  } finally {
    worker.stop();
    handlers.emit("end");
    await running;
    daemon.server.closeAllConnections();
    daemon.server.close();
  }
}

const isLost = (signal) => (signal.aborted ? undefined : waited(signal, "abort"));

test("a lock is renewed in time by a worker whose clock is behind", async () => {
  const story = async (daemon, signals) => {
    await daemon.renewed("d", 2);
    assert.equal(signals.d.aborted, false);
  };
  await playing(["d"], () => 200, story, 3_600_000);
});

test("a renewal that hangs is known to be lost, and keeps no other lock from being renewed", async () => {
  await playing(["a", "b"], (name) => (name === "b" ? 200 : undefined), async (daemon, signals) => {
    await daemon.renewed("b", 3);
    await isLost(signals.a);
    assert.equal(signals.b.aborted, false);
  });
});

test("a daemon that is busy has not taken the lock", async () => {
  const answers = [503, 429];
  await playing(["d"], () => answers.shift() ?? 200, async (daemon, signals) => {
    await daemon.renewed("d", 4);
    assert.equal(signals.d.aborted, false);
  });
});

test("a lock that the daemon says is lost is lost at once", async () => {
  await playing(["d"], () => 409, async (daemon, signals) => {
    await isLost(signals.d);
    assert.equal(daemon.renewals.d, 1);
    assert.ok(signals.d.reason instanceof LockLost);
  });
});

test("a lock is lost when its time is over and nobody has answered", async () => {
  await playing(["d"], () => 0, async (_, signals) => isLost(signals.d));
});

test("a lock is renewed no longer than the worker is told", async () => {
  const story = async (daemon, signals) => {
    await isLost(signals.d);
    assert.deepEqual(daemon.renewals, {});
  };
  await playing(["d"], () => 200, story, 0, 0);
});

// A lock of half a minute with a moved clock, counted from 1,000,000: asked for then, and received four seconds later. Its
// renewals are answered as the test says: by nothing, or by an error.
async function heldWithClock() {
  const { Held } = await import("../dist/locks.js");
  const clock = { now: 1_004_000 };
  const delivery = { envelope: {}, lockMs: 30_000, error: undefined, timeouts: [] };
  delivery.renew = async ({ timeoutMs }) => {
    delivery.timeouts.push(timeoutMs);
    if (delivery.error !== undefined) throw delivery.error;
  };
  const held = new Held(delivery, 1_000_000, 300_000, () => clock.now);
  const due = (now) => ((clock.now = now), held.isDue());
  return { clock, delivery, held, due, lost: () => held.lost.signal.aborted };
}

test("half of the time since it was asked for is waited", async () => {
  const { held, due } = await heldWithClock();
  assert.deepEqual([due(1_014_900), due(1_015_000)], [false, true]);
  await held.renew();
  assert.deepEqual([due(1_029_900), due(1_030_000)], [false, true]);
});

test("a try that fails leaves time for others and prolongs nothing", async () => {
  for (const error of [new Unreachable("gone"), new Unavailable("busy", "busy", 503), new NotFound("http_404", "", 404), new TypeError("other")]) {
    const { clock, delivery, held, due, lost } = await heldWithClock();
    delivery.error = error;
    clock.now = 1_024_000;
    await held.renew();
    assert.deepEqual(delivery.timeouts, [5_000], "half of what is left");
    assert.deepEqual([due(1_025_200), due(1_025_300), due(1_033_900), lost()], [false, true, true, false]);
    assert.deepEqual([due(1_034_000), lost()], [false, true]);
  }
});

test("one try at a time is made", async () => {
  const { held, due } = await heldWithClock();
  due(1_015_000);
  const renewed = held.renew();
  assert.equal(due(1_016_000), false);
  await renewed;
});

test("it is lost when it is over also while a renewal hangs", async () => {
  const { clock, delivery, held, due, lost } = await heldWithClock();
  let answer;
  delivery.renew = () => new Promise((done) => (answer = done));
  clock.now = 1_020_000;
  const renewed = held.renew();
  assert.deepEqual([due(1_033_900), lost()], [false, false]);
  assert.deepEqual([due(1_034_000), lost()], [false, true]);
  answer();
  await renewed;
});

test("without a renewal it is lost when it is over since it was received", async () => {
  const { due, lost } = await heldWithClock();
  assert.deepEqual([due(1_033_900), lost()], [true, false]);
  assert.deepEqual([due(1_034_000), lost()], [false, true]);
});

test("a renewed one is lost when it is over since the renewal was begun", async () => {
  const { clock, held, due, lost } = await heldWithClock();
  clock.now = 1_020_000;
  await held.renew();
  assert.deepEqual([due(1_049_900), lost()], [true, false]);
  assert.deepEqual([due(1_050_000), lost()], [false, true]);
});

test("one that was settled meanwhile is not lost", async () => {
  const { delivery, held, due, lost } = await heldWithClock();
  held.hasEnded = true;
  delivery.error = new LockLost("lock_lost", "", 409);
  await held.renew();
  due(5_000_000);
  assert.equal(lost(), false);
});

test("after five minutes it runs out", async () => {
  const { clock, held, due, lost } = await heldWithClock();
  let renewals = 0;
  while (!lost()) {
    if (!due(clock.now + 1_000)) continue;
    await held.renew();
    renewals++;
  }
  // Every 15 seconds; the last is at 1,300,000 and lasts half a minute.
  assert.deepEqual([renewals, clock.now], [20, 1_330_000]);
  assert.match(held.lost.signal.reason.message, /not renewed any more/);
});
