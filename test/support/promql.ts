/** The Prometheus expressions of the published files. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parser } from "@prometheus-io/lezer-promql";
import { parse } from "yaml";

const PRODUCTION = join(import.meta.dirname, "..", "..", "deploy", "production");
/** Grafana replaces this variable by a duration. */
const GRAFANA_INTERVAL = /\$__rate_interval/g;

interface Published {
  /** The file, and the panel or alert of the expression. */
  readonly where: string;
  readonly expression: string;
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** Every expression of the dashboards and of the alert rules. */
export function publishedExpressions(): readonly Published[] {
  const folder = join(PRODUCTION, "grafana");
  const panels = readdirSync(folder).flatMap((file) => {
    const dashboard = JSON.parse(readFileSync(join(folder, file), "utf8")) as { readonly panels: readonly Panel[] };
    return dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ where: `${file}: ${title}`, expression: expr.replaceAll(GRAFANA_INTERVAL, "1m") })),
    );
  });
  const rules = parse(readFileSync(join(PRODUCTION, "prometheus", "alerts.yaml"), "utf8")) as {
    readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
  };
  const alerts = rules.groups.flatMap((group) =>
    group.rules.map(({ alert, expr }) => ({ where: `alerts.yaml: ${alert}`, expression: expr })),
  );
  return [...panels, ...alerts];
}

/** The metrics that an expression names. Throws when it cannot be parsed. */
export function metricNamesIn(expression: string): readonly string[] {
  const names: string[] = [];
  parser.parse(expression).iterate({
    enter(node) {
      const text = expression.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`This cannot be parsed at ${node.from}: ${expression}`);
      if (node.name === "VectorSelector") names.push(/^[\w:]+/.exec(text)?.[0] ?? "");
    },
  });
  return names;
}
