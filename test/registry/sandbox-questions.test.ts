/**
 * A sandbox station behaves exactly like others (contract, "Rules" 9). Code may check whether a station is one only to choose
 * its provider, to keep test money apart from real money, or to show it to people. When a file begins to check it, these tests
 * fail until the file has such a reason in the list.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const CHECKOUT = join(import.meta.dirname, "..", "..");
/** Matches a read of a station's sandbox flag, in TypeScript or in SQL. */
const QUESTION = /\b(?:s|station|stations|row|account|state)\.sandbox\b|\bsandbox = \$\{|\bisSandbox\b/;

const REASONS: Readonly<Record<string, string>> = {
  "services/audit/sql/payments.ts": "shows it to people, and lists only those or only the others",
  "services/providers/choices.ts": "chooses the provider: test or live",
  "services/providers/sql/choices.ts": "chooses the provider: test or live",
  "services/providers/sql/configs.ts": "chooses the provider: test or live",
  "services/providers/sql/issues.ts": "keeps test money and real money apart when a person attributes it",
  "services/providers/sql/payable-orders.ts": "keeps test money and real money apart when a person attributes it",
  "services/reconciliation/sql/day-report.ts": "keeps test money and real money apart in a report",
  "services/reconciliation/sql/periods.ts": "keeps test money and real money apart in a closing",
  "services/registry/organizations.ts": "shows it to the operator of the installation",
  "services/registry/stations.ts": "shows it to people",
  "services/registry/sql/stations.ts": "stores it once, when the station is made",
  "gateway/api/backoffice/stations.ts": "shows it to people",
  "gateway/api/cashier/stations.ts": "shows it to people",
};

const sources = globSync(["machines/**/*.ts", "services/**/*.ts", "gateway/**/*.ts"], { cwd: CHECKOUT });
const textOf = (file: string): string => readFileSync(join(CHECKOUT, file), "utf8");

it("a check of the sandbox flag: the pattern finds it in TypeScript and in SQL", () => {
  for (const text of [
    "if (station.sandbox)",
    "and s.sandbox = (c.mode = 'test')",
    "and sandbox = ${mode}",
    "isSandbox(",
  ])
    expect(text).toMatch(QUESTION);
  for (const text of ["sandbox.station", "const { sandbox } = fresh", 'kind: "sandbox"'])
    expect(text).not.toMatch(QUESTION);
});

it("the files with a check of the sandbox flag: exactly those with a reason", () => {
  expect(sources.length).toBeGreaterThan(300);
  const asking = sources.filter((file) => QUESTION.test(textOf(file)));
  expect(asking.toSorted()).toEqual(Object.keys(REASONS).toSorted());
});

it("files of stations, settlement, devices, throttles and kill switches: none reads the sandbox flag", () => {
  const [, description = ""] =
    /export interface StationDescription \{(.*?)\n\}/s.exec(textOf("machines/station/state.ts")) ?? [];
  expect(description).toContain("filialId");
  expect(description).not.toContain("sandbox");
  const blind = sources.filter((file) =>
    /^(?:machines|services\/(?:stations|settlement)|gateway\/(?:api\/device|read-model|http|live))\//.test(file),
  );
  expect(blind.length).toBeGreaterThan(60);
  const knowing = blind.filter((file) =>
    /\bsandbox\b/i.test(textOf(file).replaceAll(/"[^"]*"|`[^`]*`|\/\*\*.*?\*\//gs, "")),
  );
  expect(knowing).toEqual([]);
});
