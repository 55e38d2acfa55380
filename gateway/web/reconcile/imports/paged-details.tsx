/** A list of a file's rows, page by page. It loads the first page when a person opens it. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import type { Result } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { FailureNotice } from "../../shared/states.tsx";
import { type Column, Table } from "../../shared/table.tsx";
import { words } from "../words.ts";

/** Rows of one page. */
export const LIMIT = 50;

interface PagedDetailsProps<TReply, TRow> {
  readonly title: string;
  readonly columns: readonly Column<TRow>[];
  /** Reads the page after this row. */
  readonly read: (last: TRow | undefined) => Promise<Result<TReply>>;
  readonly rowsOf: (reply: TReply) => readonly TRow[];
}

export function PagedDetails<
  TReply extends { readonly has_more: boolean },
  TRow extends { readonly position: number },
>({ title, columns, read, rowsOf }: PagedDetailsProps<TReply, TRow>) {
  const rows = useSignal<readonly TRow[] | null>(null);
  const hasMore = useSignal(false);
  const failure = useSignal<Failure | null>(null);
  const load = async (): Promise<void> => {
    const known = rows.peek() ?? [];
    const listed = await read(known[known.length - 1]);
    failure.value = listed.ok ? null : listed;
    if (!listed.ok) return;
    rows.value = [...known, ...rowsOf(listed.reply)];
    hasMore.value = listed.reply.has_more;
  };
  return (
    <details onToggle={({ currentTarget }) => (currentTarget.open && rows.peek() === null ? void load() : undefined)}>
      <summary>{title}</summary>
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
      {rows.value !== null && (
        <Table caption={title} rows={rows.value} keyOf={({ position }) => position} columns={columns} />
      )}
      {hasMore.value && (
        <p class="more">
          <Button onClick={load}>{words().more}</Button>
        </p>
      )}
    </details>
  );
}
