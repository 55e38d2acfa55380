/** The report of a filial's day, to read and to print. Each currency has its own tables. */
import { useState } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { call, type Result } from "../shared/call.ts";
import { now } from "../shared/clock.ts";
import { Choice, Field } from "../shared/field.tsx";
import { calendarDay, dateAndTime, localDay, money } from "../shared/format.ts";
import type { ReplyOf, RequestOf } from "../shared/operations.ts";
import { Empty, FailureNotice, Skeleton } from "../shared/states.tsx";
import { useLoad } from "../shared/use-load.ts";
import { go, param } from "./address.ts";
import { kindTitle } from "./kind-words.ts";
import { type Account, accounts, filialName, filials, person } from "./known.ts";
import { words } from "./words.ts";

const REPORT = "GET /api/reconciliation/v1/day-report/";
type Report = ReplyOf<typeof REPORT>;
type Query = NonNullable<RequestOf<typeof REPORT>["query"]>;
type Totals = Report["totals"][number];
type Sum = Totals["tips"];

/** Cashiers collect, and runs end, while the page shows the report. */
const REFRESH_MS = 10_000;

interface Reading {
  readonly report: Report;
  readonly readAtMs: number;
}

async function readReport(query: Query): Promise<Result<Reading>> {
  const answer = await call(REPORT, { query });
  return answer.ok ? { ok: true, reply: { report: answer.reply, readAtMs: now.peek() } } : answer;
}

/**
 * The time zone of the filial's accounts if they agree on one, otherwise the browser's. An account that several filials share
 * does not count: the report has none of its lines, and these filials may be in several time zones.
 */
function timeZoneOf(filialId: number, mode: Account["mode"]): string {
  const zones = new Set<string>();
  for (const { filial_id, mode: ofAccount, time_zone } of accounts.value) {
    if (filial_id === filialId && ofAccount === mode && time_zone !== null) zones.add(time_zone);
  }
  const [zone] = zones;
  return zone !== undefined && zones.size === 1 ? zone : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function ReportSection() {
  const filialId = Number(param("filial_id")) || (filials.value[0]?.filial_id ?? 0);
  if (filialId > 0) return <DayReport filialId={filialId} />;
  return (
    <Empty title={words().report.noFilial}>
      <p>{words().report.noFilialHelp}</p>
    </Empty>
  );
}

function DayReport({ filialId }: { readonly filialId: number }) {
  // A report that is open at midnight stays the report of its day.
  const [openedAtMs] = useState(() => now.peek());
  const mode = param("mode") === "test" ? "test" : "live";
  const timeZone = timeZoneOf(filialId, mode);
  const day = param("day") || localDay(openedAtMs, timeZone);
  const query = { filial_id: filialId, day, mode, time_zone: timeZone } as const;
  const { data, failure, reload } = useLoad(`${filialId} ${day} ${mode} ${timeZone}`, () => readReport(query), {
    everyMs: REFRESH_MS,
  });
  const printNewest = async (): Promise<void> => {
    await reload();
    print();
  };
  const texts = words().report;
  return (
    <div class="report stack">
      <div class="filter-fields no-print">
        <Choice
          label={texts.filial}
          value={String(filialId)}
          onChange={(value) => go({ filial_id: value }, { isStep: false })}
          options={filials.value.map(({ filial_id, name }) => ({ value: String(filial_id), text: name }))}
        />
        <Field label={texts.day} type="date" value={day} onInput={(value) => go({ day: value }, { isStep: false })} />
        <Choice
          label={words().account.mode}
          value={mode}
          onChange={(value) => go({ mode: value }, { isStep: false })}
          options={[
            { value: "live", text: words().account.modes.live },
            { value: "test", text: words().account.modes.test },
          ]}
        />
        <div class="field report-print">
          <Button local kind="main" onClick={printNewest}>
            {texts.print}
          </Button>
        </div>
      </div>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {data === null && failure === null && <Skeleton />}
      {data !== null && <Paper {...data} />}
    </div>
  );
}

function Paper({ report, readAtMs }: Reading) {
  const texts = words().report;
  const closed = report.accounts.filter(({ is_closed }) => is_closed);
  return (
    <article class="card stack paper">
      <header>
        <h2>{texts.title(filialName(report.filial_id), calendarDay(report.day))}</h2>
        <p class="soft small">
          {dateAndTime(report.from, report.time_zone)} – {dateAndTime(report.to, report.time_zone)} ({report.time_zone})
          · {words().account.modes[report.mode]} · {texts.asOf(dateAndTime(readAtMs, report.time_zone))}
        </p>
        {report.accounts.length > 0 && (
          <p class="soft small">
            {report.accounts.map(({ name }) => name).join(", ")} · {texts.closed(closed.length, report.accounts.length)}
          </p>
        )}
      </header>
      {report.totals.length === 0 && (
        <p>
          {texts.empty} {report.mode === "live" && texts.emptyLive}
        </p>
      )}
      {report.totals.map((totals) => (
        <CurrencyTotals key={totals.currency} totals={totals} />
      ))}
      {report.open_without_amount.length > 0 && (
        <section class="stack-tight">
          <h3>{texts.withoutAmount}</h3>
          <ul>
            {report.open_without_amount.map(({ kind, count }) => (
              <li key={kind}>
                {kindTitle(kind)}: {count}
              </li>
            ))}
          </ul>
        </section>
      )}
      <footer class="signature print-only">
        <p>{texts.signature(person.value?.name ?? "")}</p>
      </footer>
    </article>
  );
}

function CurrencyTotals({ totals }: { readonly totals: Totals }) {
  const texts = words().report;
  const { currency, settled, electronic, statement, open_differences: open } = totals;
  const kinds = open.kinds.map(({ kind, ...sum }) => [kindTitle(kind), sum] as const);
  return (
    <section class="stack-tight currency" aria-label={currency}>
      <h3>{currency}</h3>
      <div class="report-parts">
        <Part title={texts.settled} currency={currency} rows={named(settled)} total={settled.total} />
        <Part title={texts.electronic} currency={currency} rows={named(electronic)} total={electronic.total} />
        <Part
          title={texts.statement}
          currency={currency}
          rows={[...named(statement), [texts.rows("tips"), totals.tips]]}
          total={statement.total}
        />
        <Part title={texts.open} currency={currency} rows={kinds} total={open.total} />
      </div>
    </section>
  );
}

const named = (part: Readonly<Record<string, Sum>>): readonly (readonly [string, Sum])[] =>
  Object.entries(part)
    .filter(([name]) => name !== "total")
    .map(([name, sum]) => [words().report.rows(name), sum] as const);

interface PartProps {
  readonly title: string;
  readonly currency: string;
  readonly rows: readonly (readonly [string, Sum])[];
  readonly total: Sum;
}

function Part({ title, currency, rows, total }: PartProps) {
  const row = (name: string, { count, amount }: Sum, isTotal: boolean) => (
    <tr key={name} class={isTotal ? "report-total" : ""}>
      <th scope="row">{name}</th>
      <td class="cell-number">{count}</td>
      <td class="cell-number">{money(amount, currency)}</td>
    </tr>
  );
  return (
    <table class="table report-table">
      <caption>{title}</caption>
      <tbody>
        {rows.map(([name, sum]) => row(name, sum, false))}
        {row(words().report.total, total, true)}
      </tbody>
    </table>
  );
}
