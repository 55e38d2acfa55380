/** The alert rules, by the distribution's promtool, and the dashboards. `test/gateway/metrics.test.ts` has live metrics. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type DebianProgram, debianPrograms } from "../support/debian-programs.ts";
import { operationsGuide } from "../support/guide.ts";
import { metricNamesIn, publishedExpressions } from "../support/promql.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "deploy", "production", "prometheus");
/** The package may have to be fetched first. */
const FETCH_MS = 200_000;

interface Rule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string };
}
interface Job {
  readonly job_name: string;
  readonly relabel_configs?: readonly { readonly target_label?: string; readonly replacement?: string }[];
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

  it("promtool: it accepts the rules, and the sample of Prometheus' configuration", () => {
    expect(promtool("check", "rules", "alerts.yaml")).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(promtool("check", "config", "prometheus.yml")).toContain("SUCCESS");
  });

  it("the samples of Prometheus' jobs: each gives its processes the label that the rules name", () => {
    const jobs = ["prometheus.yml", "kubernetes.yml"].flatMap((file) => {
      const sample = parse(readFileSync(join(FOLDER, file), "utf8")) as { readonly scrape_configs: readonly Job[] };
      return sample.scrape_configs;
    });
    const labels = jobs.map(
      ({ job_name: name, relabel_configs: changes = [] }) =>
        changes.find(({ target_label: label }) => label === "job")?.replacement ?? name,
    );
    expect(labels).toEqual(["device-payments", "device-payments", "device-payments"]);
  });

  it("promtool's unit tests: an installation without faults raises no alert, and each fault raises its alert", () => {
    expect(promtool("test", "rules", "alerts.test.yaml")).toContain("SUCCESS");
    const tests = readFileSync(join(FOLDER, "alerts.test.yaml"), "utf8");
    for (const { alert } of rules) expect(tests).toContain(`- name: ${alert}\n`);
  });

  it("the operators' guide: it says for each alert what to do", () => {
    const section = operationsGuide.slice(operationsGuide.indexOf("## Alerts"));
    const rows = section.slice(0, section.indexOf("\n## ", 1)).match(/^\| `.*$/gm) ?? [];
    const named = rules.map(
      ({ alert, labels }) => `| \`${alert.replace("DevicePayments", "")}\` | ${labels.severity} |`,
    );
    expect(rows.map((row) => row.split(" | ").slice(0, 2).join(" | ") + " |")).toEqual(named);
  });

  it("each rule: it has a severity, names the fault, and what to do", () => {
    expect(rules.length).toBeGreaterThan(15);
    for (const { alert, labels, annotations } of rules) {
      expect(["page", "ticket"], alert).toContain(labels.severity);
      expect(annotations.summary, alert).toMatch(/\S/);
      expect(annotations.action, alert).toMatch(/\S/);
    }
  });
});

const GRAFANA = join(import.meta.dirname, "..", "..", "deploy", "production", "grafana");

describe("dashboards", () => {
  it("each expression of dashboards and alert rules: it parses, and names a metric of this product or `up`", () => {
    const expressions = publishedExpressions();
    expect(expressions.length).toBeGreaterThan(60);
    for (const { where, expression } of expressions) {
      const names = metricNamesIn(expression);
      expect(names.length, where).toBeGreaterThan(0);
      for (const name of names) expect(name, where).toMatch(/^(device_payments_\w+|up)$/);
    }
    expect(() => metricNamesIn("sum(rate(x[1m])")).toThrow("cannot be parsed");
  });

  it.each(readdirSync(GRAFANA))(
    "%s: ids are unique, panels do not overlap, and the data source is a variable",
    (file) => {
      const dashboard = JSON.parse(readFileSync(join(GRAFANA, file), "utf8")) as {
        readonly uid: string;
        readonly templating: { readonly list: readonly { readonly name: string }[] };
        readonly panels: readonly {
          readonly id: number;
          readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
          readonly datasource?: { readonly uid: string };
        }[];
      };
      const { panels } = dashboard;
      expect(dashboard.uid).toMatch(/^device-payments-/);
      expect(dashboard.templating.list.map(({ name }) => name)).toEqual(["datasource"]);
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
      );
      expect(new Set(cells).size).toBe(cells.length);
      for (const { datasource } of panels.filter((panel) => panel.datasource !== undefined)) {
        expect(datasource?.uid).toBe(`\${datasource}`);
      }
    },
  );
});
