#!/usr/bin/env node
/** Runs the program of the platform's package, with this process's input, output and signals: `npx seriatim dev`. */

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { packagedProgram, platformPackage } from "./binary.js";

const program = process.env["SERIATIM_PROGRAM"] || packagedProgram();
if (program === undefined) {
  console.error(
    `seriatim: there is no program for this machine: the package ${platformPackage()} is not installed. ` +
      "Install it, or set SERIATIM_PROGRAM to the path of a program of your own.",
  );
  process.exit(3);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  // Whoever signals this process means the program. A terminal signals both, and the program takes what comes together for one.
  process.on(signal, () => void child.kill(signal));
}
child.on("error", (error) => {
  console.error(`seriatim: cannot start ${program}: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
});
