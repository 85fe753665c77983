/** Where the program `seriatim` is. */

import { createRequire } from "node:module";

/** The package that has the program for this machine, if there is one. */
export function platformPackage(): string {
  return `seriatim-${process.platform}-${process.arch}`;
}

/** The program: `SERIATIM_PROGRAM`, or that of the platform's package, or `seriatim` on the PATH. */
export function findProgram(): string {
  const named = process.env["SERIATIM_PROGRAM"];
  return named || packagedProgram() || "seriatim";
}

/** The program of the platform's package; nothing where it is not installed. */
export function packagedProgram(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${platformPackage()}/bin/seriatim`);
  } catch {
    return undefined;
  }
}
