/**
 * Chromium 71, the oldest one that the pages support (`BROWSERS` of `gateway/web/build.ts`). playwright-core needs a newer one.
 * So this file drives it by its debugging protocol. The package `chrome-aws-lambda` has the program.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { expect } from "vitest";
import { debianPrograms } from "../support/debian-programs.ts";
import { runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const NAME = "chromium-71.0.3563.0";
const CHECKOUT = join(import.meta.dirname, "..", "..");
const PROGRAM = 0o755;
/** The released Chromium 71 has `queueMicrotask`, but this build is from a month before. */
const RELEASED = "self.queueMicrotask = (task) => void Promise.resolve().then(task);";
const WHOLE = "body";
/** The pages read some facts only every ten seconds, and the machine may be slow. */
const SHOWN = { timeout: 30_000, interval: 100 };

export interface OldPage {
  /** Exceptions that no code has caught, and what the page or the browser has reported as an error. */
  readonly faults: readonly string[];
  open(url: string): Promise<void>;
  /**
   * This and the functions below act in the page, or in the part or the frame that the selector `within` names. They wait for
   * what they need, for example until a button no longer moves.
   */
  click(name: RegExp, within?: string): Promise<void>;
  fill(label: string, value: string, within?: string): Promise<void>;
  /** Waits until an element that fits the selector is shown, and resolves to its text. */
  shows(selector: string, text?: RegExp, within?: string): Promise<string>;
  /** The computed value of a property of an element's pseudo-element. */
  style(selector: string, pseudo: string, property: string): Promise<unknown>;
}

export interface OldBrowser {
  newPage(): Promise<OldPage>;
  close(): Promise<void>;
}

export async function startOldestBrowser(): Promise<OldBrowser> {
  const folder = temporaryFolder("oldest-chromium");
  // Newer Chromium needs the same libraries, and they are fetched with it where the machine lacks them.
  const { libraries } = (await debianPrograms("chromium-headless-shell"))["chromium-headless-shell"];
  const env = libraries === "" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  const options = [
    "--headless",
    "--disable-gpu",
    "--no-sandbox",
    "--no-zygote",
    "--lang=en-GB",
    "--window-size=1280,900",
  ];
  const browser = runProgram(
    unpacked(),
    [...options, "--remote-debugging-port=0", `--user-data-dir=${folder.path}`, "about:blank"],
    { env, detached: true },
  );
  const [, address = ""] = await browser.waitFor(/DevTools listening on (ws:\S+)/);
  const { host } = new URL(address);
  const connections: WebSocket[] = [];
  return {
    async newPage() {
      const target = (await (await fetch(`http://${host}/json/new`)).json()) as { webSocketDebuggerUrl: string };
      const connection = new WebSocket(target.webSocketDebuggerUrl);
      await new Promise((onOpen) => connection.addEventListener("open", onOpen, { once: true }));
      connections.push(connection);
      return await openPage(connection);
    },
    async close() {
      for (const connection of connections) connection.close();
      // Ends the whole group of processes: the browser alone would end without its other processes.
      process.kill(-browser.pid, "SIGKILL");
      await browser.ended;
      folder.remove();
    },
  };
}

/** The package has the program compressed. Several test files may unpack it at once. */
function unpacked(): string {
  const cache = resolve(process.env["DEVICE_PAYMENTS_CACHE_DIR"] || join(CHECKOUT, ".cache"));
  const path = join(cache, NAME);
  if (existsSync(path)) return path;
  const entry = createRequire(import.meta.url).resolve("chrome-aws-lambda");
  const program = brotliDecompressSync(readFileSync(join(dirname(entry), "..", "bin", `${NAME}.br`)));
  mkdirSync(cache, { recursive: true });
  const whole = `${path}.${process.pid}`;
  writeFileSync(whole, program, { mode: PROGRAM });
  renameSync(whole, path);
  return path;
}

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

async function openPage(connection: WebSocket): Promise<OldPage> {
  const faults: string[] = [];
  const waiting = new Map<number, (answer: Answer) => void>();
  connection.addEventListener("message", ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer);
    const fault = faultOf(answer);
    if (fault !== undefined) faults.push(fault);
  });
  let calls = 0;
  const call = async (method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> => {
    calls += 1;
    const id = calls;
    const answered = new Promise<Answer>((onAnswer) => waiting.set(id, onAnswer));
    connection.send(JSON.stringify({ id, method, params }));
    const { result = {}, error } = await answered;
    waiting.delete(id);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  for (const domain of ["Page", "Runtime", "Log"]) await call(`${domain}.enable`);
  await call("Page.addScriptToEvaluateOnNewDocument", { source: RELEASED });

  const evaluate = async (expression: string): Promise<unknown> => {
    const { result } = await call("Runtime.evaluate", { expression, returnByValue: true });
    return (result as { readonly value?: unknown } | undefined)?.value;
  };
  /** Evaluates a function of a part of the page until it returns something. */
  const until = async (what: string, within: string, body: string): Promise<unknown> => {
    const place = `(function (part) { return part && part.contentDocument || part; })(document.querySelector(${JSON.stringify(within)}))`;
    const found: unknown[] = [];
    const attempt = async (): Promise<boolean> => {
      const value = await evaluate(`(function (place) { if (!place) return false; ${body} })(${place})`);
      if (value !== undefined && value !== null && value !== false) found.push(value);
      return found.length > 0;
    };
    await expect
      .poll(attempt, { ...SHOWN, message: what })
      .toBe(true)
      .catch(async (cause: unknown) => {
        const text = String(await evaluate("document.body.innerText"));
        throw new Error(`The page does not show ${what}. Its text: ${text}\nIts faults: ${faults.join("\n")}`, {
          cause,
        });
      });
    return found[0];
  };
  return {
    faults,
    open: async (url) => {
      await call("Page.navigate", { url });
    },
    click: async (name, within = WHOLE) => {
      await until(
        `a button ${String(name)}`,
        within,
        `const found = Array.from(place.querySelectorAll("button, a")).find(function (each) {
           return ${String(name)}.test((each.getAttribute("aria-label") || each.textContent).trim())
             && !each.disabled && each.getAttribute("aria-disabled") !== "true" && each.offsetParent !== null;
         });
         if (found) found.click();
         return Boolean(found);`,
      );
    },
    fill: async (label, value, within = WHOLE) => {
      await until(
        `a field ${label}`,
        within,
        `const found = Array.from(place.querySelectorAll("label")).find(function (each) {
           return each.textContent.trim() === ${JSON.stringify(label)} && each.control;
         });
         if (!found) return false;
         const field = found.control;
         Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, ${JSON.stringify(value)});
         field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
         return true;`,
      );
    },
    shows: async (selector, text = /(?:)/, within = WHOLE) =>
      String(
        await until(
          `${selector} ${String(text)}`,
          within,
          `const found = Array.from(place.querySelectorAll(${JSON.stringify(selector)})).find(function (each) {
             return ${String(text)}.test(each.textContent) && each.getClientRects().length > 0;
           });
           return found && (found.textContent || " ");`,
        ),
      ),
    style: (selector, pseudo, property) =>
      evaluate(
        `getComputedStyle(document.querySelector(${JSON.stringify(selector)}), "${pseudo}").getPropertyValue("${property}")`,
      ),
  };
}

function faultOf({ method, params = {} }: Answer): string | undefined {
  if (method === "Runtime.exceptionThrown") return JSON.stringify(params["exceptionDetails"]);
  if (method === "Runtime.consoleAPICalled" && params["type"] === "error") return JSON.stringify(params["args"]);
  if (method !== "Log.entryAdded") return undefined;
  const { level, source, text, url } = params["entry"] as Readonly<Record<"level" | "source" | "text" | "url", string>>;
  // An answer such as 401 is no fault.
  return level === "error" && source !== "network" ? `${text} ${url}` : undefined;
}
