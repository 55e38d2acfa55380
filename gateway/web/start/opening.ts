/**
 * From the link to the four parts of the page:
 *
 *   opening ── link accepted ──► open: signed in, the station taken, the display paired
 *      ├── link used or expired ──► used       (both offer the pages where people sign in)
 *      ├── no link, no session ──► no_link
 *      └── a call failed ──► failed ── try again ──► opening
 */
import { signal } from "@preact/signals";
import { frameAddress } from "../display/first-minute.ts";
import { call, newKey, type Result } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import type { ReplyOf } from "../shared/operations.ts";

type Device = ReplyOf<"GET /api/backoffice/v1/devices/">["devices"][number];

export interface Place {
  readonly stationId: number;
  /** The companion that the start runs; null where the owner has revoked it. */
  readonly companionId: number | null;
  readonly tillAddress: string;
  readonly displayAddress: string;
}

type Opening =
  | { readonly step: "opening" | "used" | "no_link" }
  | { readonly step: "failed"; readonly failure: Failure }
  | { readonly step: "open"; readonly place: Place };

export const opening = signal<Opening>({ step: "opening" });

/** Stored for this tab, so that a reload needs no second link. */
const STORED_STATION = "dp_start_station";
/** The name of this page's display. The virtual display of the start is another device. */
const DISPLAY_NAME = "Display of the first minute";
/** A station has 16 devices at most, but the list also contains revoked ones. */
const PAGE = 100;

/** Thrown when a call fails. */
class Failed extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.code);
    this.failure = failure;
  }
}

async function good<T>(result: Promise<Result<T>>): Promise<T> {
  const answered = await result;
  if (!answered.ok) throw new Failed(answered);
  return answered.reply;
}

/** The token of the link. A successful answer uses it up; a retry then continues without it. */
let token: string | undefined;

export async function open(found?: string): Promise<void> {
  token = found ?? token;
  opening.value = { step: "opening" };
  try {
    opening.value = await opened();
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    const { failure } = error;
    opening.value = failure.httpStatus === 401 ? { step: "no_link" } : { step: "failed", failure };
  }
}

async function opened(): Promise<Opening> {
  if (token !== undefined) {
    const linked = await call("POST /api/start/v1/session/", { body: { token } });
    if (!linked.ok && linked.code === "not_found") return { step: "used" };
    const { station_id: stationId } = await good(Promise.resolve(linked));
    token = undefined;
    sessionStorage.setItem(STORED_STATION, String(stationId));
  }
  const stationId = Number(sessionStorage.getItem(STORED_STATION));
  if (stationId < 1) return { step: "no_link" };
  // A failure is ignored: when another cashier drives the station, the till shows that and offers the take-over.
  await call("POST /api/cashier/v1/stations/{station_id}/lease/", {
    path: { station_id: stationId },
    body: {},
    key: newKey(),
  });
  return { step: "open", place: await prepare(stationId) };
}

async function prepare(stationId: number): Promise<Place> {
  const companion = (await devicesOf(stationId)).find(({ kind }) => kind === "smart_pos_companion");
  return {
    stationId,
    companionId: companion?.device_id ?? null,
    tillAddress: `/till/?station=${stationId}`,
    displayAddress: await frameAddress({
      findDisplays: async () => (await devicesOf(stationId)).filter(isOwnDisplay).map(ownDisplay),
      newCode: (displayId) => pairingCode(stationId, displayId),
    }),
  };
}

async function devicesOf(stationId: number): Promise<readonly Device[]> {
  const query = { station_id: stationId, limit: PAGE };
  const listed = await good(call("GET /api/backoffice/v1/devices/", { query }));
  return listed.devices.filter(({ status }) => status !== "revoked");
}

const isOwnDisplay = ({ kind, name }: Device): boolean => kind === "customer_display" && name === DISPLAY_NAME;

/** The same key for each attempt, so that a lost answer does not register a second display. */
const displayKey = newKey();

const ownDisplay = ({ device_id: displayId, liveness }: Device) => ({
  displayId,
  isOnline: liveness?.online === true,
});

/** A code for the display. An existing display is from an earlier visit, so the page first resets it. */
async function pairingCode(stationId: number, displayId: number | undefined): Promise<string> {
  const body = { station_id: stationId, name: DISPLAY_NAME, kind: "customer_display" } as const;
  const device_id =
    displayId ?? (await good(call("POST /api/backoffice/v1/devices/", { body, key: displayKey }))).device_id;
  const path = { device_id };
  if (displayId !== undefined) await good(call("POST /api/backoffice/v1/devices/{device_id}/reset/", { path }));
  const issued = call("POST /api/backoffice/v1/devices/{device_id}/enrollment-codes/", { path, body: {} });
  return (await good(issued)).code;
}
