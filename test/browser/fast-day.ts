/**
 * A day of a page in seconds. The page's waits take no time, but its clock advances by them. The script answers the requests
 * inside the page: with the service's answers from before the day, and with other numbers each time.
 */
import type { CDPSession, Page } from "playwright-core";
import { drawn } from "./chromium.ts";

/** An init script. The day begins with `beginDay()`; before that, time and service are real. */
export const FAST_DAY = `
  const day = (window.day = { isFast: false, isPaused: false, isLeaking: false, aheadMs: 0, polls: 0, kept: [], pending: 0, answer: () => undefined });
  // For a page with a defect: it keeps everything that it receives. Ten copies leak in a tenth of the time.
  const keep = (text) => {
    for (let copy = 0; day.isLeaking && copy < 10; copy += 1) day.kept.push([JSON.parse(JSON.stringify(text)), JSON.parse(text)]);
    return text;
  };
  const steady = performance.now.bind(performance), wall = Date.now.bind(Date);
  performance.now = () => steady() + day.aheadMs;
  Date.now = () => wall() + day.aheadMs;

  // Timers: one queue, in real time or as fast as the page can work.
  const queue = new Map(), repeat = window.setInterval.bind(window), channel = new MessageChannel();
  let ids = 0;
  const add = (run, ms = 0, isRepeated) => {
    ids += 1;
    queue.set(ids, { run, at: performance.now() + ms, everyMs: isRepeated ? Math.max(1, ms) : 0 });
    return ids;
  };
  window.setTimeout = (run, ms) => add(run, ms, false);
  window.setInterval = (run, ms) => add(run, ms, true);
  window.clearTimeout = window.clearInterval = (id) => void queue.delete(id);
  const next = () => {
    let found;
    for (const entry of queue) if (found === undefined || entry[1].at < found[1].at) found = entry;
    return found;
  };
  const runNext = ([id, entry]) => {
    if (entry.everyMs > 0) entry.at += entry.everyMs;
    else queue.delete(id);
    entry.run();
  };
  repeat(() => {
    if (day.isFast) return;
    for (let found = next(); found !== undefined && found[1].at <= performance.now(); found = next()) runNext(found);
  }, 5);
  channel.port1.onmessage = () => {
    const found = next();
    if (!day.isPaused && day.pending === 0 && found !== undefined) {
      day.aheadMs += Math.max(0, found[1].at - performance.now());
      runNext(found);
    }
    if (day.isFast && !day.isPaused) channel.port2.postMessage(0);
  };
  window.beginDay = () => {
    day.isFast = true;
    day.beganMs = performance.now();
    for (const socket of sockets) socket.follow();
    channel.port2.postMessage(0);
  };
  window.pauseDay = (isPaused) => {
    day.isPaused = isPaused;
    channel.port2.postMessage(0);
  };
  window.passedMs = () => performance.now() - day.beganMs;

  // The service.
  const send = window.fetch.bind(window), answers = new Map();
  const json = (text) => new Response(text, { headers: { "content-type": "application/json" } });
  const CHANGING = /"(devices_online|devices_offline|open_collections|open_issues|collections|succeeded)":\\d+/g;
  window.fetch = async (url, init = {}) => {
    const own = day.answer(String(url));
    if (own !== undefined) return json(keep(JSON.stringify(own)));
    const path = new URL(url, location.href).pathname;
    if (day.isFast) {
      day.polls += 1;
      if ((init.method || "GET") !== "GET") return json("{}");
      if (answers.has(path)) {
        const [type, text] = answers.get(path);
        const body = text.replace(CHANGING, (_whole, name) => '"' + name + '":' + (day.polls % 90));
        return new Response(type.startsWith("application/json") ? keep(body) : body, { headers: { "content-type": type } });
      }
    }
    day.pending += 1;
    try {
      const answer = await send(url, init);
      answers.set(path, [answer.headers.get("content-type"), await answer.clone().text()]);
      return answer;
    } finally {
      day.pending -= 1;
    }
  };

  // A station's live state: the received messages are repeated, and each round is about other collections.
  const Socket = window.WebSocket, sockets = new Set(), messages = [];
  const EVERY_MS = 10_000, LIFE_MS = 3_600_000;
  window.WebSocket = class extends EventTarget {
    constructor(url) {
      super();
      sockets.add(this);
      if (day.isFast) return this.follow();
      this.real = new Socket(url);
      this.real.onmessage = ({ data }) => {
        if (day.isFast) return;
        if (JSON.parse(data).type === "state") messages.push(data);
        this.dispatchEvent(new MessageEvent("message", { data }));
      };
    }
    follow() {
      let round = 0;
      const untilMs = performance.now() + LIFE_MS;
      this.timer = setInterval(() => {
        if (performance.now() > untilMs) {
          this.close();
          return void this.dispatchEvent(new CloseEvent("close", { code: 1006 }));
        }
        const done = [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Next order");
        if (done) done.click();
        round += 1;
        const state = JSON.parse(messages[round % messages.length]);
        state.server_time = new Date(Date.now()).toISOString();
        for (const intent of [state.active_intent, state.last_ended_intent]) {
          if (intent) intent.intent_id += Math.floor((performance.now() - day.beganMs) / EVERY_MS / messages.length) * 1_000;
        }
        day.polls += 1;
        this.dispatchEvent(new MessageEvent("message", { data: keep(JSON.stringify(state)) }));
      }, EVERY_MS);
      // The message that the service sends between two states.
      this.beat = setInterval(() => {
        const data = JSON.stringify({ type: "current", server_time: new Date(Date.now()).toISOString() });
        this.dispatchEvent(new MessageEvent("message", { data }));
      }, 3_000);
    }
    close() {
      sockets.delete(this);
      clearInterval(this.timer);
      clearInterval(this.beat);
      if (this.real) this.real.close();
    }
  };
`;

/** A display's service: each poll has the next state. */
export const DISPLAY_SERVICE = `
  const server_time = "2026-11-25T12:00:00.000Z";
  const device = { device_id: 7, name: "D", kind: "customer_display", capabilities: [], status: "active", station_name: "S",
    station_status: "open", handoff_target: "", blocked_reason: "", server_time };
  day.answer = (url) => {
    if (url.endsWith("enroll/")) return { credential: "c", scopes: [], device };
    if (url.endsWith("heartbeat/")) return device;
    if (!url.endsWith("/devices/display/")) return undefined;
    day.polls += 1;
    const state = ["idle", "total", "qr", "paid"][day.polls % 4];
    return { state, order_display_number: day.polls, amount: day.polls + ".50", currency: "EUR",
      qr_payload: state === "qr" ? "payload " + day.polls : "", intent_status: "", server_time };
  };
`;

export interface Memory {
  readonly heapBytes: number;
  readonly nodes: number;
  readonly listeners: number;
}

/** The memory of the page while it is idle. */
export async function memoryOf(page: Page, session: CDPSession): Promise<Memory> {
  await page.evaluate("pauseDay(true)");
  // Twice: the first collection may run finalizers that release more memory.
  for (let round = 0; round < 2; round += 1) {
    await drawn(page);
    await session.send("HeapProfiler.collectGarbage");
  }
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await session.send("Memory.getDOMCounters");
  await page.evaluate("pauseDay(false)");
  return { heapBytes: usedSize, nodes, listeners: jsEventListeners };
}
