/** A throw-away daemon for tests: its store is gone when it ends. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findProgram } from "./binary.js";
import { Client } from "./client.js";

/** A daemon on a free port, with the definitions of a folder or none, and a store that ends with it. */
export class DevDaemon {
  private constructor(
    readonly process: ChildProcess,
    readonly url: string,
    private readonly folder: string | undefined,
    private readonly written: string[],
  ) {}

  /** Starts one. The program is `SERIATIM_PROGRAM`, or that of the platform's package, or `seriatim` on the PATH. */
  static async start(definitions?: string): Promise<DevDaemon> {
    const folder = definitions === undefined ? await mkdtemp(join(tmpdir(), "seriatim-")) : undefined;
    const argv = ["dev", "--json", "--http", "127.0.0.1:0", definitions ?? folder!];
    const child = spawn(findProgram(), argv, { stdio: ["ignore", "pipe", "pipe"] });
    const written: string[] = [];
    child.stderr!.on("data", (data: Buffer) => written.push(data.toString()));
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`the daemon did not start (exit code ${code}): ${written.join("").trim()}`);
    });
    ended.catch(() => {});
    const line = once(createInterface({ input: child.stdout! }), "line");
    const [ready] = (await Promise.race([line, ended])) as [string];
    return new DevDaemon(child, JSON.parse(ready).http, folder, written);
  }

  /** A client of it. */
  client(): Client {
    return new Client({ url: this.url });
  }

  /** What it has logged. */
  log(): string {
    return this.written.join("");
  }

  /** Ends it, and what it stored. */
  async stop(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill("SIGTERM");
      await once(this.process, "exit");
    }
    if (this.folder !== undefined) await rm(this.folder, { recursive: true, force: true });
  }
}
