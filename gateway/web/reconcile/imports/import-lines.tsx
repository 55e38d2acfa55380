/** The lines of a file as the service read them, with the outcome of the comparison. Loads them when a person opens the list. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { calendarDay, money } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { FailureNotice, Tag, type Tone } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { addressWith, followLink, go } from "../address.ts";
import { ISSUE_KINDS, kindTitle } from "../kind-words.ts";
import { words } from "../words.ts";

type Line = ReplyOf<"GET /api/reconciliation/v1/imports/{import_id}/lines/">["lines"][number];

/** Lines of one page. */
const LIMIT = 50;
const TONES: Readonly<Record<NonNullable<Line["outcome"]>, Tone>> = {
  matched: "good",
  differs: "warn",
  rejected: "plain",
};

export function ImportLines({ importId }: { readonly importId: number }) {
  const lines = useSignal<readonly Line[] | null>(null);
  const hasMore = useSignal(false);
  const failure = useSignal<Failure | null>(null);
  const texts = words().lines;
  const load = async (): Promise<void> => {
    const known = lines.peek() ?? [];
    const since_position = known[known.length - 1]?.position ?? 0;
    const request = { path: { import_id: importId }, query: { since_position, limit: LIMIT } };
    const listed = await call("GET /api/reconciliation/v1/imports/{import_id}/lines/", request);
    failure.value = listed.ok ? null : listed;
    if (!listed.ok) return;
    lines.value = [...known, ...listed.reply.lines];
    hasMore.value = listed.reply.has_more;
  };
  return (
    <details onToggle={({ currentTarget }) => (currentTarget.open && lines.peek() === null ? void load() : undefined)}>
      <summary>{texts.title}</summary>
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
      {lines.value !== null && (
        <Table
          caption={texts.title}
          rows={lines.value}
          keyOf={({ position }) => position}
          columns={[
            { title: texts.position, isNumber: true, cell: ({ position }) => position },
            { title: texts.day, cell: ({ booked_on }) => <span class="nowrap">{calendarDay(booked_on)}</span> },
            { title: texts.kind, cell: ({ kind }) => texts.kinds(kind) },
            { title: texts.amount, isNumber: true, cell: ({ amount, currency }) => money(amount, currency) },
            {
              title: texts.reference,
              cell: (line) => line.provider_reference || line.payment_reference || line.merchant_reference || line.text,
            },
            { title: texts.outcome, cell: (line) => <Outcome line={line} /> },
          ]}
        />
      )}
      {hasMore.value && (
        <p class="more">
          <Button onClick={load}>{words().more}</Button>
        </p>
      )}
    </details>
  );
}

/** The name of the issue's kind, or a general word when the reason is no kind of issue. */
function titleOf(reason: string | null): string {
  const kind = ISSUE_KINDS.find((one) => one === reason);
  return kind === undefined ? words().lines.issue : kindTitle(kind);
}

function Outcome({ line: { outcome, outcome_reason: reason, issue_id: issueId } }: { readonly line: Line }) {
  const texts = words().lines;
  const changes = { section: null, account_id: null, issue: issueId };
  if (outcome === null) return <span class="soft">{texts.notYet}</span>;
  return (
    <>
      <Tag tone={TONES[outcome]}>{texts.outcomes[outcome]}</Tag>{" "}
      {issueId === null ? null : (
        <a href={addressWith(changes)} onClick={(event) => followLink(event, () => go(changes))}>
          {titleOf(reason)}
        </a>
      )}
    </>
  );
}
