/** The listed issues, the overview and the chosen issue: loads them when the address changes and each `REFRESH_MS`. */
import { computed, effect, signal, untracked } from "@preact/signals";
import { call, hasNoSession, type Result } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { rounds } from "../../shared/use-load.ts";
import { go, param, section } from "../address.ts";
import { person } from "../known.ts";
import { issuesQuery } from "./filter.ts";

type Listed = ReplyOf<"GET /api/reconciliation/v1/issues/">;
export type Issue = Listed["issues"][number];
export type IssueDetails = ReplyOf<"GET /api/reconciliation/v1/issues/{issue_id}/">;
type Overview = ReplyOf<"GET /api/reconciliation/v1/issue-overview/">;

/** Callbacks and other people change the list. After a decision on this page, the page loads the list at once. */
const REFRESH_MS = 15_000;
/** Issues of one load. "Show more" loads as many again. */
const PAGE = 100;
/** The API lists at most this many at once. */
const LIST_LIMIT = 500;

/** Undefined until the first answer of a view. */
export const issues = signal<readonly Issue[] | undefined>(undefined);
export const hasMore = signal(false);
export const listFailure = signal<Failure | null>(null);
export const overview = signal<Overview | undefined>(undefined);
export const details = signal<IssueDetails | undefined>(undefined);
export const detailsFailure = signal<Failure | null>(null);

export const chosenId = (): number => Number(param("issue")) || 0;
export const choose = (issueId: number | null): void => go({ issue: issueId }, { isStep: false });

/** Counts the loads: the page does not show an answer when a newer load has begun. */
let newestLoad = 0;
let newestDetails = 0;
/** How many issues a person has asked for with "Show more". */
let asked = 0;

export async function loadIssues(): Promise<void> {
  newestLoad += 1;
  const thisLoad = newestLoad;
  const query = issuesQuery();
  // As many as the page shows, so that a refresh does not remove what a person reads.
  const wanted = Math.max(PAGE, asked, issues.peek()?.length ?? 0);
  const [listed, counted] = await Promise.all([
    newestIssues(query, wanted),
    call("GET /api/reconciliation/v1/issue-overview/", { query }),
  ]);
  if (thisLoad !== newestLoad) return;
  listFailure.value = listed.ok ? (counted.ok ? null : counted) : listed;
  // The page must not show older sums, or sums of another view, with this list: a person closes all issues by them.
  overview.value = counted.ok ? counted.reply : undefined;
  if (!listed.ok) return;
  issues.value = listed.reply.issues;
  hasMore.value = listed.reply.has_more;
}

async function newestIssues(query: ReturnType<typeof issuesQuery>, wanted: number): Promise<Result<Listed>> {
  const found: Issue[] = [];
  for (;;) {
    const last = found[found.length - 1];
    const limit = Math.min(LIST_LIMIT, wanted - found.length);
    const page = { ...query, limit, ...(last === undefined ? {} : { before_id: last.issue_id }) };
    const listed = await call("GET /api/reconciliation/v1/issues/", { query: page });
    if (!listed.ok) return listed;
    found.push(...listed.reply.issues);
    const { has_more } = listed.reply;
    if (!has_more || found.length >= wanted) return { ok: true, reply: { issues: found, has_more } };
  }
}

/** All that is shown again, and more: a refresh at the same time then loads as many. */
export async function loadMore(): Promise<void> {
  asked = (issues.peek()?.length ?? 0) + PAGE;
  await loadIssues();
}

export async function loadDetails(): Promise<void> {
  newestDetails += 1;
  const thisLoad = newestDetails;
  const issue_id = chosenId();
  if (issue_id === 0) {
    details.value = undefined;
    return;
  }
  const found = await call("GET /api/reconciliation/v1/issues/{issue_id}/", { path: { issue_id } });
  if (chosenId() !== issue_id || thisLoad !== newestDetails) return;
  detailsFailure.value = found.ok ? null : found;
  if (found.ok) details.value = found.reply;
  // After other failures the page still shows the issue that a person reads.
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
  // `loadIssues` reads the address too. Without `untracked` this effect would run, and clear the list, at each step.
  untracked(() => {
    issues.value = undefined;
    asked = 0;
    void loadIssues();
  });
});
effect(() => {
  if (!isHere.value) return;
  if (details.peek()?.issue.issue_id !== shownId.value) {
    details.value = undefined;
    // The failure is about another issue.
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
