/** The client: queues, messages, deliveries, and what an operator does. */

import { randomUUID } from "node:crypto";
import { NotFound } from "./errors.js";
import { type Body, duration, type Envelope, envelope, exact, type Json, type Message, type MessageFields, type Receipt, receipt, Received, told } from "./message.js";
import { type ClientOptions, type Request, Transport } from "./transport.js";

/** Most messages of one batch. */
const BATCH_MAX = 1024;
/** Most rows of a page. */
const PAGE_MAX = 1000;
const JSON_TYPE = { "Content-Type": "application/json" };

const post = (path: string, fields: object = {}, more: Partial<Request> = {}): Request => ({
  method: "POST",
  path,
  body: JSON.stringify(fields),
  headers: JSON_TYPE,
  ...more,
});
const get = (path: string, query: Record<string, unknown> = {}, more: Partial<Request> = {}): Request => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const asked = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return { method: "GET", path: asked ? `${path}?${asked}` : path, repeatable: true, ...more };
};
const queuePath = (queue: string, rest = ""): string => `/v1/queues/${encodeURIComponent(queue)}${rest}`;

/** What is one transaction with a completion. */
export interface Completion {
  /** The workflow's new state: bytes, or anything that JSON has; `null` clears it. */
  state?: Uint8Array | Json;
  /** Messages to send, each with its queue. */
  send?: { queue: string; message: Message }[];
}

/** When a failed message is tried again, and why it failed. */
export interface Retrying {
  afterMs?: number;
  at?: Date;
  reason?: string;
}

/** A state that JSON has: anything else would be left out of it, or be `null`, and the workflow would keep the state it had. */
function kept(state: Json): Json {
  const text: string | undefined = JSON.stringify(state);
  if (text === undefined || text === "null") throw new TypeError(`a state is bytes, or what JSON has, and not ${String(state)}`);
  return state;
}

/** A completion as the daemon reads it. */
export function completionFields(completion: Completion): Record<string, unknown> {
  const { state, send = [] } = completion;
  const fields: Record<string, unknown> = {};
  if (state === null) fields["clear_state"] = true;
  else if (state instanceof Uint8Array) fields["state_base64"] = Buffer.from(state).toString("base64");
  else if (state !== undefined) fields["state"] = kept(state);
  if (send.length > 0) fields["send"] = send.map(({ queue, message }) => envelope(message, queue));
  return fields;
}

/** A retry as the daemon reads it. */
export const retryFields = ({ afterMs, at, reason }: Retrying): Record<string, unknown> => ({
  retry_after: afterMs === undefined ? undefined : duration(afterMs),
  retry_at: at?.toISOString(),
  reason: reason === undefined ? undefined : told(reason),
});

/** Why a message is moved aside, as the daemon reads it. */
export const deadLetterFields = (reason: string, description: string): Record<string, unknown> => ({
  reason: told(reason),
  description: told(description),
});

/** How the message of a run ends that stands behind those that are completed. */
export interface NextOutcome extends Retrying {
  verb: "abandon" | "defer" | "dead_letter";
  /** With `defer`: until when. */
  until?: Date;
  /** With `dead_letter`: what else there is to say. */
  description?: string;
}

/** Such an end as the daemon reads it. */
const nextFields = (next: NextOutcome): Record<string, unknown> => ({
  verb: next.verb,
  ...retryFields(next),
  description: next.description === undefined ? undefined : told(next.description),
  until: next.until?.toISOString(),
});

/** How long a lock lasts; an older daemon says only until when, by its own wall clock. */
const lockMs = (answer: Envelope): number =>
  answer["lock_ms"] ?? Math.max(new Date(answer["locked_until"]).getTime() - Date.now(), 1_000);

/**
 * A message under a lock. It is settled once: completed, abandoned, deferred, dead-lettered or released. One that is dropped
 * comes back when its lock runs out, and that counts as a failed attempt.
 */
export class Delivery extends Received {
  readonly delivery: string;
  /** Until when it is locked, by the daemon's wall clock. */
  lockedUntil: Date;
  /** How long the lock lasts from the moment of hand-out, or of its renewal, in milliseconds. */
  lockMs: number;
  readonly #transport: Transport;

  constructor(transport: Transport, envelope: Envelope) {
    super(envelope);
    this.#transport = transport;
    this.delivery = envelope["delivery"];
    this.lockedUntil = new Date(envelope["locked_until"]);
    this.lockMs = lockMs(envelope);
  }

  /** The message is done. */
  async complete(completion: Completion = {}): Promise<Receipt[]> {
    const answer = await this.settle("complete", completionFields(completion));
    return (answer?.receipts ?? []).map(receipt);
  }

  /** It has failed: it is tried again in its place, after the delay, at the instant, or as its queue says. */
  async abandon(retrying: Retrying = {}): Promise<void> {
    await this.settle("abandon", retryFields(retrying));
  }

  /** It is set aside until an instant, or until it is received by its number; the workflow goes on without it. */
  async defer(until?: Date): Promise<void> {
    await this.settle("defer", { until: until?.toISOString() });
  }

  /** It is moved aside for good. */
  async deadLetter(reason: string, description = ""): Promise<void> {
    await this.settle("dead_letter", deadLetterFields(reason, description));
  }

  /** It was not begun: it is given back as if it had not been handed out. */
  async release(): Promise<void> {
    await this.settle("release", {});
  }

  /** The lock begins anew; `timeoutMs` says how long that may take, with all tries. */
  async renew({ timeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    const answer = await this.settleAs("renew", "{}", timeoutMs);
    this.lockedUntil = new Date(answer.locked_until);
    this.lockMs = lockMs(answer);
  }

  /** A settlement by its verb; asked again within a minute, it is answered as it was. */
  settle(verb: string, fields: object): Promise<any> {
    return this.settleAs(verb, JSON.stringify(fields));
  }

  /** The same with what the verb takes as JSON. */
  settleAs(verb: string, json: string, limitMs?: number): Promise<any> {
    const path = queuePath(this.queue, `/deliveries/${encodeURIComponent(this.delivery)}/${verb}`);
    return this.#transport.call(post(path, {}, { body: json, repeatable: true }), limitMs);
  }
}

/** Consecutive messages of one workflow under one lock, settled from the first on. */
export class Run {
  readonly messages: Received[];
  /** Until when it is locked, by the daemon's wall clock; `undefined` where there is nothing in it. */
  lockedUntil: Date | undefined;
  /** How long the lock lasts from the moment of hand-out, or of its renewal, in milliseconds. */
  lockMs: number | undefined;
  readonly #transport: Transport;
  readonly #queue: string;
  readonly #run: string | undefined;

  constructor(transport: Transport, queue: string, answer: { run?: string; deliveries: Envelope[] }) {
    this.#transport = transport;
    this.#queue = queue;
    this.#run = answer.run;
    // The state of their workflow stands with the first only.
    const [first] = answer.deliveries;
    const { state, state_base64 } = first ?? {};
    if (first !== undefined) this.#noteLock(first);
    this.messages = answer.deliveries.map((envelope) => new Received({ state, state_base64, ...envelope }));
  }

  /**
   * Completes the first messages (all, if nothing is said). `next` says how the one behind them ends; the others are given back.
   * The workflow's new state and messages to send are one transaction with that.
   */
  async settle(completed = this.messages.length, next?: NextOutcome, completion: Completion = {}): Promise<void> {
    // Which of the queue's exact delays is due.
    const retried = next?.verb === "abandon" ? this.messages[completed]?.deliveryCount : undefined;
    const fields = { completed, ...completionFields(completion), next: next && nextFields(next), next_delivery_count: retried };
    await this.#call("settle", fields);
  }

  /** The lock begins anew. */
  async renew(): Promise<void> {
    const answer = await this.#call("renew", {});
    if (answer !== undefined) this.#noteLock(answer);
  }

  #noteLock(answer: Envelope): void {
    this.lockedUntil = new Date(answer["locked_until"]);
    this.lockMs = lockMs(answer);
  }

  async #call(verb: string, fields: object): Promise<any> {
    if (this.#run === undefined) return;
    const path = queuePath(this.#queue, `/runs/${encodeURIComponent(this.#run)}/${verb}`);
    return await this.#transport.call(post(path, fields, { repeatable: true }));
  }
}

/** What an operator may say along with a verb. */
export interface OperateOptions {
  reason?: string;
  dryRun?: boolean;
  redrive?: boolean;
  /** With `resume`: the only cause of the hold that is lifted. */
  cause?: "operator" | "exhausted" | "gap" | "predecessor" | "quarantine" | "redriving";
  from?: number;
  to?: number;
  /** With `skip`: only if this message is at the head. */
  sequenceNumber?: number;
}

/** A workflow of a queue: what an operator sees and does. */
export class Workflow {
  constructor(
    private readonly transport: Transport,
    readonly queue: string,
    readonly id: string,
  ) {}

  /** What it does, or why it does nothing. */
  view(): Promise<any> {
    return this.transport.call(get(queuePath(this.queue, "/workflow"), { id: this.id }));
  }

  /** Its state: as JSON has it, else as bytes; `undefined` when there is none. */
  async state(): Promise<any> {
    const path = queuePath(this.queue, "/workflow/state");
    let bytes: Uint8Array;
    try {
      bytes = await this.transport.call(get(path, { id: this.id }, { answer: "bytes" }));
    } catch (error) {
      if (error instanceof NotFound && error.code === "state_not_found") return undefined;
      throw error;
    }
    try {
      return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    } catch {
      return bytes;
    }
  }

  /** Does what an operator does; with `dryRun` it only says what would come of it. */
  async operate(
    verb: "hold" | "resume" | "retry" | "skip" | "void" | "skip_gap" | "release_lock" | "purge",
    options: OperateOptions = {},
  ): Promise<any> {
    const { dryRun, sequenceNumber, ...fields } = options;
    const number = sequenceNumber === undefined ? undefined : exact(sequenceNumber);
    const path = queuePath(this.queue, `/workflow/${verb}?${new URLSearchParams({ id: this.id })}`);
    return this.transport.call(post(path, { ...fields, dry_run: dryRun || undefined, sequence_number: number }));
  }
}

/** What is received, and how it is shown. */
export interface ReceiveOptions {
  /** How many at most. */
  max?: number;
  /** How long to wait for the first, at most a minute. */
  waitMs?: number;
  /** Whether the state of each message's workflow is shown too. */
  state?: boolean;
  /** Whether bodies of JSON are shown byte for byte: see `Received.body`. */
  raw?: boolean;
}

/** A queue of the daemon. Cheap to make; whether it exists is seen when it is asked. */
export class Queue {
  constructor(
    private readonly transport: Transport,
    readonly name: string,
  ) {}

  /**
   * Creates the queue, or gives it these options in the place of all it had; one that is not named gets its default.
   *
   * They are those of a definition, `{ order: "position", delivery: { lock: "1m" } }`, but for what only a definition has:
   * `key`, `retry.delays`, `delivery.defer_for`, `delivery.concurrency` and handlers are refused.
   */
  create(options: object = {}): Promise<any> {
    const body = JSON.stringify(options);
    return this.transport.call({ method: "PUT", path: queuePath(this.name), body, headers: JSON_TYPE, repeatable: true });
  }

  /** Deletes the queue with everything in it. */
  async delete(): Promise<void> {
    await this.transport.call({ method: "DELETE", path: queuePath(this.name) });
  }

  /** Its counts and options. */
  view(): Promise<any> {
    return this.transport.call(get(queuePath(this.name)));
  }

  /** Sends one message; it is on disk when the promise is kept. */
  async send(body: Body, fields: MessageFields = {}): Promise<Receipt> {
    return (await this.sendBatch([{ ...fields, body }]))[0]!;
  }

  /**
   * Sends up to 1,024 messages: all are accepted, or none. A cluster does so for workflows of one partition only, and refuses the
   * others as `unsupported`: send them one by one.
   */
  async sendBatch(messages: Message[]): Promise<Receipt[]> {
    if (messages.length < 1 || messages.length > BATCH_MAX) {
      throw new RangeError(`a batch has 1 to ${BATCH_MAX} messages, and this one has ${messages.length}`);
    }
    const body = messages.map((message) => JSON.stringify(envelope(message))).join("\n");
    const headers = { "Content-Type": "application/x-ndjson", "Idempotency-Key": randomUUID() };
    const path = queuePath(this.name, "/messages?atomic=true");
    const answers = await this.transport.call({ method: "POST", path, body, headers, repeatable: true, answer: "lines" });
    return answers.map(receipt);
  }

  /** Up to `max` messages of different workflows, each under its lock. Waits for the first, at most a minute. */
  async receive(options: ReceiveOptions = {}): Promise<Delivery[]> {
    const answer = await this.#receive({ ...options, run: false });
    return answer.deliveries.map((envelope: Envelope) => new Delivery(this.transport, envelope));
  }

  /** Up to `max` consecutive messages of one workflow, under one lock. */
  async receiveRun(options: ReceiveOptions = {}): Promise<Run> {
    return new Run(this.transport, this.name, await this.#receive({ max: 100, ...options, run: true }));
  }

  #receive({ max = 1, waitMs = 0, state = false, raw = false, run = false }): Promise<any> {
    const fields = { max, wait: duration(waitMs), run, state, raw: raw || undefined };
    return this.transport.call(post(queuePath(this.name, "/receive"), fields, { waitMs }));
  }

  /** Messages that were set aside, by their numbers: all, or none. */
  async receiveDeferred(numbers: number[], state = false, raw = false): Promise<Delivery[]> {
    const path = queuePath(this.name, "/receive_deferred");
    const answer = await this.transport.call(post(path, { sequence_numbers: numbers.map(exact), state, raw: raw || undefined }));
    return answer.deliveries.map((envelope: Envelope) => new Delivery(this.transport, envelope));
  }

  /** Completes many deliveries with one request; what became of each stands in `results`. */
  complete(deliveries: Delivery[]): Promise<{ completed: number; results: { delivery: string; error?: Envelope }[] }> {
    const ids = deliveries.map(({ delivery }) => delivery);
    return this.transport.call(post(queuePath(this.name, "/complete"), { deliveries: ids }, { repeatable: true }));
  }

  /** Cancels a scheduled message. Its place is free again, or, with `void`, settled. */
  async cancel(number: number, isVoid = false): Promise<void> {
    const path = queuePath(this.name, `/messages/${exact(number)}${isVoid ? "?void=true" : ""}`);
    await this.transport.call({ method: "DELETE", path });
  }

  /** Moves a scheduled message to another instant. */
  async reschedule(number: number, at: Date): Promise<void> {
    await this.transport.call(post(queuePath(this.name, `/messages/${exact(number)}/reschedule`), { at: at.toISOString() }));
  }

  /** A workflow, to look at it and to operate on it. */
  workflow(id: string): Workflow {
    return new Workflow(this.transport, this.name, id);
  }

  /** Its workflows that do not go on: why, since when, and what comes next. */
  blocked(): Promise<any[]> {
    return allBlocked(this.transport, this.name);
  }

  /** A page of its dead letters. */
  deadLetters(filters: { reason?: string; limit?: number; after?: string } = {}): Promise<any> {
    return this.transport.call(get(queuePath(this.name, "/dead_letters"), filters));
  }

  /** Puts a dead letter back where it was, or at another position. */
  async redrive(number: number, position?: number): Promise<any> {
    return this.transport.call(post(queuePath(this.name, `/dead_letters/${exact(number)}/redrive`), { position }));
  }
}

async function allBlocked(transport: Transport, queue?: string): Promise<any[]> {
  const rows: any[] = [];
  let after: string | undefined;
  do {
    const page = await transport.call(get("/v1/blocked", { queue, limit: PAGE_MAX, after }));
    rows.push(...page.blocked);
    after = page.after ?? undefined;
  } while (after !== undefined);
  return rows;
}

/** A daemon, asked over HTTP. */
export class Client {
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options);
  }

  /** Where the daemon is. */
  get url(): string {
    return this.#transport.url;
  }

  /** A queue by its name. */
  queue(name: string): Queue {
    return new Queue(this.#transport, name);
  }

  /** The first 1,000 queues, in order of name. */
  async queues(): Promise<any[]> {
    return (await this.#transport.call(get("/v1/queues", { limit: PAGE_MAX }))).queues;
  }

  /** How the daemon is. */
  status(): Promise<any> {
    return this.#transport.call(get("/v1/status"));
  }

  /** Every workflow that does not go on: why, since when, and what comes next. */
  blocked(): Promise<any[]> {
    return allBlocked(this.#transport);
  }
}
