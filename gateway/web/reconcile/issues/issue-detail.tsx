/** One issue: the comparison, the candidates, the actions, and the history. */
import type { ComponentChild } from "preact";
import { Button } from "../../shared/button.tsx";
import { dateAndTime, money } from "../../shared/format.ts";
import { Empty, FailureNotice, Skeleton, Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { kindHelp, kindTitle } from "../kind-words.ts";
import { accountName, operatorName, orderText, person, stationName } from "../known.ts";
import { MalformedText } from "../malformed-text.tsx";
import { words } from "../words.ts";
import { assign, type Dialog, decideProposal, openDialog, orSayWhy, undoClosing } from "./actions.ts";
import { currenciesOf, type Difference } from "./amounts.ts";
import { Candidates, hasCandidates } from "./candidates.tsx";
import { History } from "./history.tsx";
import { choose, chosenId, details, detailsFailure, type Issue, type IssueDetails, loadDetails } from "./issue-list.ts";
import { factText } from "./minor-units.ts";

export function IssueDetail() {
  if (chosenId() === 0) {
    return (
      <Empty title={words().chooseTitle}>
        <p>{words().chooseHelp}</p>
      </Empty>
    );
  }
  const failure = detailsFailure.value;
  const notice = failure === null ? null : <FailureNotice failure={failure} onRetry={loadDetails} />;
  if (details.value === undefined) return notice ?? <Skeleton />;
  const { issue } = details.value;
  const { amount, currency } = issue;
  return (
    <article class="detail stack" aria-label={kindTitle(issue.kind)}>
      <div class="detail-back">
        <Button local kind="quiet" onClick={() => choose(null)}>
          {words().back}
        </Button>
      </div>
      {notice}
      <header>
        <div class="row row-spread">
          <h2>{kindTitle(issue.kind)}</h2>
          <StatusTag issue={issue} />
        </div>
        {amount !== null && currency !== null && <p class="detail-amount numbers">{money(amount, currency)}</p>}
        <p class="soft">{kindHelp(issue.kind)}</p>
      </header>
      <Actions issue={issue} />
      <Proposal known={details.value} />
      <Comparison issue={issue} />
      <Candidates issue={issue} />
      <Facts known={details.value} />
      <History />
    </article>
  );
}

const open = (dialog: Dialog) => (): void => {
  openDialog.value = dialog;
};

function Actions({ issue }: { readonly issue: Issue }) {
  const me = person.value;
  const texts = words().actions;
  const isWaiting = issue.status === "open" || issue.status === "assigned";
  if (!isWaiting) {
    const isMine = issue.status === "closed" && me !== null && issue.resolved_by === me?.user_id;
    return (
      <div class="row">
        {isMine && <Button onClick={() => undoClosing(issue.issue_id)}>{texts.undo}</Button>}
        <Button onClick={open("comment")}>{texts.comment}</Button>
      </div>
    );
  }
  const isMoney = issue.kind === "unmatched_money" || issue.kind === "late_money" || issue.source === "provider";
  const isAttributable = isMoney && issue.proposal === null;
  // The page has one main button: the step that the help text above names. A proposal and candidates have their own.
  const isClosing = !isAttributable && issue.proposal === null && !hasCandidates(issue);
  return (
    <div class="row">
      {isAttributable && (
        <Button kind="main" onClick={open("attribute")}>
          {texts.attribute}
        </Button>
      )}
      <Button kind={isClosing ? "main" : undefined} onClick={open("close")}>
        {texts.close}
      </Button>
      {me && issue.assignee_id !== me.user_id && (
        <Button onClick={() => orSayWhy(assign(issue, me.user_id))}>{texts.assignMe}</Button>
      )}
      <Button onClick={open("assign")}>{texts.assign}</Button>
      <Button onClick={open("comment")}>{texts.comment}</Button>
    </div>
  );
}

function Proposal({ known: { issue, orders } }: { readonly known: IssueDetails }) {
  const { proposal } = issue;
  if (proposal === null) return null;
  const texts = words().proposal;
  const isMine = proposal.proposed_by === person.value?.user_id;
  return (
    <section class="notice notice-warn stack-tight">
      <h3>{texts.title(proposal.proposed_by_name, orderText(orders, proposal.order_id))}</h3>
      <p>{proposal.reason}</p>
      <p class="small soft">{dateAndTime(proposal.proposed_at)}</p>
      <div class="row">
        {isMine ? (
          <>
            <p>{texts.mine}</p>
            <Button onClick={() => orSayWhy(decideProposal(issue, "withdraw"))}>{texts.withdraw}</Button>
          </>
        ) : (
          <>
            <Button kind="main" onClick={open("confirm_proposal")}>
              {texts.confirm}
            </Button>
            <Button onClick={open("reject_proposal")}>{texts.reject}</Button>
          </>
        )}
      </div>
    </section>
  );
}

/** For a callback, compares the registered with the asserted facts. For a statement, shows the differences that the run found. */
function comparedOf({ evidence, currency }: Issue): readonly Difference[] {
  if (evidence.statement !== null) {
    const { differences } = evidence.statement;
    const currencies = currenciesOf(differences, currency);
    const read = (field: string, value: string | null, side: "expected" | "found") =>
      value === null ? null : factText(field, value, currencies[side]);
    return differences.map(({ field, expected, found }) => ({
      field,
      expected: read(field, expected, "expected"),
      found: read(field, found, "found"),
    }));
  }
  const { registered, asserted } = evidence;
  const amountOf = (facts: typeof asserted): string | null =>
    facts === null || facts.amount === null || facts.currency === null ? null : money(facts.amount, facts.currency);
  const rows: readonly Difference[] = [
    { field: "amount", expected: amountOf(registered), found: amountOf(asserted) },
    { field: "reference", expected: registered?.reference ?? null, found: asserted?.reference ?? null },
    {
      field: "provider_reference",
      expected: registered?.provider_reference ?? null,
      found: asserted?.provider_reference ?? null,
    },
    { field: "account", expected: registered?.account ?? null, found: asserted?.account ?? null },
  ];
  return rows.filter(({ expected, found }) => Boolean(expected) || Boolean(found));
}

const cell = (value: string | null) => (value === null || value === "" ? <span class="soft">–</span> : value);

function Comparison({ issue }: { readonly issue: Issue }) {
  const rows = comparedOf(issue);
  const texts = words().comparison;
  if (rows.length === 0) return null;
  return (
    <section class="stack-tight">
      <h3>{texts.title}</h3>
      <Table
        caption={texts.title}
        keyOf={({ field }) => field}
        rows={rows}
        columns={[
          { title: texts.field, cell: ({ field }) => words().fields(field) },
          { title: texts.expected, cell: ({ expected }) => cell(expected) },
          {
            title: texts.found,
            cell: ({ expected, found }) => (
              <span class={expected === found ? "" : "differs"}>
                {cell(found)} {expected !== found && <Tag tone="warn">{texts.differs}</Tag>}
              </span>
            ),
          },
        ]}
      />
    </section>
  );
}

/** The fact that has the keys of the payments: for programs only, because a person knows a payment by its order. */
const PAYMENT_KEYS = "named";

function Facts({ known: { issue, orders } }: { readonly known: IssueDetails }) {
  const texts = words().facts;
  const { evidence } = issue;
  const { facts = {}, malformed = null } = evidence.statement ?? {};
  const factOf = (name: string, value: string) =>
    name === "reason" && malformed !== null ? (
      <MalformedText {...malformed} reason={value} />
    ) : (
      factText(name, value, issue.currency)
    );
  const rows: readonly (readonly [string, ComponentChild])[] = [
    [texts.account, accountName(issue.account)],
    [texts.station, issue.station_id === null ? "" : stationName(issue.station_id)],
    [texts.order, issue.order_id === null ? "" : orderText(orders, issue.order_id)],
    [texts.reference, issue.provider_reference],
    [texts.opened, dateAndTime(issue.opened_at)],
    [texts.lastSeen, dateAndTime(issue.last_seen_at)],
    [texts.resolvedBy, issue.resolved_by === null ? "" : operatorName(issue.resolved_by)],
    [texts.reason, issue.reason ?? ""],
    ...Object.entries(facts)
      .filter(([name]) => name !== PAYMENT_KEYS)
      .map(([name, value]) => [words().fields(name), factOf(name, value)] as const),
  ];
  return (
    <section class="stack-tight">
      <h3>{texts.title}</h3>
      <dl class="facts">
        {rows
          .filter(([, value]) => value !== "")
          .map(([name, value]) => (
            <div key={name} class="fact">
              <dt class="soft">{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {evidence.said !== null && (
        <details>
          <summary>{texts.said}</summary>
          <pre class="said">{evidence.said}</pre>
        </details>
      )}
    </section>
  );
}

/** The assignee of the issue, or how it ended. An open issue has no tag. */
export function StatusTag({ issue }: { readonly issue: Issue }) {
  if (issue.proposal !== null) return <Tag tone="warn">{words().proposed}</Tag>;
  if (issue.status === "assigned") return <Tag tone="accent">{operatorName(issue.assignee_id)}</Tag>;
  return issue.status === "open" ? null : <Tag tone="good">{words().statuses[issue.status]}</Tag>;
}
