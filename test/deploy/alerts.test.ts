/** The alert rules, checked and unit-tested by the distribution's promtool. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type DebianProgram, debianPrograms } from "../support/debian-programs.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "deploy", "production", "prometheus");
/** The package may have to be fetched first. */
const FETCH_MS = 200_000;

interface Rule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string };
}
const { groups } = parse(readFileSync(join(FOLDER, "alerts.yaml"), "utf8")) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

describe("alert rules", () => {
  let program: DebianProgram;
  beforeAll(async () => {
    program = (await debianPrograms("promtool")).promtool;
  }, FETCH_MS);
  const promtool = (...args: string[]): string =>
    execFileSync(program.path, args, {
      cwd: FOLDER,
      encoding: "utf8",
      env: { ...process.env, LD_LIBRARY_PATH: program.libraries },
    });

  it("promtool checks them, and the sample of Prometheus' configuration", () => {
    expect(promtool("check", "rules", "alerts.yaml")).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(promtool("check", "config", "prometheus.yml")).toContain("SUCCESS");
  });

  it("promtool's unit tests: a well installation raises none, each fault raises its own", () => {
    expect(promtool("test", "rules", "alerts.test.yaml")).toContain("SUCCESS");
    const tests = readFileSync(join(FOLDER, "alerts.test.yaml"), "utf8");
    for (const { alert } of rules) expect(tests).toContain(`- name: ${alert}\n`);
  });

  it("each rule: has a severity, says what is wrong, and what to do", () => {
    expect(rules.length).toBeGreaterThan(15);
    for (const { alert, labels, annotations } of rules) {
      expect(["page", "ticket"], alert).toContain(labels.severity);
      expect(annotations.summary, alert).toMatch(/\S/);
      expect(annotations.action, alert).toMatch(/\S/);
    }
  });
});
