/** The reports of a run. If the run did not pass, no report may say that it did, whatever a device or a service has sent. */
import { execFileSync } from "node:child_process";
import { SaxesParser } from "saxes";
import { describe, expect, test } from "vitest";
import type { CheckResult } from "../../clients/conformance/check.ts";
import { expectStatus, Mismatch } from "../../clients/conformance/expect.ts";
import { curlLine } from "../../clients/conformance/http.ts";
import { htmlOf, junitOf, lineOf } from "../../clients/conformance/reports.ts";
import type { RunResult } from "../../clients/conformance/suite.ts";
import { SUITE } from "../../clients/conformance/suite-version.ts";

const HOSTILE = `</failure>]]><script>alert("1")</script>&amp;'"\u0000\u0008\u001B[2J\uFFFE\uD800`;
const check = (more: Partial<CheckResult>): CheckResult => ({
  id: "a.check",
  capability: "presence",
  quotes: ["A sentence."],
  outcome: "passed",
  durationMs: 1,
  ...more,
});
const failed = check({
  id: "failed",
  outcome: "failed",
  quotes: [HOSTILE],
  failure: { what: HOSTILE, expected: HOSTILE, actual: HOSTILE, curl: HOSTILE },
});
const notRun = check({ id: "not.run", outcome: "not_run", because: HOSTILE });
const runOf = (results: readonly CheckResult[], leftBehind: readonly string[] = []): RunResult => ({
  results,
  leftBehind,
  durationMs: 1_234,
});

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  text: string;
}

/** The elements of the document, which must be well-formed. */
function elementsOf(xml: string): readonly Element[] {
  const elements: Element[] = [];
  const parser = new SaxesParser();
  parser.on("error", (error) => {
    throw error;
  });
  parser.on("opentag", ({ name, attributes }) => elements.push({ name, attributes, text: "" }));
  parser.on("text", (text) => {
    const [last] = elements.slice(-1);
    if (last !== undefined) last.text += text;
  });
  // The text as a file would have it.
  parser.write(Buffer.from(xml).toString()).close();
  return elements;
}
const named = (elements: readonly Element[], name: string) => elements.filter((each) => each.name === name);

test("a success that a check does not expect: without its body, which may contain a password", () => {
  const answerOf = (status: number) => ({ status, headers: new Headers(), text: '{"password":"x"}', body: {} });
  const actualOf = (status: number): unknown => {
    try {
      return expectStatus(answerOf(status), 401);
    } catch (error) {
      return error instanceof Mismatch ? error.actual : error;
    }
  };
  expect([202, 400].map(actualOf)).toEqual(['"202"', String.raw`"400 {\"password\":\"x\"}"`]);
});

describe("the report for JUnit", () => {
  test("a failed check and one that did not run: a failure and an error, which no reader counts as a pass", () => {
    const elements = elementsOf(junitOf(runOf([check({}), failed, notRun])));
    const [suite] = elements;
    expect(suite?.attributes).toMatchObject({ tests: "4", failures: "1", errors: "1" });
    expect(named(elements, "testcase").map(({ attributes }) => attributes["name"])).toEqual([
      "a.check",
      "failed",
      "not.run",
      "nothing is left behind",
    ]);
    const visible = HOSTILE.replaceAll(/[\p{Cc}\uFFFE]/gu, "").replaceAll("\uD800", "\uFFFD");
    const [failure] = named(elements, "failure");
    expect(failure?.attributes["message"]).toBe(visible);
    expect(failure?.text.trim()).toBe(`expected: ${visible}\nactual: ${visible}\n${visible}`);
    expect(named(elements, "error").map(({ attributes }) => attributes["message"])).toEqual([`not run: ${visible}`]);
    expect(named(elements, "skipped")).toEqual([]);
  });

  test("something left behind: a failure, also when each check has passed", () => {
    const elements = elementsOf(junitOf(runOf([check({})], ["the station is leased", HOSTILE])));
    expect(elements[0]?.attributes).toMatchObject({ tests: "2", failures: "1", errors: "0" });
    expect(named(elements, "failure")[0]?.text).toContain("the station is leased");
  });
});

test("the HTML report: shows sent content as text, never as mark-up", () => {
  const html = htmlOf(runOf([failed, notRun], [HOSTILE]));
  expect(html).not.toContain("<script");
  expect(html.match(/<tr class="(?:failed|not_run)">/g)).toHaveLength(2);
  expect(html).not.toMatch(/(?![\n])\p{Cc}/u);
});

test("the HTML report of a device: names the software, the times, the suite and the result of each capability", () => {
  const html = htmlOf({
    ...runOf([failed]),
    kind: "display",
    deviceId: 31,
    stationId: 12,
    startedAt: new Date("2026-11-27T09:00:00Z"),
    endedAt: new Date("2026-11-27T09:02:00Z"),
    isWhole: true,
    capabilities: [{ capability: "display_total", outcome: "failed" }],
    software: { provider: "Acme <b>", model: null, version: "4.2.0", sha256: "ab".repeat(32) },
  });
  for (const part of [
    "Acme &lt;b&gt; 4.2.0",
    "ab".repeat(32),
    "2026-11-27T09:00:00.000Z",
    SUITE.version,
    SUITE.contractSha256(),
    "display_total: failed",
  ])
    expect(html).toContain(part);
});

describe("the curl line of a failed check", () => {
  const exchange = {
    method: "POST",
    url: "http://127.0.0.1:8480/api/payments/v1/devices/x?[1-9]{a,b}",
    party: "companion",
    hasToken: true,
    answer: undefined,
  };
  /** The arguments that a shell reads from a line. */
  const argumentsOf = (line: string): string[] =>
    execFileSync("bash", ["--norc", "-c", `curl() { printf '%s\\0' "$@"; }; ${line}`], {
      env: { COMPANION_TOKEN: "t" },
    })
      .toString()
      .split("\0")
      .slice(0, -1);

  test.each([
    ["a body of several lines", '{\n  "intent_id": 1,\r\n  "a": "it\'s \\\\"\n}\t'],
    ["escape sequences and other control characters", "\u001B[2J\u0007\u0085b"],
    ["a body that curl would read from a file", "@/etc/passwd"],
    ["a shell's own characters", "'; $(echo x) `echo y` \"$HOME\" '"],
  ])("%s: one line, which sends the same again", (_, body) => {
    const line = curlLine({ ...exchange, request: { headers: { "content-type": "application/json" }, body } });
    expect(line).not.toMatch(/\p{Cc}/u);
    const words = argumentsOf(line);
    // `--data` and `--data-binary` read a file when the text begins with "@".
    expect(words[words.indexOf("--data-raw") + 1]).toBe(body);
    expect(words).toContain("Authorization: Bearer t");
    // Without this option, curl reads brackets as a list of addresses.
    expect(words).toContain("--globoff");
    expect(words.at(-1)).toBe(exchange.url);
  });

  test("a failed check: five printed lines, for any content that was sent", () => {
    const curl = curlLine({ ...exchange, request: { body: "a\nb" } });
    const failure = { what: "status", expected: "200", actual: '"400"', curl };
    expect(lineOf({ ...failed, failure }).split("\n")).toHaveLength(5);
  });
});
