/** One device: its data, its enrollment codes, and the actions that the owner can take. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Notice } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { useLoad } from "../../shared/use-load.ts";
import { ask, openForm } from "../shell/dialogs.tsx";
import type { Filters } from "../shell/filters.tsx";
import { Facts, SectionHead } from "../shell/frame.tsx";
import { label } from "../shell/labels.ts";
import { Listed, LoadedView, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { issueCode } from "./code.tsx";
import { Presence } from "./presence.tsx";
import { words } from "./words.ts";

type Detail = ReplyOf<"GET /api/backoffice/v1/devices/{device_id}/">;

/** Heartbeats come every ten seconds. */
const EVERY_MS = 5_000;

interface DeviceDetailProps {
  readonly deviceId: number;
  readonly filters: Filters;
}

export function DeviceDetail({ deviceId, filters }: DeviceDetailProps) {
  const path = { device_id: deviceId };
  const places = usePlaces();
  const device = useLoad(`device ${deviceId}`, () => call("GET /api/backoffice/v1/devices/{device_id}/", { path }), {
    everyMs: EVERY_MS,
  });
  const codes = usePages(
    `codes ${deviceId}`,
    (before_id) =>
      mapReply(
        call("GET /api/backoffice/v1/devices/{device_id}/enrollment-codes/", { path, query: { before_id, limit: 10 } }),
        (reply) => pageOf(reply.enrollment_codes, reply.has_more, (code) => code.code_id),
      ),
    EVERY_MS,
  );
  const reload = (): Promise<unknown> => Promise.all([device.reload(), codes.reload()]);
  const revokeCode = (codeId: number): void =>
    ask({
      title: words().revokeCodeTitle,
      text: [words().revokeCodeText],
      action: words().revokeCode,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/enrollment-codes/{code_id}/revoke/", { path: { code_id: codeId } }),
      done: words().codeRevoked,
      after: reload,
    });
  return (
    <>
      <SectionHead name="devices" />
      <p>
        <a href={filters.addressWith({ device: "" })}>{shellWords().back}</a>
      </p>
      <LoadedView of={device}>
        {(found) => (
          <>
            <section class="card stack" aria-labelledby="device-name">
              <div class="section-head">
                <h2 id="device-name">{found.name}</h2>
                <DeviceActions device={found} reload={reload} />
              </div>
              {found.blocked_reason !== "" && found.status !== "revoked" && (
                <Notice tone="warn" title={words().blocked}>
                  <p>{label("blocked", found.blocked_reason)}</p>
                </Notice>
              )}
              <Facts
                of={[
                  [shellWords().status, <StatusTag key="status" status={found.status} />],
                  [words().presence, <Presence key="presence" device={found} />],
                  [words().kind, label("deviceKind", found.kind)],
                  [shellWords().station, places.data?.stationName(found.station_id) ?? ""],
                  [words().capabilities, found.capabilities.join(", ")],
                  [
                    words().handoff,
                    found.handoff_target === "" ? "–" : <code key="target">{found.handoff_target}</code>,
                  ],
                  [words().enrolled, found.enrolled_at === null ? shellWords().never : dateAndTime(found.enrolled_at)],
                  [shellWords().created, dateAndTime(found.created_at)],
                ]}
              />
              <Heartbeat device={found} />
            </section>
            <div class="stack">
              <h2>{words().codes}</h2>
              <Listed of={codes} empty={<p class="soft">{words().noCodes}</p>}>
                {(items) => (
                  <Table
                    caption={words().codes}
                    rows={items}
                    keyOf={(code) => code.code_id}
                    columns={[
                      { title: words().issued, cell: (code) => dateAndTime(code.created_at) },
                      { title: shellWords().status, cell: (code) => <StatusTag status={code.status} /> },
                      { title: words().expires, cell: (code) => dateAndTime(code.expires_at) },
                      {
                        title: shellWords().actions,
                        cell: (code) =>
                          code.status === "open" && (
                            <div class="cell-actions">
                              <Button onClick={() => revokeCode(code.code_id)}>{words().revokeCode}</Button>
                            </div>
                          ),
                      },
                    ]}
                  />
                )}
              </Listed>
            </div>
          </>
        )}
      </LoadedView>
    </>
  );
}

function Heartbeat({ device }: { readonly device: Detail }) {
  const { last_heartbeat: last } = device;
  return (
    <div class="stack-tight">
      <h3>{words().lastHeartbeat}</h3>
      {last === null ? (
        <p class="soft">{words().noHeartbeat}</p>
      ) : (
        <>
          <p>{dateAndTime(last.at)}</p>
          {Object.keys(last.summary).length > 0 && (
            <>
              <p class="small soft">{words().summary}</p>
              <pre>{JSON.stringify(last.summary, null, 2)}</pre>
            </>
          )}
        </>
      )}
    </div>
  );
}

interface DeviceActionsProps {
  readonly device: Detail;
  readonly reload: () => unknown;
}

function DeviceActions({ device, reload }: DeviceActionsProps) {
  const { name, status } = device;
  const path = { device_id: device.device_id };
  const isCompanion = device.kind === "smart_pos_companion";
  const change = (): void =>
    openForm({
      title: words().change,
      action: words().change,
      fields: [
        { name: "name", label: shellWords().name, initial: name, maxLength: TEXT_BOUNDS.name },
        ...(isCompanion
          ? [
              {
                name: "handoff_target",
                label: words().handoff,
                help: words().handoffHelp,
                initial: device.handoff_target,
                isOptional: true,
                maxLength: 500,
              },
            ]
          : []),
      ],
      run: (_values, _key, { name: newName, handoff_target }) =>
        call("PATCH /api/backoffice/v1/devices/{device_id}/", { path, body: { name: newName, handoff_target } }),
      done: words().changed,
      after: reload,
    });
  const suspend = (): void =>
    ask({
      title: words().suspendTitle(name),
      text: [words().suspendText],
      action: words().suspend,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/devices/{device_id}/suspend/", { path }),
      done: words().suspended,
      after: reload,
    });
  const resume = (): void =>
    ask({
      title: words().resumeTitle(name),
      text: [words().resumeText],
      action: words().resume,
      run: () => call("POST /api/backoffice/v1/devices/{device_id}/resume/", { path }),
      done: words().resumed,
      after: reload,
    });
  const reset = (): void =>
    ask({
      title: words().resetTitle(name),
      text: [words().resetText],
      action: words().reset,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/devices/{device_id}/reset/", { path }),
      done: words().resetDone,
      after: reload,
    });
  const revoke = (): void =>
    ask({
      title: words().revokeTitle(name),
      text: [words().revokeText],
      action: words().revoke,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/devices/{device_id}/revoke/", { path }),
      done: words().revoked,
      after: reload,
    });
  if (status === "revoked") return null;
  return (
    <div class="row">
      {status === "pending" && (
        <Button kind="main" onClick={() => issueCode(device, reload)}>
          {words().issue}
        </Button>
      )}
      <Button onClick={change}>{words().change}</Button>
      {status === "active" && <Button onClick={suspend}>{words().suspend}</Button>}
      {status === "suspended" && <Button onClick={resume}>{words().resume}</Button>}
      {status !== "pending" && <Button onClick={reset}>{words().reset}</Button>}
      <Button kind="danger" onClick={revoke}>
        {words().revoke}
      </Button>
    </div>
  );
}
