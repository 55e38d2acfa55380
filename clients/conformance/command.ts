/**
 * Checks that a running service keeps the contract. It acts over HTTP only, as a cashier, two devices and the owner. It can also
 * check a device: then it acts as the cashier and the owner.
 *
 *   npm run conformance -- --help
 */
import { dirname } from "node:path";
import {
  CommandError,
  checkFolder,
  endWithError,
  findService,
  parseCommandLine,
  UsageError,
  writeText,
} from "../command.ts";
import { trustCertificate } from "../http/transport.ts";
import { idOf, logInOf, print } from "../person.ts";
import { DEVICE_OPTIONS, refuseDeviceOptions, runAtDevice } from "./devices/command.ts";
import type { DeviceRunResult } from "./devices/device-suite.ts";
import { NoAnswer } from "./http.ts";
import { LeftRuns } from "./left-runs.ts";
import { checkJson, htmlOf, jsonOf, junitOf, lineOf, resultJson, summaryOf } from "./reports.ts";
import { type RunOptions, type RunResult, runSuite } from "./suite.ts";
import { CannotRun, LeftBehind } from "./world.ts";

const CONFORMANCE_HELP = `Checks that a running service, or a device at it, keeps the contract, over HTTP only.

  npm run conformance -- --sandbox ID
      The sandbox is reset before and after: use one that nothing else uses
      (npm run cli -- sandbox seed makes one)
      --base-url URL      BASE_URL, or what \`npm start\` wrote to sandbox.json of DATA_DIR
      GATEWAY_CERTIFICATE_FILE
                          a certificate of the service in PEM, trusted beside the
                          authorities of Node; left out, the one of \`npm start\`
      --only CHECK        only this check, with those that it builds on; may be repeated
      --json              each result as one JSON object in a line, for programs
      --json-file FILE, --junit FILE, --html FILE
                          writes the result there as well; the file of a run without one is empty

  npm run conformance -- --sandbox ID --device companion|display
      A device acts, and the suite acts as its cashier and its owner. Give the device the address
      of the suite, which forwards its requests. The suite prints what a person at the device does
      --program COMMAND   a program acts instead of a person (docs/conformance.md has its instructions)
      --listen HOST:PORT  where the device reaches the suite; by default 127.0.0.1 and any free port
      --capability NAME   only this one, with those that it builds on; may be repeated
      --provider NAME, --model NAME, --software VERSION, --software-sha256 HEX
                          the device's maker and software, for the result
      \`npm run cli -- certify\` does the same, and records certificates when all has passed

  OWNER_EMAIL, OWNER_PASSWORD are the owner's log-in; left out, the sandbox's owner.
  SESSION_TOKEN is a session of the owner instead; the run ends it.

  Exit codes: 0 all checks passed, 1 a check failed or did not run, 2 the suite could not
  run, or another run is active at the sandbox, 3 the run left something behind.
`;
export const OPTIONS = {
  help: { type: "boolean", short: "h" },
  sandbox: { type: "string" },
  "base-url": { type: "string" },
  only: { type: "string", multiple: true },
  json: { type: "boolean" },
  "json-file": { type: "string" },
  junit: { type: "string" },
  html: { type: "string" },
  ...DEVICE_OPTIONS,
} as const;
const STOPS = ["SIGTERM", "SIGINT", "SIGHUP", "disconnect"] as const;
export type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];

/** Does one run and prints a line for each result. Throws when the run cannot begin. */
export async function runOnce(values: Options): Promise<RunResult | DeviceRunResult> {
  // The reader of the output may end early: the run still cleans up.
  process.stdout.on("error", () => undefined);
  const sandboxId = idOf(values.sandbox, "--sandbox");
  if (values.device === undefined) refuseDeviceOptions(values);
  const { baseUrl, certificateFile, sandbox } = findService(values["base-url"], process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const { SESSION_TOKEN: session } = process.env;
  const owner = session ? { token: session } : (logInOf("owner", process.env) ?? sandbox?.owner);
  if (owner === undefined) throw new CommandError("Set OWNER_EMAIL and OWNER_PASSWORD, the log-in of the owner.");
  for (const path of [values["json-file"], values.junit, values.html]) {
    if (path === undefined) continue;
    checkFolder(dirname(path));
    // Empties the file: this run may end without a result, and an old result must not be taken for its result.
    writeText(path, "");
  }
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  for (const name of STOPS) process.once(name, stop);
  try {
    return await runUntil(stopping.signal, values, { baseUrl, sandboxId, owner });
  } finally {
    // A `disconnect` listener keeps the channel to the parent open, and the channel keeps this process alive.
    for (const name of STOPS) process.off(name, stop);
  }
}

async function runUntil(
  signal: AbortSignal,
  values: Options,
  { baseUrl, sandboxId, owner }: Pick<RunOptions, "baseUrl" | "sandboxId" | "owner">,
): Promise<RunResult | DeviceRunResult> {
  const left = new LeftRuns(process.env, sandboxId, baseUrl);
  const options: RunOptions = {
    baseUrl,
    sandboxId,
    owner,
    signal,
    ...(values.only === undefined ? {} : { only: values.only }),
    onLoggedIn: (token) => left.remember(token),
    ...("token" in owner ? {} : { endLeft: () => left.end() }),
    ...(values.json === true
      ? {}
      : { onWait: () => print("The station is leased; waiting until the lease is renewed or ends.") }),
    onResult: (each) => print(values.json === true ? JSON.stringify({ check: checkJson(each) }) : lineOf(each)),
  };
  try {
    const result = values.device === undefined ? await runSuite(options) : await runAtDevice(options, values);
    if (result.leftBehind.length === 0) left.forget();
    return result;
  } catch (error) {
    // A run that could not begin has ended its session. After `LeftBehind` the next run ends the session.
    if (!(error instanceof LeftBehind)) left.forget();
    throw error;
  }
}

/** Prints the result, and writes the files that the options name. */
export function writeResult(result: RunResult | DeviceRunResult, values: Options): void {
  const { "json-file": json, junit, html } = values;
  print(values.json === true ? JSON.stringify({ result: resultJson(result) }) : `\n${summaryOf(result)}`);
  if (json !== undefined) writeText(json, jsonOf(result));
  if (junit !== undefined) writeText(junit, junitOf(result));
  if (html !== undefined) writeText(html, htmlOf(result));
}

export function exitCodeOf({ results, leftBehind }: RunResult): number {
  if (leftBehind.length > 0) return 3;
  return results.length > 0 && results.every(({ outcome }) => outcome === "passed") ? 0 : 1;
}

/** Sets the exit code. */
export async function runConformance(args: readonly string[]): Promise<void> {
  try {
    const { values, positionals } = parseCommandLine(args, OPTIONS);
    if (positionals[0] !== undefined)
      throw new UsageError(`There is one argument too many, "${positionals[0]}"; see --help.`);
    if (values.help === true) return void process.stdout.write(CONFORMANCE_HELP);
    const result = await runOnce(values);
    writeResult(result, values);
    process.exitCode = exitCodeOf(result);
  } catch (error) {
    endWithoutResult(error);
  }
}

/** Prints why there is no result, and sets the exit code. */
export function endWithoutResult(error: unknown): void {
  const couldNotRun = error instanceof CannotRun || error instanceof NoAnswer;
  endWithError(couldNotRun ? new CommandError(error.message) : error);
  process.exitCode = error instanceof LeftBehind ? 3 : 2;
}
