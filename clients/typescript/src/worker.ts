/** A worker that receives over HTTP: it may run on any machine that reaches the daemon. */

import { setMaxListeners } from "node:events";
import { type App, Context, described } from "./app.js";
import type { Client, Delivery, Queue } from "./client.js";
import { type Held, Locks, RENEW_FOR_MS } from "./locks.js";
import { named } from "./message.js";
import { failedBy, settle, type Settlement } from "./settling.js";
import { sleep } from "./transport.js";

/** How long one request waits for messages: so long a stop may take. */
const WAIT_MS = 2_000;
/** How long nothing is asked after a failure. */
const PAUSE_MS = 500;
/** Most completions of one request. */
const COMPLETIONS_MAX = 256;

/**
 * Receives for the handlers of an app, renews the locks of what they have, and settles. So many messages of each queue as
 * `concurrency` says are handled at once. A lock is renewed for `renewForMs`; a handler that takes longer loses it.
 */
export class Worker {
  readonly #locks: Locks;
  readonly #stop = new AbortController();

  constructor(
    private readonly app: App,
    private readonly client: Client,
    private readonly concurrency = 32,
    renewForMs = RENEW_FOR_MS,
  ) {
    if (concurrency < 1) throw new RangeError("concurrency must be at least 1");
    this.#locks = new Locks(renewForMs);
    // Each delivery that waits for room listens.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Receives nothing more; `run` ends when what was begun has ended. */
  stop(): void {
    this.#stop.abort();
  }

  /** Runs until `stop`. */
  async run(): Promise<void> {
    this.#locks.start();
    try {
      await Promise.all(this.app.queues().map((name) => this.#serve(this.client.queue(name))));
    } finally {
      this.#locks.stop();
    }
  }

  async #serve(queue: Queue): Promise<void> {
    const running = new Set<Promise<void>>();
    // Not a race of them: each would stay with a handler that does not end.
    let oneHasEnded = (): void => {};
    const completions = new Completions(queue);
    while (!this.#stop.signal.aborted) {
      const free = this.concurrency - running.size;
      if (free === 0) {
        await new Promise<void>((resolve) => (oneHasEnded = resolve));
        continue;
      }
      let deliveries: Delivery[] = [];
      const askedAt = this.#locks.clock();
      try {
        // With messages in hand it does not wait long: their places become free.
        const waitMs = running.size > 0 ? 50 : WAIT_MS;
        deliveries = await queue.receive({ max: free, waitMs, state: true, raw: this.app.raw });
      } catch (error) {
        console.error(`cannot receive from ${queue.name}: ${described(error)}`);
        await sleep(PAUSE_MS);
      }
      for (const delivery of deliveries) {
        const held = this.#locks.hold(delivery, askedAt);
        const handled: Promise<void> = this.#handle(held, completions).finally(() => {
          running.delete(handled);
          oneHasEnded();
        });
        running.add(handled);
      }
    }
    await Promise.all(running);
  }

  async #handle(held: Held, completions: Completions): Promise<void> {
    const { delivery } = held;
    try {
      if (this.#stop.signal.aborted) return await delivery.release();
      const settlement = await this.#settlement(held);
      if (settlement === undefined) await completions.add(delivery);
      else await settle(held, settlement, this.#stop.signal);
    } catch (error) {
      console.error(`cannot settle ${named(delivery)}: ${described(error)}; it comes again`);
    } finally {
      this.#locks.letGo(held);
    }
  }

  /** Calls the handler: how its message is settled; `undefined` to complete it, along with others. */
  async #settlement({ delivery, lost }: Held): Promise<Settlement | undefined> {
    try {
      const context = new Context(delivery, lost.signal);
      const outcome = await this.app.handle(delivery, context);
      if (outcome !== undefined) return { verb: outcome.verb, json: JSON.stringify(outcome.fields()) };
      const completion = context.completion();
      return Object.keys(completion).length > 0 ? { verb: "complete", json: JSON.stringify(completion) } : undefined;
    } catch (error) {
      // What cannot be told to the daemon is a failed attempt, and not a message that stays locked.
      console.error(`cannot settle ${named(delivery)} as its handler said:`, error);
      return failedBy(error);
    }
  }
}

/** Completes what was handled, all that has come together with one request. */
class Completions {
  #waiting: { delivery: Delivery; done: () => void; failed: (error: unknown) => void }[] = [];
  #isAsking = false;

  constructor(private readonly queue: Queue) {}

  add(delivery: Delivery): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ delivery, done, failed });
      if (!this.#isAsking) void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    // What is handled in this moment comes along.
    await new Promise((next) => setImmediate(next));
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0, COMPLETIONS_MAX);
      try {
        const { results } = await this.queue.complete(together.map(({ delivery }) => delivery));
        together.forEach(({ done, failed }, at) => {
          const error = results[at]?.error;
          if (error === undefined) done();
          else failed(new Error(String(error["detail"])));
        });
      } catch (error) {
        together.forEach(({ failed }) => failed(error));
      }
    }
    this.#isAsking = false;
  }
}
