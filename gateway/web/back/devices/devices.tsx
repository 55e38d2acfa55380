/** The devices of all stations; `?device=` opens one. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { openForm } from "../shell/dialogs.tsx";
import { ChoiceFilter, EmptyList, FilterBar, useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { label, optionsOf } from "../shell/labels.ts";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { DeviceDetail } from "./device.tsx";
import { Presence } from "./presence.tsx";
import { words } from "./words.ts";

type Device = ReplyOf<"GET /api/backoffice/v1/devices/">["devices"][number];
type DeviceStatus = Device["status"];

/** Heartbeats come every ten seconds. */
const EVERY_MS = 10_000;
const KINDS = ["customer_display", "smart_pos_companion"] as const satisfies readonly Device["kind"][];

export function Devices() {
  const filters = useFilters();
  const chosen = Number(filters.query.device);
  return chosen > 0 ? <DeviceDetail key={chosen} deviceId={chosen} filters={filters} /> : <DeviceList />;
}

function DeviceList() {
  const filters = useFilters();
  const { station = "", status = "" } = filters.query;
  const places = usePlaces();
  const devices = usePages(
    `devices ${station} ${status}`,
    (since_id) => {
      const query = {
        since_id,
        station_id: station || undefined,
        status: (status || undefined) as DeviceStatus | undefined,
      };
      return mapReply(call("GET /api/backoffice/v1/devices/", { query }), (reply) =>
        pageOf(reply.devices, reply.has_more, (device) => device.device_id),
      );
    },
    EVERY_MS,
  );
  const register = (): void =>
    openForm({
      title: words().register,
      action: words().register,
      fields: [
        {
          name: "station_id",
          label: shellWords().station,
          options: places.data?.openStations ?? [],
          initial: station,
        },
        { name: "kind", label: words().kind, options: optionsOf("deviceKind", KINDS) },
        { name: "name", label: shellWords().name, maxLength: TEXT_BOUNDS.name },
        {
          name: "qr",
          label: words().showsQr,
          options: [
            { value: "yes", text: shellWords().yes },
            { value: "no", text: shellWords().no },
          ],
          when: ({ kind }) => kind === "customer_display",
        },
        {
          name: "handoff_target",
          label: words().handoff,
          help: words().handoffHelp,
          isOptional: true,
          maxLength: 500,
          when: ({ kind }) => kind === "smart_pos_companion",
        },
      ],
      run: (values, key) => {
        const kind = values.kind as Device["kind"];
        const isPlainDisplay = kind === "customer_display" && values.qr === "no";
        return call("POST /api/backoffice/v1/devices/", {
          body: {
            station_id: Number(values.station_id),
            name: values.name ?? "",
            kind,
            ...(isPlainDisplay ? { capabilities: ["display_total"] } : {}),
            ...(kind === "smart_pos_companion" ? { handoff_target: values.handoff_target ?? "" } : {}),
          },
          key,
        });
      },
      after: (device) => filters.set({ device: String(device.device_id) }),
    });
  const canRegister = (places.data?.openStations.length ?? 0) > 0;
  return (
    <>
      <SectionHead name="devices" intro={words().intro}>
        {canRegister && (
          <Button kind="main" onClick={register}>
            {words().register}
          </Button>
        )}
      </SectionHead>
      <FilterBar filters={filters}>
        <ChoiceFilter
          filters={filters}
          name="station"
          label={shellWords().station}
          options={places.data?.stationOptions() ?? []}
        />
        <ChoiceFilter
          filters={filters}
          name="status"
          label={shellWords().status}
          options={optionsOf("status", ["pending", "active", "suspended", "revoked"])}
        />
      </FilterBar>
      <Listed of={devices} empty={<EmptyList filters={filters} title={words().empty} text={words().emptyText} />}>
        {(items) => (
          <Table
            caption={shellWords().nav.devices}
            rows={items}
            keyOf={(device) => device.device_id}
            columns={[
              {
                title: words().device,
                cell: (device) => (
                  <a href={filters.addressWith({ device: String(device.device_id) })}>
                    <strong>{device.name}</strong>
                  </a>
                ),
              },
              { title: words().kind, cell: (device) => label("deviceKind", device.kind) },
              { title: shellWords().station, cell: (device) => places.data?.stationName(device.station_id) ?? "" },
              { title: shellWords().status, cell: (device) => <StatusTag status={device.status} /> },
              { title: words().presence, cell: (device) => <Presence device={device} /> },
            ]}
          />
        )}
      </Listed>
    </>
  );
}
