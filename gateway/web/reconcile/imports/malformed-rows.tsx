import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { FailureNotice } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { MalformedText } from "../malformed-text.tsx";
import { words } from "../words.ts";

/** Rows of one page. */
const LIMIT = 50;
type Rows = ReplyOf<"GET /api/reconciliation/v1/malformed-rows/">["malformed_rows"];

/** The rows of a file that the service cannot read as lines. Loads them when a person opens the list. */
export function MalformedRows({ importId }: { readonly importId: number }) {
  const rows = useSignal<Rows | null>(null);
  const hasMore = useSignal(false);
  const failure = useSignal<Failure | null>(null);
  const texts = words().imports;
  const load = async (): Promise<void> => {
    const known = rows.peek() ?? [];
    const last = known[known.length - 1];
    const since = last && { since_import_id: last.import_id, since_position: last.position };
    const query = { import_id: importId, limit: LIMIT, ...since };
    const listed = await call("GET /api/reconciliation/v1/malformed-rows/", { query });
    failure.value = listed.ok ? null : listed;
    if (!listed.ok) return;
    rows.value = [...known, ...listed.reply.malformed_rows];
    hasMore.value = listed.reply.has_more;
  };
  return (
    <details onToggle={({ currentTarget }) => (currentTarget.open && rows.peek() === null ? void load() : undefined)}>
      <summary>{texts.malformed}</summary>
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
      {rows.value !== null && (
        <Table
          caption={texts.malformed}
          rows={rows.value}
          keyOf={({ position }) => position}
          columns={[
            { title: texts.position, isNumber: true, cell: ({ position }) => position },
            { title: texts.column, cell: ({ column }) => column },
            { title: texts.reasonOfRow, cell: (row) => <MalformedText {...row} /> },
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
