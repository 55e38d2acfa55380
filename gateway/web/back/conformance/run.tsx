/** One run, updated until it ends. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { now } from "../../shared/clock.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Notice } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { ask } from "../shell/dialogs.tsx";
import { Facts, SectionHead } from "../shell/frame.tsx";
import { LoadedView } from "../shell/loading.tsx";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

type OneRun = ReplyOf<"GET /api/backoffice/v1/conformance-runs/{conformance_run_id}/">;

const EVERY_MS = 2_000;
const RANKS: Readonly<Record<string, number>> = { failed: 0, not_run: 1, passed: 2 };

const rankOf = ({ outcome }: OneRun["checks"][number]): number => RANKS[outcome] ?? 1;

export function Run({ runId }: { readonly runId: number }) {
  const path = { conformance_run_id: runId };
  const run = useLoad(
    `run ${runId}`,
    () => call("GET /api/backoffice/v1/conformance-runs/{conformance_run_id}/", { path }),
    { everyMs: EVERY_MS },
  );
  const end = (): void =>
    ask({
      title: words().endTitle,
      text: [words().endText],
      action: words().end,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/conformance-runs/{conformance_run_id}/end/", { path }),
      done: words().ended,
      after: run.reload,
    });
  return (
    <>
      <SectionHead name="conformance" />
      <p>
        <a href="/back/conformance/">{shellWords().back}</a>
      </p>
      <LoadedView of={run}>
        {(found) => (
          <>
            <section class="card stack" aria-labelledby="run">
              <div class="section-head">
                <h2 id="run">
                  {words().run} {found.conformance_run_id}
                </h2>
                {found.ended_at === null && <Button onClick={end}>{words().end}</Button>}
              </div>
              {found.problem !== null && (
                <Notice tone="bad" title={words().problem}>
                  <p>{found.problem}</p>
                </Notice>
              )}
              {found.left_behind.length > 0 && (
                <Notice tone="bad" title={words().leftBehind}>
                  <p>{found.left_behind.join(", ")}</p>
                </Notice>
              )}
              <Facts
                of={[
                  [shellWords().status, <StatusTag key="status" status={found.status} />],
                  [words().result, words().counts(found.passed, found.failed, found.not_run)],
                  [words().began, dateAndTime(found.started_at)],
                  [words().took, words().seconds(secondsOf(found))],
                  [words().version, found.suite_version ?? "–"],
                  [words().contract, <code key="hash">{found.contract_sha256 ?? "–"}</code>],
                ]}
              />
            </section>
            <div class="stack">
              <h2>{words().checks}</h2>
              <p class="small soft">{found.checks.length === 0 ? words().waiting : words().failedFirst}</p>
              {found.checks.length > 0 && <Checks checks={found.checks} />}
            </div>
          </>
        )}
      </LoadedView>
    </>
  );
}

function secondsOf({ started_at, ended_at }: OneRun): number {
  const endMs = ended_at === null ? now.value : Date.parse(ended_at);
  return Math.max(0, Math.round((endMs - Date.parse(started_at)) / 1_000));
}

function Checks({ checks }: { readonly checks: OneRun["checks"] }) {
  // Old browsers have no `toSorted`.
  // oxlint-disable-next-line unicorn/no-array-sort
  const rows = [...checks].sort((a, b) => rankOf(a) - rankOf(b));
  return (
    <Table
      caption={words().checks}
      rows={rows}
      keyOf={(check) => check.id}
      columns={[
        { title: words().result, cell: (check) => <StatusTag status={check.outcome} /> },
        {
          title: words().check,
          cell: (check) => (
            <>
              <code>{check.id}</code>
              <Failure check={check} />
            </>
          ),
        },
        { title: words().capability, cell: (check) => check.capability },
        {
          title: words().rules,
          cell: (check) => (
            <ul>
              {check.sentences.map((sentence) => (
                <li key={sentence} class="small">
                  {sentence}
                </li>
              ))}
            </ul>
          ),
        },
        { title: words().duration, isNumber: true, cell: (check) => words().milliseconds(check.duration_ms) },
      ]}
    />
  );
}

function Failure({ check }: { readonly check: OneRun["checks"][number] }) {
  const { failure, because } = check;
  if (failure === undefined) return because === undefined ? null : <p class="small soft">{because}</p>;
  return (
    <div class="stack-tight">
      <p>{failure.what}</p>
      <p class="small">
        {words().expected}: {failure.expected}
      </p>
      <p class="small">
        {words().actual}: {failure.actual}
      </p>
      <pre>{failure.curl}</pre>
    </div>
  );
}
