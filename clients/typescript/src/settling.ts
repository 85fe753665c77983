/** Settling what a worker has handled, also where the daemon refuses what its handler wants. */

import { setTimeout as pause } from "node:timers/promises";
import { described, Retry } from "./app.js";
import { AlreadySettled, isOfProxy, LockLost, QueueFull, Refused, Unavailable } from "./errors.js";
import type { Held } from "./locks.js";
import { named } from "./message.js";

/** Between two tries of a settlement that there is no room for; the last one again and again. */
const ROOM_PAUSES_MS = [500, 1_000, 2_000, 5_000];
/** How long room is waited for, with the message in hand. */
export const ROOM_FOR_MS = 60_000;

/** How a delivery is settled: the verb, and what it takes as JSON. */
export interface Settlement {
  verb: string;
  json: string;
}

/** The failed attempt that an error is. */
export function failedBy(error: unknown): Settlement {
  const retry = new Retry({ reason: described(error) });
  return { verb: retry.verb, json: JSON.stringify(retry.fields()) };
}

/** Settles a delivery. What the daemon refuses for good has failed, with its reason: else the lock would have to run out first. */
export async function settle(held: Held, wanted: Settlement, stop: AbortSignal, roomForMs = ROOM_FOR_MS): Promise<void> {
  try {
    await settleWithRoom(held, wanted, stop, roomForMs);
  } catch (error) {
    // After these there is nothing to say of it any more, or nobody to say it to.
    const isOver = error instanceof LockLost || error instanceof AlreadySettled || error instanceof Unavailable;
    if (!(error instanceof Refused) || isOver || isOfProxy(error)) throw error;
    console.error(`cannot settle ${named(held.delivery)} as its handler said: ${error.message}; it has failed`);
    const { verb, json } = failedBy(error);
    await held.delivery.settleAs(verb, json);
  }
}

/** Tries again while there is no room. A message is not to blame for that: at the end it is given back uncounted. */
async function settleWithRoom(held: Held, wanted: Settlement, stop: AbortSignal, roomForMs: number): Promise<void> {
  const endsAt = Math.min(held.clock() + roomForMs, held.renewedUntil);
  for (let tries = 0; ; tries++) {
    try {
      await held.delivery.settleAs(wanted.verb, wanted.json);
      return;
    } catch (error) {
      if (!(error instanceof QueueFull)) throw error;
      console.error(`there is no room to settle ${named(held.delivery)}: ${error.message}; it waits for that`);
    }
    const pauseMs = ROOM_PAUSES_MS[Math.min(tries, ROOM_PAUSES_MS.length - 1)]!;
    const isOver = held.clock() + pauseMs > endsAt;
    if (!isOver) await pause(pauseMs, undefined, { signal: stop }).catch(() => {});
    if (isOver || stop.aborted) return held.delivery.release();
  }
}
