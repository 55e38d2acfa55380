/** What the station and its companion do now, asked for again and again while the page is visible. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../shared/call.ts";
import { serverTime } from "../shared/clock.ts";
import type { ReplyOf } from "../shared/operations.ts";

type Live = Extract<ReplyOf<"GET /api/cashier/v1/stations/{station_id}/live/">, { readonly type: "state" }>;
export type Companion = ReplyOf<"GET /api/backoffice/v1/devices/{device_id}/">;

/** As often as a person notices a change. */
const POLL_MS = 1_000;

export const live = signal<Live | null>(null);
export const companion = signal<Companion | null>(null);

/** One question at a time: a slow answer delays the next. */
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
    // What is not known to be the newest is not shown: a guest must not scan a code that was paid.
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
