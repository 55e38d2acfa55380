/** The current state of the station and its companion, polled while the page is visible. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../shared/call.ts";
import { serverTime } from "../shared/clock.ts";
import type { ReplyOf } from "../shared/operations.ts";

type Live = Extract<ReplyOf<"GET /api/cashier/v1/stations/{station_id}/live/">, { readonly type: "state" }>;
type Companion = ReplyOf<"GET /api/backoffice/v1/devices/{device_id}/">;

/** Short enough that a person sees each change. */
const POLL_MS = 1_000;

export const live = signal<Live | null>(null);
export const companion = signal<Companion | null>(null);

/** Polls with one request at a time: a slow answer delays the next poll. */
function usePoll(ask: () => Promise<void>, of: number | null): void {
  useEffect(() => {
    if (of === null) return;
    let timer: ReturnType<typeof setTimeout>;
    let isStopped = false;
    const poll = async (): Promise<void> => {
      if (!document.hidden) await ask();
      if (!isStopped) timer = setTimeout(() => void poll(), POLL_MS);
    };
    void poll();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }, [of]);
}

export function useLive(stationId: number): void {
  usePoll(async () => {
    const path = { station_id: stationId };
    const result = await call("GET /api/cashier/v1/stations/{station_id}/live/", { path });
    // Without a current state the page shows none: a guest must not scan a code that was already paid.
    live.value = result.ok && result.reply.type === "state" ? result.reply : null;
    if (live.value !== null) serverTime(live.value.server_time);
  }, stationId);
}

export function useCompanion(deviceId: number | null): void {
  usePoll(async () => {
    if (deviceId === null) return;
    const path = { device_id: deviceId };
    const result = await call("GET /api/backoffice/v1/devices/{device_id}/", { path });
    companion.value = result.ok ? result.reply : null;
  }, deviceId);
}
