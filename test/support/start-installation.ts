/** Starts `npm start` as a program of a test, with embedded NATS and PostgreSQL, whatever the environment names. */
import { join } from "node:path";
import { type RunningProgram, runProgram } from "./running-program.ts";

const START = join(import.meta.dirname, "..", "..", "deploy", "start.ts");
/** It prints this line last. */
export const IS_UP = /Ctrl-C stops within/;

export function startInstallation(
  settings: Readonly<Record<string, string>>,
  ...args: readonly string[]
): RunningProgram {
  const env = { ...process.env, NATS_URL: "", DATABASE_URL: "", ...settings };
  return runProgram(process.execPath, [START, ...args], { env });
}
