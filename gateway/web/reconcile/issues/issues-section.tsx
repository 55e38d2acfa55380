/** The issues section: views with counts, the filter, the list beside the chosen issue, and the keyboard. */
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { addressOf } from "../../shared/call.ts";
import { money, number } from "../../shared/format.ts";
import { Empty, FailureNotice, Skeleton } from "../../shared/states.tsx";
import { addressWith, followLink, go, param } from "../address.ts";
import { kindTitle } from "../kind-words.ts";
import { accountName } from "../known.ts";
import { words } from "../words.ts";
import { openDialog } from "./actions.ts";
import { Dialogs } from "./dialogs.tsx";
import { filterCount, isOfView, issuesQuery, VIEWS, view } from "./filter.ts";
import { clearFilters, FilterBar } from "./filter-bar.tsx";
import { IssueDetail, StatusTag } from "./issue-detail.tsx";
import {
  choose,
  chosenId,
  hasMore,
  type Issue,
  issues,
  listFailure,
  loadIssues,
  loadMore,
  overview,
} from "./issue-list.ts";
import { listenToKeys } from "./keys.ts";

export function IssuesSection() {
  useEffect(listenToKeys, []);
  return (
    <div class="issues">
      <Views />
      <FilterBar />
      <Sums />
      {listFailure.value !== null && <FailureNotice failure={listFailure.value} onRetry={loadIssues} />}
      <div class={chosenId() === 0 ? "split" : "split split-chosen"}>
        <section class="split-list" aria-label={words().sections.issues}>
          <List />
        </section>
        <section class="split-detail" aria-label={words().chosen}>
          <IssueDetail />
        </section>
      </div>
      <Dialogs />
    </div>
  );
}

function Views() {
  return (
    <nav class="views" aria-label={words().views.label}>
      {VIEWS.map((name) => {
        const changes = { view: name, issue: null, kind: isOfView("kind", name) ? null : param("kind") };
        return (
          <a
            key={name}
            class="view-link"
            href={addressWith(changes)}
            aria-current={view() === name ? "page" : undefined}
            onClick={(event) => followLink(event, () => go(changes))}
          >
            {words().views[name]}
            {name !== "decided" && (
              <span class="view-count numbers">
                {overview.value === undefined ? "–" : number(overview.value.views[name])}
              </span>
            )}
          </a>
        );
      })}
    </nav>
  );
}

/** One sum per currency: a sum over several currencies would be meaningless. */
function Sums() {
  const sums = overview.value?.sums ?? [];
  const total = sums.reduce((all, { count }) => all + count, 0);
  return (
    <div class="sums row row-spread">
      <ul class="sums-list" aria-label={words().sums}>
        {sums.map(({ currency, count, amount }) => (
          <li key={currency ?? ""} class="sum">
            <span class="sum-amount numbers">
              {currency === null || amount === null ? words().withoutAmount : money(amount, currency)}
            </span>
            <span class="small soft"> {words().issueCount(count)}</span>
          </li>
        ))}
      </ul>
      <div class="row">
        <a
          class="button"
          href={addressOf("GET /api/reconciliation/v1/exports/issues/", {
            query: { ...issuesQuery(), format: "csv" },
          })}
          download="issues.csv"
        >
          {words().csv}
        </a>
        {/* Until the list has loaded, the sums may belong to the previous view. */}
        {view() !== "decided" && total > 0 && issues.value !== undefined && (
          <Button
            onClick={() => {
              openDialog.value = "bulk";
            }}
          >
            {words().closeAll(total)}
          </Button>
        )}
        <Button
          local
          kind="quiet"
          onClick={() => {
            openDialog.value = "help";
          }}
        >
          {words().keys.button}
        </Button>
      </div>
    </div>
  );
}

function List() {
  const shown = issues.value;
  if (shown === undefined) return listFailure.value === null ? <Skeleton /> : null;
  if (shown.length === 0 && filterCount() > 0) {
    return (
      <Empty title={words().emptyFilter}>
        <Button local onClick={clearFilters}>
          {words().filter.clear}
        </Button>
      </Empty>
    );
  }
  if (shown.length === 0) {
    return (
      <Empty title={words().empty[view()]}>
        <p>{words().emptyHelp}</p>
      </Empty>
    );
  }
  return (
    <>
      <ul class="issue-list">
        {shown.map((issue) => (
          <li key={issue.issue_id}>
            <Row issue={issue} />
          </li>
        ))}
      </ul>
      {hasMore.value && (
        <p class="more">
          <Button onClick={loadMore}>{words().more}</Button>
        </p>
      )}
    </>
  );
}

function Row({ issue }: { readonly issue: Issue }) {
  const isChosen = chosenId() === issue.issue_id;
  const { amount, currency } = issue;
  const show = (button: HTMLElement | null): void => {
    if (isChosen && button !== null && button.dataset["seen"] !== "yes") button.scrollIntoView({ block: "nearest" });
    if (button !== null) button.dataset["seen"] = isChosen ? "yes" : "no";
  };
  return (
    <button
      ref={(button) => show(button)}
      type="button"
      class="issue-row"
      aria-current={isChosen}
      onClick={() => choose(issue.issue_id)}
    >
      <span class="issue-row-line">
        <span class="issue-row-kind">{kindTitle(issue.kind)}</span>
        <span class="numbers issue-row-amount">
          {amount === null || currency === null ? "–" : money(amount, currency)}
        </span>
      </span>
      <span class="issue-row-line small soft">
        <span>
          {accountName(issue.account)} · {words().days(issue.age_days)}
        </span>
        <StatusTag issue={issue} />
      </span>
    </button>
  );
}
