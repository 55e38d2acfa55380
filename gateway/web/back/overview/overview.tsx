/** Live counts, the day by hour and route, and what needs a person. */
import { useSignal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../../shared/call.ts";
import { dateAndTime, number } from "../../shared/format.ts";
import { locale } from "../../shared/language.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Empty } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { label } from "../shell/labels.ts";
import { allPages, LARGEST_PAGE, LoadedView, mapReply, pageOf } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { shellWords } from "../shell/words.ts";
import type { ChartProps } from "./chart.tsx";
import { words } from "./words.ts";

type OverviewFacts = ReplyOf<"GET /api/backoffice/v1/overview/">;
type RouteFacts = OverviewFacts["routes"][number];

const EVERY_MS = 5_000;
/** Slower than `EVERY_MS`: it reads all active devices, which may be several pages. */
const DEVICES_EVERY_MS = 20_000;
const HOURS = 24;

export function Overview() {
  const filters = useFilters();
  const { day = "", sandbox = "" } = filters.query;
  const overview = useLoad(
    `overview ${day} ${sandbox}`,
    () =>
      call("GET /api/backoffice/v1/overview/", {
        query: {
          day: day || undefined,
          sandbox: sandbox || undefined,
          time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        },
      }),
    { everyMs: EVERY_MS, keepsOld: true },
  );
  const { data, failure } = overview;
  return (
    <>
      <SectionHead name="overview" intro={words().intro} />
      {data !== null && <Tiles now={data.now} />}
      {/* Also beside a failure: the day in the address may be the reason, and a person must be able to change it. */}
      {(data !== null || failure !== null) && (
        <FilterBar filters={filters}>
          <TextFilter filters={filters} name="day" label={words().day} type="date" unset={data?.day} />
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
        </FilterBar>
      )}
      <LoadedView of={overview}>
        {(facts) => (
          <>
            <Day facts={facts} />
            <OfflineDevices count={facts.now.devices_offline} />
            <section class="stack-tight" aria-labelledby="open-issues">
              <h2 id="open-issues">{words().openIssues}</h2>
              {facts.now.open_issues === 0 ? (
                <p class="soft">{words().noIssues}</p>
              ) : (
                <p>
                  <strong>{number(facts.now.open_issues)}</strong> · <a href="/reconcile/">{words().reconcile}</a>
                </p>
              )}
            </section>
          </>
        )}
      </LoadedView>
    </>
  );
}

function Tiles({ now }: Pick<OverviewFacts, "now">) {
  const tiles = [
    { text: words().collections, count: now.open_collections, href: "/back/payments/?status=open" },
    { text: words().leased(now.stations), count: now.leased_stations, href: "/back/stations/" },
    { text: words().online, count: now.devices_online, href: "/back/devices/" },
    { text: words().offline, count: now.devices_offline, href: "/back/devices/", isBad: now.devices_offline > 0 },
    { text: words().issues, count: now.open_issues, href: "/reconcile/", isBad: now.open_issues > 0 },
  ];
  return (
    <div class="tiles" role="group" aria-label={words().now}>
      {tiles.map(({ text, count, href, isBad = false }) => (
        <a key={text} class={isBad ? "card tile tile-bad" : "card tile"} href={href}>
          <span class="tile-number">{number(count)}</span>
          <span class="small soft">{text}</span>
        </a>
      ))}
    </div>
  );
}

const sum = (hours: RouteFacts["hours"], field: "collections" | "succeeded"): number =>
  hours.reduce((total, hour) => total + hour[field], 0);

function Day({ facts }: { readonly facts: OverviewFacts }) {
  const Chart = useChart();
  const all = facts.routes.flatMap(({ hours }) => hours);
  const perHour = (field: "collections" | "succeeded"): number[] =>
    Array.from({ length: HOURS }, (_unused, hour) =>
      sum(
        all.filter((each) => each.hour === hour),
        field,
      ),
    );
  const [collections, paid] = [perHour("collections"), perHour("succeeded")];
  const total = sum(all, "collections");
  if (total === 0) return <Empty title={words().noCollections}>{words().noCollectionsText}</Empty>;
  return (
    <>
      <section class="card stack" aria-labelledby="per-hour">
        <h2 id="per-hour">{words().perHour}</h2>
        <div class="chart">
          {Chart !== null && <Chart collections={collections} paid={paid} label={words().chart(total)} />}
        </div>
        <p class="legend small">
          <span>
            <span class="legend-colour legend-paid" />
            {words().paid}
          </span>
          <span>
            <span class="legend-colour" />
            {words().notPaid}
          </span>
        </p>
        <details>
          <summary>{words().table}</summary>
          <Table
            caption={words().table}
            rows={collections
              .map((count, hour) => ({ hour, count, paid: paid[hour] ?? 0 }))
              .filter(({ count }) => count > 0)}
            keyOf={({ hour }) => hour}
            columns={[
              { title: words().hour, cell: ({ hour }) => `${hour}:00` },
              { title: words().count, isNumber: true, cell: ({ count }) => number(count) },
              { title: words().paid, isNumber: true, cell: (row) => number(row.paid) },
            ]}
          />
        </details>
      </section>
      <div class="stack-tight">
        <h2>{words().routes}</h2>
        <Table
          caption={words().routes}
          rows={facts.routes}
          keyOf={({ route }) => route}
          columns={[
            { title: words().route, cell: ({ route }) => label("route", route) },
            { title: words().count, isNumber: true, cell: ({ hours }) => number(sum(hours, "collections")) },
            { title: words().success, isNumber: true, cell: ({ hours }) => rateOf(hours) },
            { title: words().median, isNumber: true, cell: ({ median_seconds }) => durationOf(median_seconds) },
          ]}
        />
      </div>
    </>
  );
}

function rateOf(hours: RouteFacts["hours"]): string {
  const all = sum(hours, "collections");
  if (all === 0) return "–";
  const format = new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 1 });
  return format.format(sum(hours, "succeeded") / all);
}

function durationOf(seconds: number | null): string {
  if (seconds === null) return "–";
  return words().seconds(new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }).format(seconds));
}

/** The chart's library is as large as the rest of the page. So only this section loads it. */
function useChart(): FunctionComponent<ChartProps> | null {
  const chart = useSignal<FunctionComponent<ChartProps> | null>(null);
  useEffect(() => {
    const load = async (): Promise<void> => {
      const loaded = await import("./chart.tsx").catch(() => null);
      // Without it the table has the same numbers.
      if (loaded !== null) chart.value = loaded.Chart;
    };
    void load();
  }, []);
  return chart.value;
}

function OfflineDevices({ count }: { readonly count: number }) {
  // The count changes when a station with such devices closes.
  const places = usePlaces(count);
  const devices = useLoad(
    `offline devices ${count}`,
    () =>
      allPages((since_id) =>
        mapReply(
          call("GET /api/backoffice/v1/devices/", { query: { since_id, status: "active", limit: LARGEST_PAGE } }),
          (reply) => pageOf(reply.devices, reply.has_more, (device) => device.device_id),
        ),
      ),
    // The count stays the same when one device comes online while another goes offline. So it also polls.
    { everyMs: DEVICES_EVERY_MS, keepsOld: true },
  );
  return (
    <div class="stack-tight">
      <h2>{words().offlineDevices}</h2>
      <LoadedView of={devices}>
        {(found) => {
          // The devices of a closed station stay active, but never come back.
          const rows = found.filter(
            ({ liveness, station_id }) =>
              liveness !== null && !liveness.online && places.data?.isClosed(station_id) !== true,
          );
          if (rows.length === 0) return <p class="soft">{words().allOnline}</p>;
          return (
            <Table
              caption={words().offlineDevices}
              rows={rows}
              keyOf={(device) => device.device_id}
              columns={[
                {
                  title: words().device,
                  cell: (device) => <a href={`/back/devices/?device=${device.device_id}`}>{device.name}</a>,
                },
                { title: shellWords().station, cell: (device) => places.data?.stationName(device.station_id) ?? "" },
                {
                  title: words().since,
                  cell: (device) => (device.liveness?.since ? dateAndTime(device.liveness.since) : shellWords().never),
                },
              ]}
            />
          );
        }}
      </LoadedView>
    </div>
  );
}
