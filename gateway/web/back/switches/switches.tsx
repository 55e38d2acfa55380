/** Kill switches: what is frozen now, and a freeze of the organization, a station, a device or a provider. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call, type Result } from "../../shared/call.ts";
import { Choice } from "../../shared/field.tsx";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Empty, FailureNotice, Notice } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { ask } from "../shell/dialogs.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { allPages, isCut, LARGEST_PAGE, Listed, MAX_CHOICES, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

type KillSwitch = ReplyOf<"GET /api/backoffice/v1/kill-switches/">["kill_switches"][number];
type Kind = Exclude<KillSwitch["subject"]["kind"], "platform">;
const KINDS = ["station", "device", "provider", "organization"] as const satisfies readonly Kind[];

/** Another owner or the operator may set a kill switch at any time. */
const EVERY_MS = 10_000;

interface Subject {
  readonly kind: Kind;
  readonly id: number;
  readonly name: string;
}

function setSwitch({ kind, id }: Subject, isOn: boolean, reason: string): Promise<Result<unknown>> {
  const body = { reason };
  const root = "POST /api/backoffice/v1";
  if (kind === "organization") {
    return isOn ? call(`${root}/organization/freeze/`, { body }) : call(`${root}/organization/unfreeze/`, { body });
  }
  if (kind === "station") {
    const path = { station_id: id };
    return isOn
      ? call(`${root}/stations/{station_id}/freeze/`, { path, body })
      : call(`${root}/stations/{station_id}/unfreeze/`, { path, body });
  }
  if (kind === "device") {
    const path = { device_id: id };
    return isOn
      ? call(`${root}/devices/{device_id}/freeze/`, { path, body })
      : call(`${root}/devices/{device_id}/unfreeze/`, { path, body });
  }
  const path = { config_id: id };
  return isOn
    ? call(`${root}/provider-configs/{config_id}/freeze/`, { path, body })
    : call(`${root}/provider-configs/{config_id}/unfreeze/`, { path, body });
}

type Device = ReplyOf<"GET /api/backoffice/v1/devices/">["devices"][number];

const useDevices = (status: Device["status"]) =>
  useLoad(`switchable devices ${status}`, () =>
    allPages((since_id) =>
      mapReply(call("GET /api/backoffice/v1/devices/", { query: { since_id, status, limit: LARGEST_PAGE } }), (reply) =>
        pageOf(reply.devices, reply.has_more, (device) => device.device_id),
      ),
    ),
  );

/** What can be frozen, by kind. A revoked device and a closed station cannot act any more. */
function useSubjects() {
  const places = usePlaces();
  const deviceLists = [useDevices("pending"), useDevices("active"), useDevices("suspended")];
  const providers = useLoad("switchable providers", () =>
    allPages((since_id) =>
      mapReply(
        call("GET /api/backoffice/v1/provider-configs/", { query: { since_id, limit: LARGEST_PAGE } }),
        (reply) => pageOf(reply.provider_configs, reply.has_more, (config) => config.config_id),
      ),
    ),
  );
  const stationName = (id: number): string => places.data?.stationName(id) ?? "";
  const subjects: Readonly<Record<Kind, readonly Subject[]>> = {
    organization: [{ kind: "organization", id: 0, name: words().theOrganization }],
    station: (places.data?.stations ?? [])
      .filter(({ status }) => status !== "closed")
      .map(({ station_id, name }) => ({ kind: "station", id: station_id, name })),
    device: deviceLists
      .reduce<readonly Device[]>((all, { data }) => [...all, ...(data ?? [])], [])
      .map((device) => ({
        kind: "device",
        id: device.device_id,
        name: `${device.name} (${stationName(device.station_id)})`,
      })),
    provider: (providers.data ?? []).map(({ config_id, name }) => ({ kind: "provider", id: config_id, name })),
  };
  const lists = [places, ...deviceLists, providers];
  return {
    subjects,
    failed: lists.find(({ failure }) => failure !== null),
    isIncomplete: [places.data?.stations, ...deviceLists.map(({ data }) => data), providers.data].some((list) =>
      isCut(list ?? []),
    ),
  };
}

export function Switches() {
  const { subjects, failed, isIncomplete } = useSubjects();
  const switches = usePages(
    "switches",
    (since_id) =>
      mapReply(call("GET /api/backoffice/v1/kill-switches/", { query: { since_id } }), (reply) =>
        pageOf(reply.kill_switches, reply.has_more, (one) => one.switch_id),
      ),
    EVERY_MS,
  );
  const nameOf = ({ subject }: KillSwitch): string => {
    if (subject.kind === "platform") return words().kind.platform;
    if (subject.kind === "organization") return words().kind.organization;
    return (
      subjects[subject.kind].find(({ id }) => id === subject.id)?.name ?? `${words().kind[subject.kind]} ${subject.id}`
    );
  };
  const unfreeze = (one: KillSwitch): void => {
    const { kind, id } = one.subject;
    if (kind === "platform") return;
    const name = nameOf(one);
    ask({
      title: words().unfreezeTitle(name),
      text: [words().unfreezeText],
      action: words().unfreeze,
      asksReason: true,
      run: (reason) => setSwitch({ kind, id, name }, false, reason),
      done: words().unfrozen,
      after: switches.reload,
    });
  };
  return (
    <>
      <SectionHead name="switches" intro={words().intro} />
      {failed?.failure && <FailureNotice failure={failed.failure} onRetry={failed.reload} />}
      {isIncomplete && <Notice tone="warn" title={words().incomplete(MAX_CHOICES)} />}
      <FreezeForm subjects={subjects} then={switches.reload} />
      <div class="stack">
        <h2>{words().frozenNow}</h2>
        <Listed of={switches} empty={<Empty title={words().nothing}>{words().nothingText}</Empty>}>
          {(rows) => (
            <Table
              caption={words().frozenNow}
              rows={rows}
              keyOf={(one) => one.switch_id}
              columns={[
                { title: words().subject, cell: (one) => <strong>{nameOf(one)}</strong> },
                { title: words().why, cell: (one) => one.reason },
                { title: words().by, cell: (one) => one.changed_by.name },
                { title: words().since, cell: (one) => dateAndTime(one.changed_at) },
                {
                  title: shellWords().actions,
                  cell: (one) =>
                    one.subject.kind === "platform" ? (
                      words().ofOperator
                    ) : (
                      <div class="cell-actions">
                        <Button onClick={() => unfreeze(one)}>{words().unfreeze}</Button>
                      </div>
                    ),
                },
              ]}
            />
          )}
        </Listed>
      </div>
    </>
  );
}

interface FreezeFormProps {
  readonly subjects: Readonly<Record<Kind, readonly Subject[]>>;
  readonly then: () => unknown;
}

function FreezeForm({ subjects, then }: FreezeFormProps) {
  const kind = useSignal<Kind>("station");
  const chosen = useSignal("");
  const options = subjects[kind.value];
  const subject = options.find(({ id }) => String(id) === chosen.value) ?? options[0];
  const freeze = (): void => {
    if (subject === undefined) return;
    ask({
      title: words().freezeTitle(subject.kind === "organization" ? subject.name : words().quoted(subject.name)),
      text: [words().effect[subject.kind], words().alsoRunning],
      action: words().freeze,
      isDangerous: true,
      asksReason: true,
      run: (reason) => setSwitch(subject, true, reason),
      done: words().frozen,
      after: then,
    });
  };
  return (
    <section class="card stack" aria-labelledby="freeze-something">
      <h2 id="freeze-something">{words().freezeSomething}</h2>
      <div class="form-grid">
        <Choice
          label={words().subject}
          value={kind.value}
          options={KINDS.map((value) => ({ value, text: words().kind[value] }))}
          onChange={(value) => {
            kind.value = value;
            chosen.value = "";
          }}
        />
        {kind.value !== "organization" && (
          <Choice
            label={words().choose}
            value={chosen.value || String(options[0]?.id ?? "")}
            options={options.map(({ id, name }) => ({ value: String(id), text: name }))}
            onChange={(value) => {
              chosen.value = value;
            }}
          />
        )}
      </div>
      <p class="soft">{words().effect[kind.value]}</p>
      <Button kind="danger" onClick={freeze} disabledBecause={subject === undefined ? words().nothingToFreeze : null}>
        {words().freeze} …
      </Button>
    </section>
  );
}
