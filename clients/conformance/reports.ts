/** The reports of a run for people and for programs: lines, JSON, JUnit, and one page of HTML. */
import type { CheckResult } from "./check.ts";
import type { DeviceRunResult } from "./devices/device-suite.ts";
import type { RunResult } from "./suite.ts";
import { SUITE } from "./suite-version.ts";

const MARKS = { passed: "✓", failed: "✗", not_run: "–" } as const;

/** The line of a finished check. For a failed one it adds the expected and the actual value, and how to repeat it. */
export function lineOf({ outcome, id, failure, because, durationMs }: CheckResult): string {
  const line = `${MARKS[outcome]} ${id}  ${durationMs} ms`;
  if (failure !== undefined) {
    const { what, expected, actual, curl } = failure;
    return `${line}\n    ${what}\n    expected: ${expected}\n    actual:   ${actual}\n    ${curl}`;
  }
  return because === undefined ? line : `${line}\n    not run: ${because}`;
}

export function summaryOf({ results, leftBehind, durationMs }: RunResult): string {
  const count = (outcome: CheckResult["outcome"]): number => results.filter((each) => each.outcome === outcome).length;
  const seconds = (durationMs / 1_000).toFixed(1);
  const lines = [`${count("passed")} passed, ${count("failed")} failed, ${count("not_run")} not run, in ${seconds} s.`];
  for (const left of leftBehind) lines.push(`Left behind: ${left}`);
  if (leftBehind.length === 0) lines.push("Nothing is left behind.");
  return lines.join("\n");
}

/** The facts for a certificate, if the run has checked a device. */
const deviceOf = (run: RunResult | DeviceRunResult): object =>
  "kind" in run
    ? {
        started_at: run.startedAt.toISOString(),
        ended_at: run.endedAt.toISOString(),
        station_id: run.stationId,
        device: { device_id: run.deviceId, kind: run.kind, ...run.software },
        is_whole: run.isWhole,
        capabilities: run.capabilities,
      }
    : {};

export const checkJson = ({ durationMs, quotes, ...rest }: CheckResult): object => ({
  ...rest,
  sentences: quotes,
  duration_ms: durationMs,
});

/** The result without the checks. */
export const resultJson = (run: RunResult | DeviceRunResult): object => ({
  suite_version: SUITE.version,
  suite_sha256: SUITE.sha256(),
  contract_sha256: SUITE.contractSha256(),
  ...deviceOf(run),
  duration_ms: Math.round(run.durationMs),
  left_behind: run.leftBehind,
});

export const jsonOf = (run: RunResult | DeviceRunResult): string =>
  JSON.stringify({ ...resultJson(run), checks: run.results.map(checkJson) }, null, 2);

const escaped = (text: string): string =>
  text
    // XML 1.0 does not allow these characters in any form.
    .replaceAll(/(?![\t\n\r])\p{Cc}|[\ufffe\uffff]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/**
 * A check that did not run is an error, because JUnit readers treat a skipped test as good. Things left behind are a separate
 * test case: without it, a run with exit code 3 would look as if it had passed.
 */
export function junitOf({ results, leftBehind, durationMs }: RunResult): string {
  const failed = results.filter(({ outcome }) => outcome === "failed").length + (leftBehind.length > 0 ? 1 : 0);
  const notRun = results.filter(({ outcome }) => outcome === "not_run").length;
  const cases = results.map(({ id, capability, durationMs: ms, failure, because }) => {
    const open = `  <testcase classname="${escaped(capability)}" name="${escaped(id)}" time="${ms / 1_000}"`;
    if (failure !== undefined) {
      const text = `expected: ${failure.expected}\nactual: ${failure.actual}\n${failure.curl}`;
      return `${open}>\n    <failure message="${escaped(failure.what)}">${escaped(text)}</failure>\n  </testcase>`;
    }
    return because === undefined
      ? `${open}/>`
      : `${open}>\n    <error message="${escaped(`not run: ${because}`)}"/>\n  </testcase>`;
  });
  const cleanUp = `  <testcase classname="clean_up" name="nothing is left behind"`;
  cases.push(
    leftBehind.length === 0
      ? `${cleanUp}/>`
      : `${cleanUp}>\n    <failure message="left behind">${escaped(leftBehind.join("\n"))}</failure>\n  </testcase>`,
  );
  const head = `<testsuite name="conformance" tests="${cases.length}" failures="${failed}" errors="${notRun}" time="${durationMs / 1_000}">`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n${head}\n${cases.join("\n")}\n</testsuite>\n`;
}

/** The facts about the run, for a person who receives only the page. */
function factsOf(run: RunResult | DeviceRunResult): readonly string[] {
  const suite = `Suite ${SUITE.version}, contract ${SUITE.contractSha256()}`;
  if (!("kind" in run)) return [suite];
  const { provider, model, version, sha256 } = run.software;
  const software = [provider, model, version].filter((part) => part !== null).join(" ") || "software without a name";
  return [
    `${run.kind} ${run.deviceId}: ${software}${sha256 === null ? "" : `, build ${sha256}`}`,
    `${run.startedAt.toISOString()} to ${run.endedAt.toISOString()}`,
    suite,
    ...run.capabilities.map(({ capability, outcome }) => `${capability}: ${outcome.replace("_", " ")}`),
  ];
}

/** One HTML file without scripts and without external resources. */
export function htmlOf(run: RunResult | DeviceRunResult): string {
  const rows = run.results.map(({ id, capability, outcome, quotes, failure, because }) => {
    const sentences = quotes.map((quote) => `<q>${escaped(quote)}</q>`).join("<br>");
    const more =
      failure === undefined
        ? escaped(because ?? "")
        : `${escaped(failure.what)}<br>expected: <code>${escaped(failure.expected)}</code><br>actual: <code>${escaped(failure.actual)}</code><br><code>${escaped(failure.curl)}</code>`;
    return `<tr class="${outcome}"><td>${MARKS[outcome]}</td><td>${escaped(id)}</td><td>${escaped(capability)}</td><td>${sentences}</td><td>${more}</td></tr>`;
  });
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Conformance</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}td{border-top:1px solid #ccc;padding:.4rem .6rem;vertical-align:top}.failed{background:#fde8e8}.not_run{background:#fff6dd}code{word-break:break-all}</style>
<h1>Conformance</h1>
<p>${escaped(summaryOf(run)).replaceAll("\n", "<br>")}</p>
<p>${factsOf(run).map(escaped).join("<br>")}</p>
<table><tbody>
${rows.join("\n")}
</tbody></table>
</html>
`;
}
