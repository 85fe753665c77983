/** HTTP, with what Node brings: connections are kept, and what may be asked again is. */

import { failure, SeriatimError, Unavailable, Unreachable } from "./errors.js";

/** Where the daemon listens when nothing else is said. */
export const URL_DEFAULT = "http://127.0.0.1:7700";
/** Between two tries of a request that may be asked again, in milliseconds. */
const PAUSES_MS = [50, 100, 200, 500, 1000];

/** How a daemon is asked. */
export interface ClientOptions {
  /** Where it is; without it `SERIATIM_URL`, else `http://127.0.0.1:7700`. */
  url?: string;
  /** The key; without it `SERIATIM_KEY`. */
  key?: string;
  /** How long an answer may take, in milliseconds; 30 s if it is not given. */
  timeoutMs?: number;
  /** How long is asked again what may be, when the daemon does not answer; 10 s if it is not given. */
  retryForMs?: number;
}

/** One request. */
export interface Request {
  method: string;
  path: string;
  body?: string;
  headers?: Record<string, string>;
  /** Whether asking it again does no more than asking it once. */
  repeatable?: boolean;
  /** How long the daemon may take on purpose before it answers. */
  waitMs?: number;
  /** How the answer is read: as JSON, as one JSON value a line, or as bytes. */
  answer?: "json" | "lines" | "bytes";
}

/** A promise that is kept after a while. */
export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Asks one daemon. */
export class Transport {
  readonly url: string;
  readonly #key: string | undefined;
  readonly #timeoutMs: number;
  readonly #retryForMs: number;

  constructor(options: ClientOptions) {
    const url = options.url ?? (process.env["SERIATIM_URL"] || URL_DEFAULT);
    if (!/^https?:\/\/[^/]/.test(url)) throw new TypeError(`${url} is no address of a daemon; one is like ${URL_DEFAULT}`);
    this.url = url.replace(/\/$/, "");
    // A key that was read from a file ends with a line.
    this.#key = (options.key ?? process.env["SERIATIM_KEY"])?.trim() || undefined;
    if (this.#key !== undefined && /[^ -~]/.test(this.#key)) {
      throw new TypeError("a key has letters, digits and signs of ASCII only, and this one something else");
    }
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#retryForMs = options.retryForMs ?? 10_000;
  }

  /** Asks, and asks again for a while what may be asked again when nobody answers: with a limit, so long in all. */
  async call(request: Request, limitMs = Infinity): Promise<any> {
    const started = performance.now();
    for (let tries = 0; ; tries++) {
      const leftMs = Math.max(started + limitMs - performance.now(), 1);
      try {
        return await this.#once(request, Math.ceil(Math.min(this.#timeoutMs + (request.waitMs ?? 0), leftMs)));
      } catch (error) {
        const pause = PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)]!;
        const isOver = performance.now() - started + pause > Math.min(this.#retryForMs, limitMs);
        const isPassing = error instanceof Unreachable || error instanceof Unavailable;
        if (!isPassing || !request.repeatable || isOver) throw error;
        await sleep(pause);
      }
    }
  }

  async #once(request: Request, timeoutMs: number): Promise<any> {
    const headers: Record<string, string> = { ...request.headers };
    if (this.#key !== undefined) headers["Authorization"] = `Bearer ${this.#key}`;
    let status: number;
    let bytes: Uint8Array;
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(this.url + request.path, {
        method: request.method,
        headers,
        signal,
        // Who follows one asks something else, or asks nothing and takes the answer for its own.
        redirect: "manual",
        ...(request.body === undefined ? {} : { body: request.body }),
      });
      status = response.status;
      bytes = new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      const why = cause instanceof Error ? cause.message || cause.name : String(cause);
      throw new Unreachable(`cannot reach the daemon at ${this.url}: ${why}; \`seriatim run\` starts it`);
    }
    return decode(request, status, bytes);
  }
}

function decode(request: Request, status: number, bytes: Uint8Array): any {
  if (status >= 300) throw failure(problem(bytes), status);
  if (request.answer === "bytes") return bytes;
  try {
    const text = Buffer.from(bytes).toString();
    if (request.answer === "lines") return text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
    return text.trim() ? JSON.parse(text) : undefined;
  } catch (error) {
    throw new SeriatimError(`cannot understand the answer to ${request.method} ${request.path}: ${(error as Error).message}`);
  }
}

/** A problem of the daemon; nothing where somebody between has answered, in whatever words. */
function problem(bytes: Uint8Array): Record<string, unknown> {
  try {
    const problem = JSON.parse(Buffer.from(bytes).toString());
    return typeof problem === "object" && problem !== null ? problem : {};
  } catch {
    return {};
  }
}
