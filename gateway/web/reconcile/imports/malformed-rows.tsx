import { call } from "../../shared/call.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { MalformedText } from "../malformed-text.tsx";
import { words } from "../words.ts";
import { LIMIT, PagedDetails } from "./paged-details.tsx";

type Row = ReplyOf<"GET /api/reconciliation/v1/malformed-rows/">["malformed_rows"][number];

/** The rows of a file that the service cannot read as lines. */
export function MalformedRows({ importId }: { readonly importId: number }) {
  const texts = words().imports;
  return (
    <PagedDetails
      title={texts.malformed}
      read={async (last?: Row) => {
        const since = last && { since_import_id: last.import_id, since_position: last.position };
        const query = { import_id: importId, limit: LIMIT, ...since };
        return await call("GET /api/reconciliation/v1/malformed-rows/", { query });
      }}
      rowsOf={(reply) => reply.malformed_rows}
      columns={[
        { title: texts.position, isNumber: true, cell: ({ position }) => position },
        { title: texts.column, cell: ({ column }) => column },
        { title: texts.reasonOfRow, cell: (row) => <MalformedText {...row} /> },
      ]}
    />
  );
}
