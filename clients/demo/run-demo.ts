/** Runs a demo: sends each step's request, and prints it with its answer. */
import { setTimeout as delay } from "node:timers/promises";
import { type Demo, fieldOf, type Step, UNTIL_TRIES } from "./step.ts";

/** One sentence for a person; exit code 1. */
export class DemoError extends Error {}

const REQUEST_MS = 15_000;
const BETWEEN_MS = 1_000;

/** Throws `DemoError` for the first step that is refused, not answered, or does not get the answer that it waits for. */
export async function runDemo(demo: Demo, baseUrl: string, print: (line: string) => void): Promise<void> {
  const kept = new Map(Object.entries(demo.given));
  print(demo.title);
  for (const step of demo.steps) {
    if (step.note !== undefined) print(`\n# ${step.note}`);
    if (step.onlyWith !== undefined && (kept.get(step.onlyWith) ?? "") === "") continue;
    const answer = await answerOf(step, kept, { baseUrl, print });
    for (const [name, field] of Object.entries(step.keep ?? {})) kept.set(name, fieldOf(answer, field));
  }
}

async function answerOf(
  step: Step,
  kept: ReadonlyMap<string, string>,
  { baseUrl, print }: { readonly baseUrl: string; readonly print: (line: string) => void },
): Promise<string> {
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
      if (!isDone) throw new DemoError(`The answer did not get ${step.until} within ${UNTIL_TRIES} seconds.`);
      return text;
    }
    await delay(BETWEEN_MS);
  }
}

function checkAnswer(step: Step, status: number, text: string): void {
  if (step.onlyWith !== undefined) return;
  const code = status < 400 ? undefined : fieldOf(text, "code");
  if (code === step.refusedWith) return;
  if (code === undefined) throw new DemoError(`The service accepted what it has to refuse with ${step.refusedWith}.`);
  throw new DemoError(`The service refused a step of the demo (${code || status}); its answer is above.`);
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
    throw new DemoError(`The service at ${url.origin} does not answer; start it with \`npm start\`.`);
  }
}

const filled = (text: string, kept: ReadonlyMap<string, string>): string =>
  text.replaceAll(/\$\{?([A-Z]+)\}?/g, (_, name: string) => kept.get(name) ?? "");

/** `"$NAME"` alone is a number. */
function bodyText(body: object, kept: ReadonlyMap<string, string>): string {
  return filled(JSON.stringify(body).replaceAll(/"(\$[A-Z]+)"/g, "$1"), kept);
}
