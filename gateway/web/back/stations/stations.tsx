/** Filials and their stations, and which cashier drives each station. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { clockTime } from "../../shared/format.ts";
import { FailureNotice, Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { useLoad } from "../../shared/use-load.ts";
import { ask, openForm } from "../shell/dialogs.tsx";
import { ChoiceFilter, EmptyList, FilterBar, useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { optionsOf } from "../shell/labels.ts";
import { allPages, LARGEST_PAGE, Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { type Places, type Station, usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

/** Leases change within minutes. */
const LEASES_EVERY_MS = 10_000;

function useLeases() {
  return useLoad(
    "leases",
    () =>
      allPages(async (since_id) => {
        const result = await call("GET /api/backoffice/v1/leases/", { query: { since_id, limit: LARGEST_PAGE } });
        if (!result.ok) return result;
        const { leases, has_more, through_id } = result.reply;
        return { ...result, reply: { items: leases, next: has_more ? through_id : null } };
      }),
    { everyMs: LEASES_EVERY_MS },
  );
}

export function Stations() {
  const filters = useFilters();
  const places = usePlaces();
  const leases = useLeases();
  const { filial = "", status = "" } = filters.query;
  const stations = usePages(`stations ${filial} ${status}`, (since_id) => {
    const query = {
      since_id,
      filial_id: filial || undefined,
      status: (status || undefined) as Station["status"] | undefined,
    };
    return mapReply(call("GET /api/backoffice/v1/stations/", { query }), (reply) =>
      pageOf(reply.stations, reply.has_more, (station) => station.station_id),
    );
  });
  const reload = (): Promise<unknown> => Promise.all([places.reload(), stations.reload(), leases.reload()]);
  const leaseOf = ({ station_id }: Station) => leases.data?.find((driven) => driven.station_id === station_id)?.lease;
  const failure = places.failure ?? leases.failure;
  return (
    <>
      <SectionHead name="stations" intro={words().intro}>
        <Button onClick={() => addFilial(places.reload)}>{words().addFilial}</Button>
        {(places.data?.filials.length ?? 0) > 0 && (
          <Button kind="main" onClick={() => places.data && addStation(places.data, reload)}>
            {words().add}
          </Button>
        )}
      </SectionHead>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      <FilterBar filters={filters}>
        <ChoiceFilter
          filters={filters}
          name="filial"
          label={shellWords().filial}
          options={places.data?.filialOptions ?? []}
        />
        <ChoiceFilter
          filters={filters}
          name="status"
          label={shellWords().status}
          options={optionsOf("status", ["active", "suspended", "closed"])}
        />
      </FilterBar>
      <Listed of={stations} empty={<EmptyList filters={filters} title={words().empty} text={words().emptyText} />}>
        {(rows) => (
          <Table
            caption={shellWords().nav.stations}
            rows={rows}
            keyOf={(station) => station.station_id}
            columns={[
              { title: shellWords().name, cell: (station) => <strong>{station.name}</strong> },
              { title: shellWords().filial, cell: (station) => places.data?.filialName(station.filial_id) ?? "" },
              { title: words().currency, cell: (station) => station.currency },
              {
                title: shellWords().status,
                cell: (station) => (
                  <>
                    <StatusTag status={station.status} />
                    {station.sandbox && <Tag>{words().sandbox}</Tag>}
                  </>
                ),
              },
              {
                title: words().driver,
                cell: (station) => {
                  const lease = leaseOf(station);
                  // Before the leases are known, no station counts as free.
                  if (lease === undefined) return <span class="soft">{leases.data === null ? "–" : words().free}</span>;
                  return `${lease.cashier_name}, ${words().since} ${clockTime(lease.acquired_at)}`;
                },
              },
              {
                title: shellWords().actions,
                cell: (station) => (
                  <Actions station={station} driver={leaseOf(station)?.cashier_name ?? null} reload={reload} />
                ),
              },
            ]}
          />
        )}
      </Listed>
    </>
  );
}

function addFilial(then: () => unknown): void {
  openForm({
    title: words().addFilial,
    action: words().addFilial,
    fields: [{ name: "name", label: shellWords().name, maxLength: TEXT_BOUNDS.name }],
    run: ({ name = "" }, key) => call("POST /api/backoffice/v1/filials/", { body: { name }, key }),
    // No list shows a filial without a station.
    done: words().filialAdded,
    after: then,
  });
}

function addStation(places: Places, then: () => unknown): void {
  openForm({
    title: words().add,
    action: words().add,
    fields: [
      { name: "filial_id", label: shellWords().filial, options: places.filialOptions },
      { name: "name", label: shellWords().name, maxLength: TEXT_BOUNDS.name },
      {
        name: "currency",
        label: words().currency,
        help: words().currencyHelp,
        initial: places.stations[0]?.currency ?? "EUR",
        maxLength: 3,
        check: (value) => (/^[A-Z]{3}$/.test(value.toUpperCase()) ? null : words().currencyFault),
      },
    ],
    run: ({ filial_id, name = "", currency = "" }, key) =>
      call("POST /api/backoffice/v1/stations/", {
        body: { filial_id: Number(filial_id), name, currency: currency.toUpperCase() },
        key,
      }),
    after: then,
  });
}

interface ActionsProps {
  readonly station: Station;
  readonly driver: string | null;
  readonly reload: () => unknown;
}

function Actions({ station, driver, reload }: ActionsProps) {
  const { station_id, name, status } = station;
  const path = { station_id };
  const rename = (): void =>
    openForm({
      title: words().rename,
      action: words().rename,
      fields: [{ name: "name", label: shellWords().name, initial: name, maxLength: TEXT_BOUNDS.name }],
      run: (values) =>
        call("PATCH /api/backoffice/v1/stations/{station_id}/", { path, body: { name: values.name ?? "" } }),
      done: words().renamed,
      after: reload,
    });
  const suspend = (): void =>
    ask({
      title: words().suspendTitle(name),
      text: [words().suspendText],
      action: words().suspend,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/stations/{station_id}/suspend/", { path }),
      done: words().suspended,
      after: reload,
    });
  const resume = (): void =>
    ask({
      title: words().resumeTitle(name),
      text: [words().resumeText],
      action: words().resume,
      run: () => call("POST /api/backoffice/v1/stations/{station_id}/resume/", { path }),
      done: words().resumed,
      after: reload,
    });
  const close = (): void =>
    ask({
      title: words().closeTitle(name),
      text: [words().closeText],
      action: words().close,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/stations/{station_id}/close/", { path }),
      done: words().closed,
      after: reload,
    });
  const free = (): void =>
    ask({
      title: words().breakTitle(name),
      text: [words().breakText(driver ?? "")],
      action: words().breakLease,
      isDangerous: true,
      run: (_reason, key) => call("DELETE /api/backoffice/v1/stations/{station_id}/lease/", { path, key }),
      done: words().broken,
      after: reload,
    });
  return (
    <div class="cell-actions">
      <a class="button" href={`/back/devices/?station=${station_id}`}>
        {words().devices}
      </a>
      {status !== "closed" && <Button onClick={rename}>{words().rename}</Button>}
      {driver !== null && <Button onClick={free}>{words().breakLease}</Button>}
      {status === "active" && (
        <Button kind="danger" onClick={suspend}>
          {words().suspend}
        </Button>
      )}
      {status === "suspended" && <Button onClick={resume}>{words().resume}</Button>}
      {status !== "closed" && (
        <Button kind="danger" onClick={close}>
          {words().close}
        </Button>
      )}
    </div>
  );
}
