/** The lines of a file as the service read them, with the outcome of the comparison. */
import { call } from "../../shared/call.ts";
import { calendarDay, money } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Tag, type Tone } from "../../shared/states.tsx";
import { addressWith, followLink, go } from "../address.ts";
import { ISSUE_KINDS, kindTitle } from "../kind-words.ts";
import { words } from "../words.ts";
import { LIMIT, PagedDetails } from "./paged-details.tsx";

type Line = ReplyOf<"GET /api/reconciliation/v1/imports/{import_id}/lines/">["lines"][number];

const TONES: Readonly<Record<NonNullable<Line["outcome"]>, Tone>> = {
  matched: "good",
  differs: "warn",
  rejected: "plain",
};

export function ImportLines({ importId }: { readonly importId: number }) {
  const texts = words().lines;
  return (
    <PagedDetails
      title={texts.title}
      read={async (last?: Line) => {
        const request = { path: { import_id: importId }, query: { since_position: last?.position ?? 0, limit: LIMIT } };
        return await call("GET /api/reconciliation/v1/imports/{import_id}/lines/", request);
      }}
      rowsOf={(reply) => reply.lines}
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
