/** One import: its status, its results, and a person's decisions about it. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { calendarDay, dateAndTime, money, number } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Notice, Tag, type Tone } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { operatorName } from "../known.ts";
import { WithReason } from "../with-reason.tsx";
import { words } from "../words.ts";
import { ConfirmFormat } from "./confirm-format.tsx";
import { ImportLines } from "./import-lines.tsx";
import { MalformedRows } from "./malformed-rows.tsx";
import { WhyRefused } from "./why-refused.tsx";

type ListedImport = ReplyOf<"GET /api/reconciliation/v1/imports/">["imports"][number];

const TONES: Readonly<Record<string, Tone>> = {
  imported: "good",
  needs_format: "warn",
  held: "warn",
  refused: "bad",
  waiting: "accent",
  importing: "accent",
};
const WITHDRAWABLE: readonly string[] = ["needs_format", "waiting", "importing", "imported", "held"];

const daysText = (from: string, to: string): string =>
  from === to ? calendarDay(from) : `${calendarDay(from)} – ${calendarDay(to)}`;

interface CardProps {
  readonly listed: ListedImport;
  readonly onChanged: () => Promise<void>;
}

export function ImportCard({ listed, onChanged }: CardProps) {
  const asked = useSignal<"release" | "withdraw" | null>(null);
  const texts = words().imports;
  const { status } = listed;
  return (
    <article class="card stack-tight" aria-label={listed.file_name}>
      <div class="row row-spread">
        <h2 class="file-name">{listed.file_name}</h2>
        <Tag tone={TONES[status] ?? "plain"}>{texts.statuses[status]}</Tag>
      </div>
      <p class="small soft">
        {dateAndTime(listed.uploaded_at)} · {operatorName(listed.uploaded_by)}
        {listed.format !== null && ` · ${listed.format}`}
        {listed.encoding !== null && ` · ${listed.encoding}`}
        {listed.from_date !== null && listed.to_date !== null && ` · ${daysText(listed.from_date, listed.to_date)}`}
      </p>
      {(status === "importing" || status === "waiting") && (
        <progress value={listed.read_bytes} max={Math.max(1, listed.size_bytes)} aria-label={texts.statuses[status]} />
      )}
      {status === "imported" && (
        <p>{texts.counts(number(listed.lines_new), number(listed.lines_known), number(listed.malformed))}</p>
      )}
      {(status === "held" || status === "refused") && (
        <Notice tone={status === "held" ? "warn" : "bad"} title={texts.why[status]}>
          <WhyRefused code={listed.status_code} detail={listed.status_detail} />
        </Notice>
      )}
      {(listed.released ?? listed.withdrawn) !== null && (
        <p class="small soft">{(listed.withdrawn ?? listed.released)?.reason}</p>
      )}
      {status === "held" && <Totals listed={listed} />}
      {status === "needs_format" && <ConfirmFormat importId={listed.import_id} onChanged={onChanged} />}
      {status === "imported" && <ImportLines importId={listed.import_id} />}
      {listed.malformed > 0 && <MalformedRows importId={listed.import_id} />}
      <div class="row">
        {status === "held" && (
          <Button
            kind="main"
            onClick={() => {
              asked.value = "release";
            }}
          >
            {texts.release}
          </Button>
        )}
        {WITHDRAWABLE.includes(status) && (
          <Button
            kind="quiet"
            onClick={() => {
              asked.value = "withdraw";
            }}
          >
            {texts.withdraw}
          </Button>
        )}
      </div>
      {asked.value !== null && (
        <Decision
          listed={listed}
          decision={asked.value}
          onClose={() => {
            asked.value = null;
          }}
          onChanged={onChanged}
        />
      )}
    </article>
  );
}

function Totals({ listed: { totals } }: { readonly listed: ListedImport }) {
  const texts = words().imports;
  if (totals.length === 0) return null;
  return (
    <Table
      caption={texts.totals}
      rows={totals}
      keyOf={({ name, currency }) => `${name} ${currency}`}
      columns={[
        { title: texts.total, cell: ({ name }) => name },
        { title: texts.stated, isNumber: true, cell: ({ stated, currency }) => money(stated, currency) },
        { title: texts.computed, isNumber: true, cell: ({ computed, currency }) => money(computed, currency) },
      ]}
    />
  );
}

interface DecisionProps extends CardProps {
  readonly decision: "release" | "withdraw";
  readonly onClose: () => void;
}

function Decision({ listed, decision, onClose, onChanged }: DecisionProps) {
  const texts = words().imports;
  const confirm = async (reason: string): Promise<Failure | null> => {
    const sent = { path: { import_id: listed.import_id }, body: { reason } };
    const done =
      decision === "release"
        ? await call("POST /api/reconciliation/v1/imports/{import_id}/release/", sent)
        : await call("POST /api/reconciliation/v1/imports/{import_id}/withdraw/", sent);
    if (!done.ok) return done;
    void onChanged();
    return null;
  };
  return (
    <WithReason
      title={decision === "release" ? texts.releaseTitle : texts.withdrawTitle}
      action={texts[decision]}
      isDangerous={decision === "withdraw"}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{decision === "release" ? texts.releaseHelp : texts.withdrawHelp}</p>
    </WithReason>
  );
}
