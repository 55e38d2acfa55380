/** All stations of the organization: which are free, and who drives the others. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { Empty, FailureNotice, Skeleton, Tag } from "../shared/states.tsx";
import { Header } from "./header.tsx";
import { withdrawalText } from "./reasons.ts";
import { chooseStation, type Station } from "./session.ts";
import { words } from "./words.ts";

/** Stations of one request. */
const PAGE = 100;
/** The list has no live view, so the page polls it. */
const REFRESH_MS = 5_000;

async function allStations(): Promise<readonly Station[] | Failure> {
  const found: Station[] = [];
  for (;;) {
    const since_id = found[found.length - 1]?.station_id;
    const result = await call("GET /api/cashier/v1/stations/", { query: { limit: PAGE, since_id } });
    if (!result.ok) return result;
    found.push(...result.reply.stations);
    if (!result.reply.has_more) return found;
  }
}

export function Stations() {
  const stations = useSignal<readonly Station[] | null>(null);
  const failure = useSignal<Failure | null>(null);
  const load = async (): Promise<void> => {
    const found = await allStations();
    if ("ok" in found) failure.value = found;
    else {
      failure.value = null;
      stations.value = found;
    }
  };
  useEffect(() => {
    void load();
    const timer = setInterval(() => document.hidden || void load(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const list = stations.value;
  return (
    <>
      <Header title={words().stationsTitle} />
      <main class="till-main stack">
        {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
        {list === null && failure.value === null && <Skeleton />}
        {list !== null && list.length === 0 && (
          <Empty title={words().noStations}>
            <p>{words().noStationsHelp}</p>
          </Empty>
        )}
        <ul class="station-list">
          {(list ?? []).map((station) => (
            <li key={station.station_id}>
              <button type="button" class="station-card" onClick={() => chooseStation(station.station_id)}>
                <span class="station-name">{station.name}</span>
                <span class="row">
                  <StationTags station={station} />
                </span>
              </button>
            </li>
          ))}
        </ul>
      </main>
    </>
  );
}

function StationTags({ station }: { readonly station: Station }) {
  const { lease, blocked_reason: blocked } = station;
  return (
    <>
      {blocked !== "" && <Tag tone="bad">{withdrawalText(blocked)}</Tag>}
      {lease === null && <Tag tone="good">{words().free}</Tag>}
      {lease?.mine === true && <Tag tone="accent">{words().yours}</Tag>}
      {lease?.mine === false && <Tag tone="warn">{words().drivenBy(lease.cashier_name)}</Tag>}
      {station.active_intent_id !== null && <Tag>{words().collecting}</Tag>}
      {station.sandbox && <Tag>{words().sandbox}</Tag>}
    </>
  );
}
