/** `server_time` as ISO 8601, formatted once per millisecond: under load many answers share one. */
let lastMs = -1;
let lastText = "";

export function serverTime(nowMs: number): string {
  if (nowMs !== lastMs) {
    lastMs = nowMs;
    lastText = new Date(nowMs).toISOString();
  }
  return lastText;
}
