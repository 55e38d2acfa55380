/** `server_time` as ISO 8601. Formatting a date costs more than all else in an answer, so it is done once a second. */
const MILLISECONDS = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

let second = -1;
let upToSecond = "";
let lastMs = -1;
let lastText = "";

/** For example `2026-11-20T12:00:00.000Z`. Expects whole milliseconds, as the clock of the bus gives them. */
export function serverTime(nowMs: number): string {
  if (nowMs === lastMs) return lastText;
  const nowSecond = Math.floor(nowMs / 1_000);
  if (nowSecond !== second) {
    second = nowSecond;
    upToSecond = new Date(nowSecond * 1_000).toISOString().slice(0, -"000Z".length);
  }
  lastMs = nowMs;
  lastText = upToSecond + (MILLISECONDS[nowMs - nowSecond * 1_000] as string);
  return lastText;
}
