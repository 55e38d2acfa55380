/** A list of a file's rows, page by page. It reads the first page each time that a person opens it, because runs change rows. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
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
  const failed = useSignal<{ readonly failure: Failure; readonly known: readonly TRow[] } | null>(null);
  const newestRead = useRef(0);
  /** Reads the page after the known rows. Until the answer, the page shows the rows of before. */
  const load = async (known: readonly TRow[]): Promise<void> => {
    newestRead.current += 1;
    const thisRead = newestRead.current;
    const listed = await read(known[known.length - 1]);
    // The person has opened the list again, or asked for more, before this answer arrived.
    if (thisRead !== newestRead.current) return;
    failed.value = listed.ok ? null : { failure: listed, known };
    if (!listed.ok) return;
    rows.value = [...known, ...rowsOf(listed.reply)];
    hasMore.value = listed.reply.has_more;
  };
  const retry = () => load(failed.peek()?.known ?? []);
  return (
    <details onToggle={({ currentTarget }) => (currentTarget.open ? void load([]) : undefined)}>
      <summary>{title}</summary>
      {failed.value !== null && <FailureNotice failure={failed.value.failure} onRetry={retry} />}
      {rows.value !== null && (
        <Table caption={title} rows={rows.value} keyOf={({ position }) => position} columns={columns} />
      )}
      {hasMore.value && (
        <p class="more">
          <Button onClick={() => load(rows.peek() ?? [])}>{words().more}</Button>
        </p>
      )}
    </details>
  );
}
