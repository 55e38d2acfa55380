/**
 * Follows one station over a WebSocket. Each message is the whole state, so a lost connection loses nothing:
 *
 *   connecting ── message ──► live ── close, or 8 s of silence ──► waiting ── after a growing pause ──► connecting
 *                              └── "stale" ──► not current until the next state
 *
 * A browser does not say why the service has refused a connection, so the page then asks with an ordinary request: the session
 * may have ended while the machine slept.
 */
import { computed, signal } from "@preact/signals";
import { addressOf, call, hasNoSession, isOffline } from "../shared/call.ts";
import { serverTime } from "../shared/clock.ts";
import type { LiveState } from "./reasons.ts";
import { returns } from "./session.ts";

/** The first and the longest pause before a new connection attempt: a till must reconnect within three seconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2_000;
/** A network that drops packets leaves a connection attempt open for minutes. */
const CONNECT_MS = 5_000;
/** How long to wait for the reason of a refused connection. */
const REASON_MS = 2_000;
/** Every three seconds the service reports that the state is still current. Two of these messages may be missing. */
const SILENCE_MS = 8_000;
/** The codes with which the service closes a socket (see the operation's description). */
const SESSION_ENDED = 4401;
const STATION_GONE = 4404;

const LIVE = "GET /api/cashier/v1/stations/{station_id}/live/";

export const live = signal<LiveState | null>(null);
/** Whether `live` is the current state of the station. Otherwise this page allows no decisions. */
export const isCurrent = signal(false);
/** Whether the socket is connected; otherwise the newest state is not known. */
export const isConnected = signal(false);
/** Whether a connection has ended, or has reported `stale`, since the last state. */
export const isInterrupted = signal(false);
/** The station does not exist any more. */
export const isGone = signal(false);

export const mayDrive = computed(() => isCurrent.value && live.value?.lease?.mine === true);

/** The display number of a collection; for a collection that this page does not have, its id. */
export function collectionName(intentId: number): string {
  const known = [live.value?.active_intent, live.value?.last_ended_intent].find((one) => one?.intent_id === intentId);
  return known === undefined || known === null ? `#${intentId}` : String(known.intent_display_number);
}

/** Follows a station; returns a function that stops it. */
export function follow(stationId: number): () => void {
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let isStopped = false;

  function connect(): void {
    let isAnswered = false;
    const path = addressOf(LIVE, { path: { station_id: stationId } });
    const opened = new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${path}`);
    socket = opened;
    timer = setTimeout(() => end(), CONNECT_MS);
    opened.addEventListener("message", (event: MessageEvent<string>) => {
      if (socket !== opened) return;
      isAnswered = true;
      clearTimeout(timer);
      timer = setTimeout(() => end(), SILENCE_MS);
      pauseMs = FIRST_PAUSE_MS;
      isConnected.value = true;
      isOffline.value = false;
      take(event.data);
    });
    opened.addEventListener("close", ({ code }) => end(code));

    /** Without a code this page ends the connection, because a browser may report a lost network only after minutes. */
    function end(code?: number): void {
      if (socket !== opened) return;
      socket = undefined;
      clearTimeout(timer);
      isConnected.value = false;
      isCurrent.value = false;
      isInterrupted.value = true;
      if (code === undefined) opened.close();
      if (isStopped) return;
      if (code === SESSION_ENDED) hasNoSession.value = true;
      else if (code === STATION_GONE) isGone.value = true;
      else if (isAnswered || code === undefined) reconnectLater();
      else void askWhy();
    }
  }

  async function askWhy(): Promise<void> {
    const result = await call(LIVE, { path: { station_id: stationId } }, { deadlineMs: REASON_MS });
    if (isStopped || socket !== undefined) return;
    if (!result.ok && result.httpStatus === 404) isGone.value = true;
    // Without a session the page asks to sign in, and then connects again.
    else if (result.ok || result.httpStatus !== 401) reconnectLater();
  }

  function reconnectLater(): void {
    timer = setTimeout(connect, pauseMs);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }

  /** Connects at once, without the pause, when the machine wakes up or is online again. */
  function hurry(): void {
    if (socket !== undefined || document.hidden) return;
    clearTimeout(timer);
    connect();
  }

  live.value = null;
  isGone.value = false;
  isInterrupted.value = false;
  connect();
  const stopReturning = returns.subscribe(hurry);
  // An answer has reported that there is a session: that of another tab, or it is an answer from before the session's end.
  const stopEnding = hasNoSession.subscribe((hasNone) => {
    if (!hasNone) hurry();
  });
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  return () => {
    isStopped = true;
    clearTimeout(timer);
    stopReturning();
    stopEnding();
    removeEventListener("online", hurry);
    document.removeEventListener("visibilitychange", hurry);
    socket?.close();
    socket = undefined;
    isConnected.value = false;
    isCurrent.value = false;
    live.value = null;
  };
}

function take(text: string): void {
  const message = JSON.parse(text) as LiveState | { readonly type: "stale" | "current"; readonly server_time: string };
  serverTime(message.server_time);
  if (message.type === "current") return;
  if (message.type === "state") live.value = message;
  isCurrent.value = message.type === "state";
  isInterrupted.value = !isCurrent.value;
}
