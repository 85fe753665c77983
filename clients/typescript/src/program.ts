/** A program that a daemon has started and keeps running: a line of JSON for each message, and one for each answer. */

import { type App, Context, described, Retry } from "./app.js";
import { type Envelope, named, Received } from "./message.js";

/** The lines of an input. `node:readline` would end one at U+2028, which a text of JSON may have in it. */
async function* lines(input: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  for await (const read of input) {
    let from = 0;
    for (let end = read.indexOf(0x0a); end !== -1; end = read.indexOf(0x0a, from)) {
      // Decoded only when it is whole: what was read may end within a character.
      yield Buffer.concat([...begun, read.subarray(from, end)]).toString();
      [begun, from] = [[], end + 1];
    }
    begun.push(read.subarray(from));
  }
}

/** Serves the daemon on standard input and output, until its input ends. */
export class Program {
  constructor(private readonly app: App) {}

  /** Serves until the input ends. What handlers print with `console` goes to standard error, and so into the daemon's log. */
  async run(): Promise<void> {
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
    const running = new Set<Promise<void>>();
    for await (const line of lines(process.stdin)) {
      const { id, message } = JSON.parse(line);
      const served: Promise<void> = this.#line(id, message)
        .then((answer) => void write(`${answer}\n`))
        .finally(() => running.delete(served));
      running.add(served);
    }
    await Promise.all(running);
  }

  /** The answer as a line: where the outcome cannot be told, a failed attempt, as the daemon waits for an answer. */
  async #line(id: unknown, envelope: Envelope): Promise<string> {
    const message = new Received(envelope);
    try {
      return JSON.stringify({ id, ...(await this.#answer(message)) });
    } catch (error) {
      console.error(`cannot answer as a handler said (${named(message)}):`, error);
      return JSON.stringify({ id, ...new Retry({ reason: described(error) }).answer() });
    }
  }

  async #answer(message: Received): Promise<Record<string, unknown>> {
    const context = new Context(message, new AbortController().signal);
    const outcome = await this.app.handle(message, context);
    return outcome === undefined ? { outcome: "complete", ...context.completion() } : outcome.answer();
  }
}
