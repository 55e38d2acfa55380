/** The payments of all stations; filters and the chosen payment are in the address. */

import { priceOf } from "../../shared/amounts.ts";
import { addressOf, call } from "../../shared/call.ts";
import { dateAndTime, money } from "../../shared/format.ts";
import type { ReplyOf, RequestOf } from "../../shared/operations.ts";
import { Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { ChoiceFilter, EmptyList, FilterBar, TextFilter, useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { label, optionsOf } from "../shell/labels.ts";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { Timeline } from "./timeline.tsx";
import { words } from "./words.ts";

type Payment = ReplyOf<"GET /api/backoffice/v1/payments/">["payments"][number];
type Query = NonNullable<RequestOf<"GET /api/backoffice/v1/payments/">["query"]>;
type Filter = Omit<Query, "limit" | "before_id">;

const ROUTES = ["cash", "attested_terminal", "smart_pos", "dynamic_qr"] as const satisfies readonly Payment["route"][];
/** No status of a payment, only a choice of the filter: every payment that has not ended. */
const OPEN = "open";
const STATUSES = [
  "created",
  "presented",
  "processing",
  "succeeded",
  "cancelled",
  "expired",
] as const satisfies readonly Payment["status"][];
const EVERY_MS = 10_000;
const DAY_MS = 86_400_000;

export function Payments() {
  const { query } = useFilters();
  const chosen = Number(query.payment);
  return chosen > 0 ? <Timeline key={chosen} intentId={chosen} /> : <List />;
}

/** Midnight of a day in the browser's time zone. A text that is no date is sent as typed, so that the service refuses it. */
const midnight = (day: string | undefined, addMs: number): string | undefined => {
  const at = new Date(day !== undefined && /^\d{4}-\d\d-\d\d$/.test(day) ? `${day}T00:00:00` : Number.NaN);
  if (Number.isNaN(at.getTime())) return day || undefined;
  // A day has 23 or 25 hours when clocks change. 36 hours after midnight is on the next day in any case.
  const end = addMs === 0 ? at : new Date(new Date(at.getTime() + addMs + addMs / 2).setHours(0, 0, 0, 0));
  return end.toISOString();
};

/** The same filter for the list and for the file. */
function filterOf(query: Readonly<Record<string, string>>): Filter {
  const currency = query.currency || undefined;
  const amount = (typed: string | undefined): string | undefined =>
    currency === undefined || !typed ? undefined : (priceOf(typed, currency) ?? typed);
  return {
    filial_id: query.filial || undefined,
    station_id: query.station || undefined,
    route: query.route || undefined,
    status: query.status === OPEN ? undefined : query.status || undefined,
    ended: query.status === OPEN ? "false" : undefined,
    sandbox: query.sandbox || undefined,
    search: query.search || undefined,
    from: midnight(query.from, 0),
    to: midnight(query.to, DAY_MS),
    currency,
    min_amount: amount(query.least),
    max_amount: amount(query.most),
  };
}

function List() {
  const filters = useFilters();
  const places = usePlaces();
  const filter = filterOf(filters.query);
  const payments = usePages(
    `payments ${JSON.stringify(filter)}`,
    (before_id) =>
      mapReply(call("GET /api/backoffice/v1/payments/", { query: { ...filter, before_id } }), (reply) =>
        pageOf(reply.payments, reply.has_more, (payment) => payment.intent_id),
      ),
    EVERY_MS,
  );
  const currencies = [...new Set((places.data?.stations ?? []).map(({ currency }) => currency))];
  const csv = addressOf("GET /api/backoffice/v1/exports/payments/", { query: { ...filter, format: "csv" } });
  return (
    <>
      <SectionHead name="payments" intro={words().intro}>
        <a class="button" href={csv} download="payments.csv">
          {words().download}
        </a>
      </SectionHead>
      <FilterBar filters={filters}>
        <TextFilter filters={filters} name="search" label={words().search} />
        <ChoiceFilter
          filters={filters}
          name="status"
          label={shellWords().status}
          options={optionsOf("status", [OPEN, ...STATUSES])}
        />
        <ChoiceFilter filters={filters} name="route" label={words().route} options={optionsOf("route", ROUTES)} />
        <ChoiceFilter
          filters={filters}
          name="station"
          label={shellWords().station}
          options={places.data?.stationOptions() ?? []}
        />
        {(places.data?.filials.length ?? 0) > 1 && (
          <ChoiceFilter
            filters={filters}
            name="filial"
            label={shellWords().filial}
            options={places.data?.filialOptions ?? []}
          />
        )}
        <TextFilter filters={filters} name="from" label={words().from} type="date" />
        <TextFilter filters={filters} name="to" label={words().to} type="date" />
        <ChoiceFilter
          filters={filters}
          name="sandbox"
          label={words().kind}
          all={words().both}
          options={[
            { value: "false", text: words().real },
            { value: "true", text: words().tests },
          ]}
        />
        <ChoiceFilter
          filters={filters}
          name="currency"
          label={words().currency}
          options={currencies.map((value) => ({ value, text: value }))}
        />
        {filters.query.currency && (
          <>
            <TextFilter filters={filters} name="least" label={words().least} />
            <TextFilter filters={filters} name="most" label={words().most} />
          </>
        )}
      </FilterBar>
      <Listed of={payments} empty={<EmptyList filters={filters} title={words().empty} text={words().emptyText} />}>
        {(rows) => (
          <Table
            caption={shellWords().nav.payments}
            rows={rows}
            keyOf={(payment) => payment.intent_id}
            columns={[
              {
                title: words().began,
                cell: (payment) => (
                  <a class="nowrap" href={filters.addressWith({ payment: String(payment.intent_id) })}>
                    {dateAndTime(payment.created_at)}
                  </a>
                ),
              },
              { title: words().number, isNumber: true, cell: (payment) => payment.order_display_number },
              {
                title: shellWords().station,
                cell: (payment) => (
                  <>
                    {payment.station_name}
                    <div class="small soft">{payment.filial_name}</div>
                  </>
                ),
              },
              { title: words().route, cell: (payment) => label("route", payment.route) },
              {
                title: shellWords().status,
                cell: (payment) => (
                  <>
                    <StatusTag status={payment.status} />
                    {payment.money_may_have_moved !== "" && <Tag tone="bad">{words().unclear}</Tag>}
                  </>
                ),
              },
              { title: words().amount, isNumber: true, cell: (payment) => money(payment.amount, payment.currency) },
              { title: words().cashier, cell: (payment) => payment.cashier_name },
              { title: words().reference, cell: (payment) => <span class="small">{payment.reference}</span> },
            ]}
          />
        )}
      </Listed>
    </>
  );
}
