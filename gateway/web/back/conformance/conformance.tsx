/** Runs of the conformance suite: start one, follow it, read its checks. `?run=` opens one. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { dateAndTime } from "../../shared/format.ts";
import { Empty } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { openForm } from "../shell/dialogs.tsx";
import { useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { allPages, Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { Run } from "./run.tsx";
import { words } from "./words.ts";

const EVERY_MS = 5_000;

export function Conformance() {
  const filters = useFilters();
  const run = Number(filters.query.run);
  return run > 0 ? <Run key={run} runId={run} /> : <Runs />;
}

function Runs() {
  const filters = useFilters();
  const runs = usePages(
    "runs",
    (before_id) =>
      mapReply(call("GET /api/backoffice/v1/conformance-runs/", { query: { before_id } }), (reply) =>
        pageOf(reply.conformance_runs, reply.has_more, (run) => run.conformance_run_id),
      ),
    EVERY_MS,
  );
  const sandboxes = useLoad("sandboxes", () =>
    allPages((since_id) =>
      mapReply(call("GET /api/backoffice/v1/sandboxes/", { query: { since_id } }), (reply) =>
        pageOf(reply.sandboxes, reply.has_more, (one) => one.sandbox_id),
      ),
    ),
  );
  const options = (sandboxes.data ?? []).map(({ sandbox_id, name }) => ({ value: String(sandbox_id), text: name }));
  const nameOf = (id: number): string => options.find(({ value }) => value === String(id))?.text ?? `#${id}`;
  const start = (): void =>
    openForm({
      title: words().start,
      intro: words().startIntro,
      action: words().start,
      fields: [{ name: "sandbox_id", label: words().sandbox, options }],
      run: ({ sandbox_id }) =>
        call("POST /api/backoffice/v1/conformance-runs/", { body: { sandbox_id: Number(sandbox_id) } }),
      after: (run) => filters.set({ run: String(run.conformance_run_id) }),
    });
  return (
    <>
      <SectionHead name="conformance" intro={words().intro}>
        <Button
          kind="main"
          onClick={start}
          disabledBecause={sandboxes.data !== null && options.length === 0 ? words().noSandbox : null}
        >
          {words().start}
        </Button>
      </SectionHead>
      <Listed of={runs} empty={<Empty title={words().empty}>{words().emptyText}</Empty>}>
        {(rows) => (
          <Table
            caption={shellWords().nav.conformance}
            rows={rows}
            keyOf={(run) => run.conformance_run_id}
            columns={[
              {
                title: words().run,
                cell: (run) => (
                  <a href={`/back/conformance/?run=${run.conformance_run_id}`}>{run.conformance_run_id}</a>
                ),
              },
              { title: words().sandbox, cell: (run) => nameOf(run.sandbox_id) },
              { title: shellWords().status, cell: (run) => <StatusTag status={run.status} /> },
              { title: words().result, cell: (run) => words().counts(run.passed, run.failed, run.not_run) },
              { title: words().began, cell: (run) => dateAndTime(run.started_at) },
            ]}
          />
        )}
      </Listed>
    </>
  );
}
