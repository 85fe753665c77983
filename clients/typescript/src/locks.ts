/**
 * Locks on what a worker has in hand: renewed while a handler runs, and known to be lost in time. Time is counted by a monotonic
 * clock, and from before a request: the daemon's wall clock need not be that of this machine, and an answer may come late.
 */

import { described } from "./app.js";
import type { Delivery } from "./client.js";
import { AlreadySettled, LockLost, NotFound, isOfProxy } from "./errors.js";
import { named } from "./message.js";

/** How often is looked which locks are to be renewed: the shortest lock lasts a second. */
const LOOK_MS = 200;
/** How long the lock of one message is renewed if nothing is said, as for the handlers of a daemon. */
export const RENEW_FOR_MS = 300_000;
/** The shortest time in which a renewal has to be answered. */
const LIMIT_MIN_MS = 500;

/** A clock in milliseconds that nobody sets. */
export type Clock = () => number;

/** A delivery in somebody's hands, with its lock. */
export class Held {
  readonly lost = new AbortController();
  hasEnded = false;
  #isAsking = false;
  #dueAt: number;
  #endsAt: number;
  /** Until when its lock is renewed. */
  readonly renewedUntil: number;

  /** `askedAt` says when it was asked for. */
  constructor(
    readonly delivery: Delivery,
    askedAt: number,
    renewForMs: number,
    readonly clock: Clock,
  ) {
    // It was handed out at some time while the daemon was asked: it is renewed as if that had been at the beginning, and counts
    // as lost as if it had been at the end.
    const receivedAt = clock();
    this.#dueAt = askedAt + delivery.lockMs / 2;
    this.#endsAt = receivedAt + delivery.lockMs;
    this.renewedUntil = receivedAt + renewForMs;
  }

  /** Whether it is to be renewed now. Tells the handler when the lock is over without that. */
  isDue(): boolean {
    const now = this.clock();
    if (this.lost.signal.aborted) return false;
    if (now >= this.#endsAt) {
      this.#lose(new Error(now > this.renewedUntil ? "it was not renewed any more" : "no renewal was answered in time"));
    }
    return this.#dueAt <= now && now < Math.min(this.#endsAt, this.renewedUntil) && !this.#isAsking;
  }

  /** Renews the lock, or tells the handler that it is lost. What else goes wrong is tried again while there is time. */
  async renew(): Promise<void> {
    const askedAt = this.clock();
    this.#isAsking = true;
    try {
      // Half of what is left, so that there is time for another try.
      await this.delivery.renew({ timeoutMs: Math.max((this.#endsAt - askedAt) / 2, LIMIT_MIN_MS) });
      this.#dueAt = askedAt + this.delivery.lockMs / 2;
      this.#endsAt = askedAt + this.delivery.lockMs;
    } catch (error) {
      // That it was not found may also say somebody between, who knows nothing of the lock.
      const isNotFound = error instanceof NotFound && !isOfProxy(error);
      const isLost = error instanceof LockLost || error instanceof AlreadySettled || isNotFound;
      // Often enough for the time that is left, and no flood where every answer is a refusal.
      const now = this.clock();
      this.#dueAt = now + (this.#endsAt - now) / 8;
      if (isLost) this.#lose(error as Error);
      else if (!this.hasEnded && !this.lost.signal.aborted) console.error(`cannot renew the lock on ${named(this.delivery)} yet: ${described(error)}`);
    } finally {
      this.#isAsking = false;
    }
  }

  #lose(why: Error): void {
    if (this.hasEnded || this.lost.signal.aborted) return; // It was settled meanwhile, or is known to be lost.
    console.error(`the lock on ${named(this.delivery)} is lost: ${why.message}`);
    this.lost.abort(why);
  }
}

/** All locks of a worker. Each is renewed for `renewForMs`; then it runs out by itself. */
export class Locks {
  readonly #held = new Set<Held>();
  #looks: NodeJS.Timeout | undefined;

  constructor(
    private readonly renewForMs: number,
    readonly clock: Clock = () => performance.now(),
  ) {
    if (!(renewForMs >= 0)) throw new RangeError("renewForMs cannot be negative");
  }

  /** Renews its lock from now on. */
  hold(delivery: Delivery, askedAt: number): Held {
    const held = new Held(delivery, askedAt, this.renewForMs, this.clock);
    this.#held.add(held);
    return held;
  }

  /** Renews its lock no more. */
  letGo(held: Held): void {
    held.hasEnded = true;
    this.#held.delete(held);
  }

  /** Renews until `stop`. */
  start(): void {
    this.#looks = setInterval(() => {
      for (const held of this.#held) if (held.isDue()) void held.renew();
    }, LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#looks);
  }
}
