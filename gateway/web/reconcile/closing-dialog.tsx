/** A signed closing: its facts, its file for an auditor, and how an auditor verifies the file without this service. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { call } from "../shared/call.ts";
import { Dialog } from "../shared/dialog.tsx";
import type { Failure } from "../shared/failures.ts";
import { calendarDay, dateAndTime, number } from "../shared/format.ts";
import type { ReplyOf } from "../shared/operations.ts";
import { FailureNotice, Notice, Skeleton } from "../shared/states.tsx";
import { sharedWords } from "../shared/words.ts";
import { words } from "./words.ts";

type Closing = ReplyOf<"GET /api/reconciliation/v1/closings/{closing_id}/">;

/** The most rows that one answer contains. */
const LIMIT = 500;
/** The object URL must exist longer than the click, because the browser reads it afterwards. */
const REVOKE_AFTER_MS = 60_000;

interface ClosingDialogProps {
  readonly closingId: number;
  readonly onClose: () => void;
}

export function ClosingDialog({ closingId, onClose }: ClosingDialogProps) {
  const closing = useSignal<Closing | null>(null);
  const failure = useSignal<Failure | null>(null);
  const written = useSignal(0);
  const path = { closing_id: closingId };
  const load = async (): Promise<void> => {
    const found = await call("GET /api/reconciliation/v1/closings/{closing_id}/", { path });
    failure.value = found.ok ? null : found;
    if (found.ok) closing.value = found.reply;
  };
  useEffect(() => void load(), [closingId]);
  /** The file has one row per line, as `verify-closing.mjs` reads it. */
  const download = async (): Promise<void> => {
    const rows: string[] = [];
    let since: string | undefined;
    do {
      const query = { since_key: since, limit: LIMIT };
      const page = await call("GET /api/reconciliation/v1/closings/{closing_id}/rows/", { path, query });
      failure.value = page.ok ? null : page;
      if (!page.ok) return;
      rows.push(...page.reply.rows.map(({ row }) => row));
      written.value = rows.length;
      since = page.reply.has_more ? page.reply.rows[page.reply.rows.length - 1]?.key : undefined;
    } while (since !== undefined);
    save(rows.join("\n"), `closing-${closingId}.ndjson`);
  };
  const texts = words().closing;
  const known = closing.value;
  return (
    <Dialog title={texts.title(closingId)} onClose={onClose}>
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={known === null ? load : undefined} />}
      {known === null && failure.value === null && <Skeleton blocks={1} />}
      {known !== null && (
        <>
          {known.after_closing > 0 && <Notice tone="warn" title={texts.after(number(known.after_closing))} />}
          <dl class="facts">
            {[
              [
                texts.days,
                known.from_date === known.to_date
                  ? calendarDay(known.from_date)
                  : `${calendarDay(known.from_date)} – ${calendarDay(known.to_date)}`,
              ],
              [texts.by, `${known.closed_by.name}, ${dateAndTime(known.closed_at)}`],
              [words().reason, known.reason],
              [texts.holds, texts.counts(number(known.lines), number(known.issues))],
              [texts.key, known.signature.public_key],
            ].map(([name, value]) => (
              <div key={name} class="fact">
                <dt class="soft">{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          <p class="small">{texts.verify}</p>
          <pre class="said">{`node verify-closing.mjs closing-${closingId}.ndjson --key ${known.signature.public_key}`}</pre>
          <p class="small soft">{texts.keyHelp}</p>
        </>
      )}
      <div class="row row-spread">
        <Button local onClick={onClose}>
          {sharedWords().close}
        </Button>
        {known !== null && (
          <Button kind="main" onClick={download}>
            {written.value === 0 ? texts.download : texts.downloaded(number(written.value))}
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_AFTER_MS);
}
