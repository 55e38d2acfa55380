/** The days and months of an account: what each still needs before it can be closed, and its closing. */
import { useSignal } from "@preact/signals";
import { Button } from "../shared/button.tsx";
import { call, type Result } from "../shared/call.ts";
import { now } from "../shared/clock.ts";
import type { Failure } from "../shared/failures.ts";
import { Choice, Field } from "../shared/field.tsx";
import { fieldFault } from "../shared/field-error-texts.ts";
import { calendarDay, calendarMonth, localDay } from "../shared/format.ts";
import type { ReplyOf, RequestOf } from "../shared/operations.ts";
import { Empty, FailureNotice, Skeleton, Tag } from "../shared/states.tsx";
import { Table } from "../shared/table.tsx";
import { toast } from "../shared/toasts.tsx";
import { useLoad } from "../shared/use-load.ts";
import { go, param } from "./address.ts";
import { ClosingDialog } from "./closing-dialog.tsx";
import { accounts } from "./known.ts";
import { WithReason } from "./with-reason.tsx";
import { words } from "./words.ts";

const LIST = "GET /api/reconciliation/v1/periods/";
type Page = ReplyOf<typeof LIST>;
type Period = Page["periods"][number];
type Filter = NonNullable<RequestOf<typeof LIST>["query"]>;

const DAY_MS = 24 * 3_600_000;
/** The default range: a month of days, or a year of months. */
const SPAN_DAYS = { day: 31, month: 365 } as const;
/** Runs end and periods become ready while the page shows them. */
const REFRESH_MS = 10_000;
/** A page of the API has 100 periods. A person who has more than these pages chooses an account or fewer days. */
const MAX_PAGES = 10;

const periodName = ({ kind, from_date }: Period): string =>
  kind === "day" ? calendarDay(from_date) : calendarMonth(from_date);

const newestFirst = (periods: readonly Period[]): readonly Period[] =>
  periods
    .map((_each, index) => periods[periods.length - 1 - index])
    .filter((each): each is Period => each !== undefined);

/** The periods of the filter, at most `MAX_PAGES` pages. */
async function readPeriods(filter: Filter): Promise<Result<Page>> {
  const periods: Period[] = [];
  for (let page = 1; ; page += 1) {
    const last = periods[periods.length - 1];
    const since = last && { since_account_id: last.account_id, since_date: last.from_date };
    const listed = await call(LIST, { query: { ...filter, ...since } });
    if (!listed.ok) return listed;
    periods.push(...listed.reply.periods);
    const { has_more } = listed.reply;
    if (!has_more || page === MAX_PAGES) return { ...listed, reply: { periods, has_more } };
  }
}

export function PeriodsSection() {
  const asked = useSignal<Period | null>(null);
  const shownClosing = useSignal<number | null>(null);
  const kind = param("kind") === "month" ? "month" : "day";
  const accountId = param("account_id");
  const from = param("from") || localDay(now.peek() - SPAN_DAYS[kind] * DAY_MS);
  const to = param("to") || localDay(now.peek());
  const query = {
    kind,
    from_date: from,
    to_date: to,
    ...(accountId === "" ? {} : { account_id: accountId }),
  } as const;
  const { data, failure, reload } = useLoad(`${kind} ${accountId} ${from} ${to}`, () => readPeriods(query), {
    everyMs: REFRESH_MS,
  });
  const wrongEnd = fieldFault(failure, "/to_date");
  const periods = data?.periods;
  const texts = words().periods;
  return (
    <div class="periods stack">
      <div class="filter-fields">
        <Choice
          label={words().filter.account}
          value={accountId}
          onChange={(value) => go({ account_id: value }, { isStep: false })}
          options={[
            { value: "", text: words().filter.all },
            ...accounts.value.map(({ account_id, name }) => ({ value: String(account_id), text: name })),
          ]}
        />
        <Choice
          label={texts.kind}
          value={kind}
          onChange={(value) => go({ kind: value, from: null, to: null }, { isStep: false })}
          options={[
            { value: "day", text: texts.day },
            { value: "month", text: texts.month },
          ]}
        />
        <Field
          label={texts.from}
          type="date"
          value={from}
          onInput={(value) => go({ from: value }, { isStep: false })}
        />
        <Field
          label={texts.to}
          type="date"
          value={to}
          fault={wrongEnd}
          onInput={(value) => go({ to: value }, { isStep: false })}
        />
      </div>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {periods === undefined && failure === null && <Skeleton />}
      {periods?.length === 0 && failure === null && (
        <Empty title={texts.empty}>
          <p>{texts.emptyHelp}</p>
        </Empty>
      )}
      {periods !== undefined && periods.length > 0 && (
        <Table
          caption={texts.title}
          rows={newestFirst(periods)}
          keyOf={(period) => `${period.account_id} ${period.from_date}`}
          columns={[
            {
              title: texts.period,
              cell: (period) => <span class="nowrap">{periodName(period)}</span>,
            },
            {
              title: words().filter.account,
              cell: (period) => accounts.value.find(({ account_id }) => account_id === period.account_id)?.name ?? "",
            },
            {
              title: texts.state,
              cell: ({ state }) => (
                <Tag tone={state === "closed" ? "good" : state === "ready" ? "accent" : "plain"}>
                  {texts.states[state]}
                </Tag>
              ),
            },
            {
              title: texts.missing,
              cell: ({ missing }) => (
                <ul>
                  {missing.map(({ code, count, day }) => (
                    <li key={code}>
                      {texts.lacks(code, count, day === null || day === undefined ? "" : calendarDay(day))}
                    </li>
                  ))}
                </ul>
              ),
            },
            {
              title: texts.decision,
              cell: (period) => (
                <>
                  {period.state === "ready" && (
                    <Button
                      onClick={() => {
                        asked.value = period;
                      }}
                    >
                      {texts.close}
                    </Button>
                  )}
                  {period.closing_id !== null && (
                    <Button
                      onClick={() => {
                        shownClosing.value = period.closing_id;
                      }}
                    >
                      {words().closing.open}
                    </Button>
                  )}
                </>
              ),
            },
          ]}
        />
      )}
      {data?.has_more === true && <p class="small soft">{texts.more}</p>}
      {shownClosing.value !== null && (
        <ClosingDialog
          closingId={shownClosing.value}
          onClose={() => {
            shownClosing.value = null;
          }}
        />
      )}
      {asked.value !== null && (
        <ClosePeriod
          period={asked.value}
          onClosed={() => void reload()}
          onEnd={() => {
            asked.value = null;
          }}
        />
      )}
    </div>
  );
}

interface ClosePeriodProps {
  readonly period: Period;
  readonly onClosed: () => void;
  readonly onEnd: () => void;
}

function ClosePeriod({ period, onClosed, onEnd }: ClosePeriodProps) {
  const texts = words().periods;
  const confirm = async (reason: string): Promise<Failure | null> => {
    const { account_id, kind, from_date } = period;
    const done = await call("POST /api/reconciliation/v1/periods/close/", {
      body: { account_id, kind, from_date, reason },
    });
    if (!done.ok) return done;
    toast(texts.closed);
    onClosed();
    return null;
  };
  return (
    <WithReason
      title={texts.closeTitle(periodName(period))}
      action={texts.close}
      isDangerous
      onConfirm={confirm}
      onClose={onEnd}
    >
      <p>{texts.closeHelp}</p>
    </WithReason>
  );
}
