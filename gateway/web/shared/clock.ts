/** The time by the server's clock, once a second, for countdowns and ages. */
import { signal } from "@preact/signals";

/** The shortest step that a countdown shows. */
const TICK_MS = 1_000;

let aheadMs = 0;
/** Milliseconds since 1970 by the server's clock; changes once a second while the page is visible. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now() + aheadMs;
}, TICK_MS);
document.addEventListener("visibilitychange", () => {
  now.value = Date.now() + aheadMs;
});

/** Call it with each `server_time`: this machine's clock may be wrong by hours. */
export function serverTime(text: string): void {
  aheadMs = Date.parse(text) - Date.now();
  now.value = Date.now() + aheadMs;
}

/** The `Date` of an answer has whole seconds and is late by the network delay. So it corrects only a larger difference. */
const DATE_MS = 5_000;

export function answerDate(text: string | null): void {
  const atMs = Date.parse(text ?? "");
  if (Math.abs(atMs - Date.now() - aheadMs) > DATE_MS) serverTime(text ?? "");
}
