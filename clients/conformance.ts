/**
 * Checks that a running service keeps the contract, over HTTP only, as a cashier, two devices and the owner.
 *
 *   npm run conformance -- --help
 */
import { writeFileSync } from "node:fs";
import { CommandError, dataFile, endWithError, findService, parseCommandLine, UsageError } from "./command.ts";
import { NoAnswer } from "./conformance/http.ts";
import { forgetSession, rememberSession } from "./conformance/last-session.ts";
import { htmlOf, jsonOf, junitOf, lineOf, summaryOf } from "./conformance/reports.ts";
import { type RunResult, runSuite } from "./conformance/suite.ts";
import { CannotRun } from "./conformance/world.ts";
import { trustCertificate } from "./device/transport.ts";
import { idOf } from "./person.ts";

const HELP = `Checks that a running service keeps the contract, over HTTP only.

  npm run conformance -- --sandbox ID
      The sandbox is reset before and after: use one that nothing else uses
      (npm run cli -- sandbox seed makes one)
      --base-url URL      BASE_URL, or what \`npm start\` wrote to sandbox.json of DATA_DIR
      --only CHECK        only this check, with those that it builds on; may be repeated
      --json FILE, --junit FILE, --html FILE
                          writes the result there as well

  OWNER_EMAIL, OWNER_PASSWORD are the owner's log-in; left out, the sandbox's owner.

  Exit codes: 0 all checks passed, 1 a check failed or did not run, 2 the suite could not
  run, 3 the run left something behind.
`;
const OPTIONS = {
  help: { type: "boolean", short: "h" },
  sandbox: { type: "string" },
  "base-url": { type: "string" },
  only: { type: "string", multiple: true },
  json: { type: "string" },
  junit: { type: "string" },
  html: { type: "string" },
} as const;
type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];

async function run(values: Options): Promise<RunResult> {
  const sandboxId = idOf(values.sandbox, "--sandbox");
  const { baseUrl, certificateFile, sandbox } = findService(values["base-url"], process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const { OWNER_EMAIL: email, OWNER_PASSWORD: password } = process.env;
  const owner = email && password ? { email, password } : sandbox?.owner;
  if (owner === undefined) throw new CommandError("Set OWNER_EMAIL and OWNER_PASSWORD, the log-in of the owner.");
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stopping.abort());
  const file = dataFile(process.env, `conformance-${sandboxId}.json`);
  await forgetSession(file, baseUrl);
  const result = await runSuite({
    baseUrl,
    sandboxId,
    owner,
    signal: stopping.signal,
    ...(values.only === undefined ? {} : { only: values.only }),
    onSession: (token) => rememberSession(file, baseUrl, token),
    onResult: (each) => process.stdout.write(`${lineOf(each)}\n`),
  });
  if (result.leftBehind.length === 0) await forgetSession(file, baseUrl);
  return result;
}

function write(result: RunResult, { json, junit, html }: Options): void {
  process.stdout.write(`\n${summaryOf(result)}\n`);
  if (json !== undefined) writeFileSync(json, jsonOf(result));
  if (junit !== undefined) writeFileSync(junit, junitOf(result));
  if (html !== undefined) writeFileSync(html, htmlOf(result));
}

function exitCodeOf({ results, leftBehind }: RunResult): number {
  if (leftBehind.length > 0) return 3;
  return results.length > 0 && results.every(({ outcome }) => outcome === "passed") ? 0 : 1;
}

try {
  const { values, positionals } = parseCommandLine(process.argv.slice(2), OPTIONS);
  if (positionals[0] !== undefined)
    throw new UsageError(`There is one argument too many, "${positionals[0]}"; see --help.`);
  if (values.help === true) process.stdout.write(HELP);
  else {
    const result = await run(values);
    write(result, values);
    process.exitCode = exitCodeOf(result);
  }
} catch (error) {
  const couldNotRun = error instanceof CannotRun || error instanceof NoAnswer;
  endWithError(couldNotRun ? new CommandError(error.message) : error);
  process.exitCode = 2;
}
