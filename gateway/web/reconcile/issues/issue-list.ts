/** The listed issues, the overview and the chosen issue; loaded when the address changes, and again now and then. */
import { computed, effect, signal, untracked } from "@preact/signals";
import { call, hasNoSession } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { rounds } from "../../shared/use-load.ts";
import { go, param, section } from "../address.ts";
import { person } from "../known.ts";
import { issuesQuery } from "./filter.ts";

export type Issue = ReplyOf<"GET /api/reconciliation/v1/issues/">["issues"][number];
export type IssueDetails = ReplyOf<"GET /api/reconciliation/v1/issues/{issue_id}/">;
type Overview = ReplyOf<"GET /api/reconciliation/v1/issue-overview/">;

/** Callbacks and other people change the list; a decision of this page shows at once. */
const REFRESH_MS = 15_000;
/** A person who reads on asks for more. */
const PAGE = 100;

/** Undefined before the first answer. */
export const issues = signal<readonly Issue[] | undefined>(undefined);
export const hasMore = signal(false);
export const listFailure = signal<Failure | null>(null);
export const overview = signal<Overview | undefined>(undefined);
export const details = signal<IssueDetails | undefined>(undefined);
export const detailsFailure = signal<Failure | null>(null);

export const chosenId = (): number => Number(param("issue")) || 0;
export const choose = (issueId: number | null): void => go({ issue: issueId }, { isStep: false });

/** Counts the loads: an answer that a newer load has overtaken is no longer shown. */
let era = 0;

export async function loadIssues(): Promise<void> {
  era += 1;
  const mine = era;
  const query = issuesQuery();
  // As many as are shown, so that a refresh does not take away what a person reads.
  const limit = Math.min(500, Math.max(PAGE, issues.peek()?.length ?? 0));
  const [listed, counted] = await Promise.all([
    call("GET /api/reconciliation/v1/issues/", { query: { ...query, limit } }),
    call("GET /api/reconciliation/v1/issue-overview/", { query }),
  ]);
  if (mine !== era) return;
  listFailure.value = listed.ok ? (counted.ok ? null : counted) : listed;
  // Sums of another view, or of an earlier moment, must not stand beside this list: a person closes all by them.
  overview.value = counted.ok ? counted.reply : undefined;
  if (!listed.ok) return;
  issues.value = listed.reply.issues;
  hasMore.value = listed.reply.has_more;
}

export async function loadMore(): Promise<void> {
  const shown = issues.peek() ?? [];
  const before_id = shown[shown.length - 1]?.issue_id;
  const query = { ...issuesQuery(), limit: PAGE, ...(before_id === undefined ? {} : { before_id }) };
  const mine = era;
  const listed = await call("GET /api/reconciliation/v1/issues/", { query });
  if (mine !== era) return;
  listFailure.value = listed.ok ? null : listed;
  if (!listed.ok) return;
  issues.value = [...shown, ...listed.reply.issues];
  hasMore.value = listed.reply.has_more;
}

export async function loadDetails(): Promise<void> {
  const issue_id = chosenId();
  if (issue_id === 0) {
    details.value = undefined;
    return;
  }
  const found = await call("GET /api/reconciliation/v1/issues/{issue_id}/", { path: { issue_id } });
  if (chosenId() !== issue_id) return;
  detailsFailure.value = found.ok ? null : found;
  if (found.ok) details.value = found.reply;
  // Other failures leave on the screen what a person reads.
  else if (found.code === "not_found") details.value = undefined;
}

export async function reload(): Promise<void> {
  await Promise.all([loadIssues(), loadDetails()]);
}

/** The next or the previous issue of the list. */
export function step(by: 1 | -1): void {
  const shown = issues.peek() ?? [];
  const at = shown.findIndex(({ issue_id }) => issue_id === chosenId());
  const next = shown[at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + by))];
  if (next !== undefined) choose(next.issue_id);
}

const isHere = computed(() => section() === "issues" && Boolean(person.value));
const queryText = computed(() => JSON.stringify(issuesQuery()));
const shownId = computed(chosenId);

effect(() => {
  if (!isHere.value || queryText.value === "") return;
  // What the load itself reads of the address must not load again: the list would disappear at each step.
  untracked(() => {
    issues.value = undefined;
    void loadIssues();
  });
});
effect(() => {
  if (!isHere.value) return;
  if (details.peek()?.issue.issue_id !== shownId.value) {
    details.value = undefined;
    // It was about another issue.
    detailsFailure.value = null;
  }
  untracked(() => void loadDetails());
});
setInterval(() => {
  if (!document.hidden && isHere.peek() && !hasNoSession.peek()) void reload();
}, REFRESH_MS);
rounds.subscribe((round) => {
  if (round > 0 && isHere.peek()) void reload();
});
