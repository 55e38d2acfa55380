/** The filter of the issue list: reads it from the page's address and builds the queries of the API. */
import { param } from "../address.ts";

export const VIEWS = ["all_open", "needs_attention", "waiting", "missing", "stale", "decided"] as const;
type View = (typeof VIEWS)[number];
/** The service's count of stale issues uses the same number of days. */
const STALE_AFTER_DAYS = 7;

/** The parameters of the address that narrow a view. */
export const FILTERS = [
  "account",
  "kind",
  "source",
  "currency",
  "min_amount",
  "max_amount",
  "station_id",
  "assignee_id",
] as const;
export type FilterName = (typeof FILTERS)[number];

export const view = (): View => VIEWS.find((name) => name === param("view")) ?? "all_open";

const VIEW_QUERIES: Readonly<Record<View, Readonly<Record<string, string>>>> = {
  all_open: { decision: "pending" },
  needs_attention: { status: "open" },
  waiting: { status: "assigned" },
  missing: { decision: "pending", kind: "missing_in_statement" },
  stale: { decision: "pending", min_age_days: String(STALE_AFTER_DAYS) },
  decided: { decision: "made" },
};

/** Whether the view has a value of its own for this filter, so that a person cannot choose another one. */
export const isOfView = (name: FilterName, of: View): boolean => VIEW_QUERIES[of][name] !== undefined;

const chosen = (): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const name of FILTERS) if (param(name) !== "" && !isOfView(name, view())) found[name] = param(name);
  // The API accepts an amount only together with its currency.
  if (found["currency"] === undefined) {
    delete found["min_amount"];
    delete found["max_amount"];
  }
  return found;
};

/** The query of the list, the overview and the export. */
export const issuesQuery = (): Record<string, string> => ({ ...chosen(), ...VIEW_QUERIES[view()] });

export const filterCount = (): number => Object.keys(chosen()).length;

/** The filter for closing many issues: ids are numbers. It has no `decision`: the API closes undecided issues only. */
export function bulkFilter(): Record<string, string | number> {
  const { decision, ...rest } = issuesQuery();
  const filter: Record<string, string | number> = { ...rest };
  for (const name of ["station_id", "assignee_id", "min_age_days"]) {
    if (filter[name] !== undefined) filter[name] = Number(filter[name]);
  }
  // The service requires a filter with at least one part. This one matches every undecided issue.
  return Object.keys(filter).length === 0 && decision === "pending" ? { min_age_days: 0 } : filter;
}
