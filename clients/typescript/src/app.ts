/** Handlers: functions that a queue's messages are given to, one at a time for each workflow. */

import { type Completion, completionFields, deadLetterFields, retryFields, type Retrying } from "./client.js";
import { type Body, type Json, type Message, type MessageFields, named, type Received, told } from "./message.js";

/** How a message ends that is not completed. A handler may return it or throw it. */
export abstract class Outcome extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
  /** The verb that settles a delivery so. */
  abstract readonly verb: "abandon" | "defer" | "dead_letter";
  /** What the verb takes. */
  abstract fields(): Record<string, unknown>;
  /** The answer of a program that the daemon runs. */
  answer(): Record<string, unknown> {
    return { outcome: this.verb === "abandon" ? "retry" : this.verb, ...this.fields() };
  }
}

/** It has failed and is tried again in its place; nothing behind it in its workflow is handled before. */
export class Retry extends Outcome {
  readonly verb = "abandon";
  constructor(readonly retrying: Retrying = {}) {
    super(retrying.reason ?? "the handler asked for a retry");
  }
  fields(): Record<string, unknown> {
    return retryFields(this.retrying);
  }
}

/** It is set aside, until an instant or until it is received by its number; the workflow goes on without it. */
export class Defer extends Outcome {
  readonly verb = "defer";
  constructor(readonly until?: Date) {
    super("deferred");
  }
  fields(): Record<string, unknown> {
    return { until: this.until?.toISOString() };
  }
}

/** It is moved aside for good. */
export class DeadLetter extends Outcome {
  readonly verb = "dead_letter";
  constructor(
    readonly reason: string,
    readonly description = "",
  ) {
    super(reason);
  }
  fields(): Record<string, unknown> {
    return deadLetterFields(this.reason, this.description);
  }
}

/** What a handler may do along with completing its message: one transaction, or nothing of it. */
export class Context {
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /**
   * Aborted when the lock is lost: somebody else may have the message, so what the handler does has no effect here. A program that a
   * daemon has started is not told.
   */
  readonly signal: AbortSignal;
  readonly #completion: Completion = {};
  #state: any;

  constructor(message: Received, signal: AbortSignal) {
    this.attempt = message.deliveryCount;
    this.signal = signal;
    this.#state = message.state;
  }

  /** The workflow's state. Set it to change it with the completion; `null` clears it, and `undefined` changes nothing. */
  get state(): any {
    return this.#state;
  }

  set state(value: Uint8Array | Json) {
    if (value !== undefined) this.#state = this.#completion.state = value;
  }

  /** Sends a message with the completion. */
  send(queue: string, body: Body, fields: MessageFields = {}): void {
    const message: Message = { ...fields, body };
    (this.#completion.send ??= []).push({ queue, message });
  }

  /** What the completion says. */
  completion(): Record<string, unknown> {
    return completionFields(this.#completion);
  }
}

/** A function for messages: nothing when the message is done, or an outcome. */
export type Handler = (message: Received, context: Context) => Outcome | void | Promise<Outcome | void>;

/** What of a queue a handler is for, and what its errors mean. */
export interface HandlerOptions {
  /** Only messages with this subject. */
  subject?: string;
  /** What an error means; without an answer it is a failed attempt, which is tried again as the queue says. */
  onError?: (error: unknown) => Outcome | undefined;
}

interface Registered extends HandlerOptions {
  queue: string;
  handler: Handler;
}

/** An error in one line. */
export function described(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return told(text.replace(/\s+/g, " ").slice(0, 1000));
}

/** How `run` runs. */
export interface RunOptions {
  /** Where the daemon is; without it `SERIATIM_URL`. */
  url?: string;
  key?: string;
  /**
   * How many messages of each queue are handled at once; 32 if it is not given. A program that a daemon has started handles as many
   * as that hands it.
   */
  concurrency?: number;
  /**
   * How long the lock of one message is renewed; 5 minutes if it is not given. A handler that takes longer loses it. A daemon that
   * has started the program has its own `renew_for`, in its definition.
   */
  renewForMs?: number;
}

/** What an app is. */
export interface AppOptions {
  /**
   * Whether bodies of JSON are received byte for byte over HTTP: see `Received.body`. A daemon that has started the program always
   * gives it JSON values.
   */
  raw?: boolean;
}

/** Handlers of a program. */
export class App {
  readonly raw: boolean;
  readonly #handlers: Registered[] = [];

  constructor({ raw = false }: AppOptions = {}) {
    this.raw = raw;
  }

  /** Registers a function for the messages of a queue. */
  handler(queue: string, handler: Handler, options: HandlerOptions = {}): this {
    if (this.#handlers.some((known) => known.queue === queue && known.subject === options.subject)) {
      throw new Error(`queue ${queue} has a handler for this subject already`);
    }
    this.#handlers.push({ queue, handler, ...options });
    return this;
  }

  /** The queues there are handlers for. */
  queues(): string[] {
    return [...new Set(this.#handlers.map(({ queue }) => queue))].sort();
  }

  /** Handles a message; `undefined` when it is done. */
  async handle(message: Received, context: Context): Promise<Outcome | undefined> {
    const ofQueue = this.#handlers.filter(({ queue }) => queue === message.queue);
    const found =
      ofQueue.find(({ subject }) => subject !== undefined && subject === message.subject) ??
      ofQueue.find(({ subject }) => subject === undefined);
    if (found === undefined) {
      return new Retry({ reason: `there is no handler for queue ${message.queue} and subject ${message.subject}` });
    }
    try {
      const returned = await found.handler(message, context);
      if (returned === undefined || returned === null || returned instanceof Outcome) return returned ?? undefined;
      return new Retry({ reason: "the handler returned something else than nothing, Retry, Defer or DeadLetter" });
    } catch (error) {
      if (error instanceof Outcome) return error;
      const meant = found.onError?.(error);
      if (meant !== undefined) return meant;
      console.error(`a handler failed (${named(message)}):`, error);
      return new Retry({ reason: described(error) });
    }
  }

  /**
   * Runs until the daemon ends the program, or until SIGTERM or SIGINT: then what was begun is finished. Started by a daemon
   * (`persistent` in a definition) it serves that; else it receives over HTTP.
   */
  async run(options: RunOptions = {}): Promise<void> {
    if (process.env["SERIATIM_CHILD"] !== undefined && options.url === undefined) {
      // It gets one body and no line: it would end well and have handled nothing.
      if (process.env["SERIATIM_SEQUENCE_NUMBER"] !== undefined) {
        throw new Error("an App runs on: write persistent = [...] in the definition, not exec = [...]");
      }
      const { Program } = await import("./program.js");
      await new Program(this).run();
    } else {
      const [{ Client }, { Worker }] = [await import("./client.js"), await import("./worker.js")];
      const worker = new Worker(this, new Client(options), options.concurrency, options.renewForMs);
      const stop = () => worker.stop();
      process.once("SIGTERM", stop).once("SIGINT", stop);
      await worker.run();
      process.off("SIGTERM", stop).off("SIGINT", stop);
    }
  }
}
