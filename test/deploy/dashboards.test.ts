/** The dashboards: Grafana can read them, and Prometheus their expressions. `test/gateway/metrics.test.ts` has live metrics. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { metricNamesIn, publishedExpressions } from "../support/promql.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "deploy", "production", "grafana");

describe("dashboards", () => {
  it("each expression of them and of the alert rules: parses, and names a metric of this product or `up`", () => {
    const expressions = publishedExpressions();
    expect(expressions.length).toBeGreaterThan(60);
    for (const { where, expression } of expressions) {
      const names = metricNamesIn(expression);
      expect(names.length, where).toBeGreaterThan(0);
      for (const name of names) expect(name, where).toMatch(/^(device_payments_\w+|up)$/);
    }
    expect(() => metricNamesIn("sum(rate(x[1m])")).toThrow("cannot be parsed");
  });

  it.each(readdirSync(FOLDER))(
    "%s: ids are unique, panels do not overlap, and the data source is a variable",
    (file) => {
      const dashboard = JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as {
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
