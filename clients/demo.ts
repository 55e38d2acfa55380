/**
 * Runs a whole collection or another demo against the sandbox of `npm start`, and prints every request and answer.
 *
 *   npm run demo -- --help
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  absence,
  CommandError,
  dataFile,
  displayCredential,
  endWithError,
  parseCommandLine,
  readSandbox,
  UsageError,
} from "./command.ts";
import { DEMOS, type Demo, demoOf, fieldOf, type Step, UNTIL_TRIES } from "./demo/scenarios.ts";
import { trustCertificate } from "./http/transport.ts";
import { print } from "./person.ts";

const HELP = `Runs a demo against the running sandbox, and prints every request and answer.

  npm run demo                 a collection on the smart POS; the demo plays both devices
  npm run demo -- qr           a collection by QR, with the guest's page
  npm run demo -- issue        two payments that do not fit, and what an operator does
  npm run demo -- robot        a serving task for a fleet of robots

  --curl       runs nothing, and prints the same as lines to paste into a shell
  DATA_DIR     where \`npm start\` keeps sandbox.json; .data

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;

/** A shell function that finds a field of an answer. */
const FIELD = String.raw`field() { grep -o '"'"$1"'":"\{0,1\}[^",}]*' | head -n 1 | sed 's/^"[^"]*":"\{0,1\}//'; }`;
/** A kept value, `${NAME}` or `$NAME`. A brace after the second form belongs to the JSON around it. */
const KEPT = /\$(?:\{([A-Z]+)\}|([A-Z]+))/g;
const REQUEST_MS = 15_000;
const BETWEEN_MS = 1_000;

async function main(): Promise<void> {
  const { demo: name, curl, help } = readArguments();
  if (help) return void process.stdout.write(HELP);
  const path = dataFile(process.env, "sandbox.json");
  const sandbox = readSandbox(path);
  if (sandbox === undefined)
    throw new CommandError(`No sandbox was found (${absence(path)}); start it with \`npm start\`, as the same user.`);
  const demo = demoOf(name, sandbox, displayCredential(path));
  const { baseUrl, certificate } = sandbox;
  if (curl) {
    for (const line of curlLines(demo, baseUrl, certificate?.publicKeyPin)) print(line);
    return;
  }
  if (certificate !== null) trustCertificate(certificate.file);
  await runDemo(demo, baseUrl);
}

function readArguments() {
  const options = { help: { type: "boolean", short: "h" }, curl: { type: "boolean" } } as const;
  const { values, positionals } = parseCommandLine(process.argv.slice(2), options);
  const [name = "collection"] = positionals;
  const demo = DEMOS.find((known) => known === name);
  if (demo === undefined || positionals.length > 1)
    throw new UsageError(`There is no demo "${positionals.join(" ")}"; the demos are ${DEMOS.join(", ")}; see --help.`);
  return { demo, curl: values.curl === true, help: values.help === true };
}

/** Throws `CommandError` for the first step that is refused, is not answered, or does not receive the expected answer. */
async function runDemo(demo: Demo, baseUrl: string): Promise<void> {
  const kept = new Map(Object.entries(demo.initial));
  print(demo.title);
  for (const step of demo.steps) {
    if (step.onlyWith !== undefined && (kept.get(step.onlyWith) ?? "") === "") continue;
    if (step.note !== undefined) print(`\n# ${step.note}`);
    const answer = await answerOf(step, kept, baseUrl);
    for (const [name, field] of Object.entries(step.keep ?? {})) kept.set(name, fieldOf(answer, field));
  }
}

async function answerOf(step: Step, kept: ReadonlyMap<string, string>, baseUrl: string): Promise<string> {
  const url = new URL(filled(step.path, kept), baseUrl);
  const body = step.form ?? (step.body === undefined ? undefined : bodyText(step.body, kept));
  print(`${step.method} ${url.origin === new URL(baseUrl).origin ? url.pathname + url.search : url.href}`);
  if (body !== undefined) print(`  ${body}`);
  for (let tries = 1; ; tries += 1) {
    const { status, text } = await send(step, url, { body, credential: step.as && kept.get(step.as) });
    const isDone = step.until === undefined || text.includes(step.until);
    if (isDone || tries === UNTIL_TRIES || status >= 400) {
      print(`${status} ${text.trim()}`);
      checkAnswer(step, status, text);
      if (!isDone) throw new CommandError(`The answer did not get ${step.until} within ${UNTIL_TRIES} seconds.`);
      return text;
    }
    await delay(BETWEEN_MS);
  }
}

function checkAnswer(step: Step, status: number, text: string): void {
  if (step.onlyWith !== undefined) return;
  const code = status < 400 ? undefined : fieldOf(text, "code");
  if (code === step.refusedWith) return;
  if (code === undefined)
    throw new CommandError(`The service accepted what it has to refuse with ${step.refusedWith}.`);
  throw new CommandError(`The service refused a step of the demo (${code || status}); its answer is above.`);
}

async function send(
  step: Step,
  url: URL,
  { body, credential }: { readonly body: string | undefined; readonly credential: string | undefined },
): Promise<{ readonly status: number; readonly text: string }> {
  const headers = new Headers();
  if (credential !== undefined) headers.set("authorization", `Bearer ${credential}`);
  if (body !== undefined)
    headers.set("content-type", step.form === undefined ? "application/json" : "application/x-www-form-urlencoded");
  const init = { method: step.method, headers, signal: AbortSignal.timeout(REQUEST_MS) };
  try {
    const response = await fetch(url, body === undefined ? init : { ...init, body });
    return { status: response.status, text: await response.text() };
  } catch {
    throw new CommandError(`The service at ${url.origin} does not answer; start it with \`npm start\`.`);
  }
}

const filled = (text: string, kept: ReadonlyMap<string, string>): string =>
  text.replaceAll(KEPT, (_, braced?: string, plain?: string) => kept.get(braced ?? plain ?? "") ?? "");

/** The body as JSON: `"$NAME"` becomes a number. */
function bodyText(body: object, kept: ReadonlyMap<string, string>): string {
  return filled(JSON.stringify(body).replaceAll(/"(\$[A-Z]+)"/g, "$1"), kept);
}

/**
 * A demo as lines to paste into a shell; they need curl, grep and sed. They run in a subshell, so that they leave nothing in
 * the person's shell. When the gateway itself uses TLS, `publicKeyPin` is its public key in curl's format: curl then accepts
 * no other certificate.
 */
function curlLines(demo: Demo, baseUrl: string, publicKeyPin: string | undefined): readonly string[] {
  return [
    "(",
    `BASE=${baseUrl}`,
    FIELD,
    ...Object.entries(demo.initial).map(([name, value]) => `${name}=${value}`),
    ...demo.steps.flatMap((step) => stepLines(step, publicKeyPin)),
    ")",
  ];
}

function stepLines(step: Step, publicKeyPin: string | undefined): string[] {
  const isElsewhere = step.path.startsWith("$");
  const curl = publicKeyPin === undefined || isElsewhere ? "curl" : `curl --insecure --pinnedpubkey ${publicKeyPin}`;
  const request = [
    `${curl} -sS`,
    step.method === "POST" && step.body === undefined && step.form === undefined ? "-X POST" : "",
    `"${isElsewhere ? "" : "$BASE"}${step.path}"`,
    step.as === undefined ? "" : `-H "authorization: Bearer $${step.as}"`,
    step.body === undefined ? "" : `-H 'content-type: application/json' -d '${quotedBody(step.body)}'`,
    step.form === undefined ? "" : `-d '${step.form}'`,
  ]
    .filter((word) => word !== "")
    .join(" ");
  return [...(step.note === undefined ? [] : [`# ${step.note}`]), lineOf(step, request)];
}

function lineOf(step: Step, request: string): string {
  if (step.onlyWith !== undefined) return `[ -z "$${step.onlyWith}" ] || { ${request}; echo; }`;
  const keep = Object.entries(step.keep ?? {}).map(([name, field]) => `${name}=$(echo "$ANSWER" | field ${field})`);
  if (step.until !== undefined) {
    const tries = Array.from({ length: UNTIL_TRIES }, (_, index) => index + 1).join(" ");
    const loop = `for second in ${tries}; do ANSWER=$(${request}); case $ANSWER in *'${step.until}'*) break;; esac; sleep 1; done`;
    return [loop, 'echo "$ANSWER"', ...keep].join("; ");
  }
  return keep.length === 0 ? `${request}; echo` : [`ANSWER=$(${request})`, 'echo "$ANSWER"', ...keep].join("; ");
}

/** Ends the single quotes around each kept value, so that the shell inserts it. `"$NAME"` becomes a number. */
function quotedBody(body: object): string {
  return JSON.stringify(body)
    .replaceAll("'", String.raw`'\''`)
    .replaceAll(/"(\$[A-Z]+)"/g, "$1")
    .replaceAll(KEPT, (_, braced?: string, plain?: string) => `'$${braced ?? plain ?? ""}'`);
}

await main().catch(endWithError);
