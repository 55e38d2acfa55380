/** What a display stores in its browser: the shell of a build, and the credential. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newCode } from "../support/devices.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";

/** A display polls every two seconds, and the machine may be slow. */
const SHOWN = { timeout: 15_000 };
/** How soon a display with an old shell must load the new build. The check on the timer, each minute, would be too late. */
const NEW_MS = 10_000;

let system: TestSystem;
let browser: Browser;
let owner: Person;
let cashier: Person;
let station: string;
let upgrade: Upgrade;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ claims: true }), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  upgrade = await startUpgrade(system.baseUrl);
});
afterAll(async () => {
  upgrade.stop();
  await browser.close();
  await system.stop();
});

interface Upgrade {
  readonly baseUrl: string;
  /** The build of the gateways. */
  build: "old" | "new";
  /** During the upgrade: the paths that still come to a gateway of the old build. */
  toOld: RegExp;
  /** How many requests for the new build's script came to a gateway that lacks it. */
  missed: number;
  /** Whether requests for the worker's script fail. */
  isWorkerLost: boolean;
  stop(): void;
}

const NONE = /^$/;
const SCRIPT = /display\.(\w+)\.js/;
const OLD_SCRIPT = "display.OLDBUILD.js";

/** A proxy of the service. Until the upgrade it serves pages of an older build, whose script has another name and sets a mark. */
async function startUpgrade(service: string): Promise<Upgrade> {
  const stop = (): void => void server.close();
  const state: Upgrade = { baseUrl: "", build: "old", toOld: NONE, missed: 0, isWorkerLost: false, stop };
  const script = SCRIPT.exec(await (await fetch(`${service}/display/`)).text())?.[0] ?? "";
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? "/";
    if (path.endsWith("worker.js") && state.isWorkerLost) return void response.writeHead(503).end();
    const isOld = state.build === "old" || state.toOld.test(path);
    if (path.endsWith(OLD_SCRIPT) && !isOld) return void response.writeHead(404).end();
    if (path.endsWith(script) && isOld) {
      state.missed += 1;
      return void response.writeHead(404).end();
    }
    // The service's ETags do not cover what this proxy changes.
    const dropped = ["host", "connection", "content-length", "if-none-match"];
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => !dropped.includes(name)),
    ) as Record<string, string>;
    const body = request.method === "GET" ? undefined : await buffer(request);
    const init = { method: request.method ?? "GET", headers, ...(body === undefined ? {} : { body }) };
    const found = await fetch(service + path.replace(OLD_SCRIPT, script), init);
    const kept = [...found.headers].filter(
      ([name]) => !/^(?:content-(?:encoding|length)|transfer|connection|etag)/.test(name),
    );
    let content = Buffer.from(await found.arrayBuffer());
    if (isOld && path.endsWith(OLD_SCRIPT)) content = Buffer.from(`${content.toString()};window.isOldBuild=true;`);
    else if (isOld && /^\/display\/(?:$|service-worker)/.test(path))
      content = Buffer.from(
        content
          .toString()
          .replaceAll(script, OLD_SCRIPT)
          .replace(/"[0-9a-f]{12}"/, '"0ld"'),
      );
    response.writeHead(found.status, Object.fromEntries(kept)).end(content);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return Object.assign(state, { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

const isShown = (page: Page, screen: string) =>
  page.locator(`[data-screen="${screen}"]`).waitFor({ state: "visible", ...SHOWN });
const isOld = (page: Page) => page.evaluate<boolean>("window.isOldBuild === true");

interface Paired {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly deviceId: number;
}
async function pair(baseUrl: string): Promise<Paired> {
  const station_id = system.sandbox.stations[0]?.stationId;
  const body = { station_id, name: `Display ${performance.now()}`, kind: "customer_display" };
  const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
  const code = await newCode(owner, deviceId);
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${baseUrl}/display/#code=${code}`);
  await isShown(page, "idle");
  return { context, page, deviceId };
}

/** A display that runs the older build, from the shell that its worker stores. */
async function pairOld(): Promise<Paired> {
  Object.assign(upgrade, { build: "old", toOld: NONE, missed: 0, isWorkerLost: false });
  const paired = await pair(upgrade.baseUrl);
  await paired.page.evaluate("navigator.serviceWorker.ready.then(() => undefined)");
  await paired.page.reload();
  await isShown(paired.page, "idle");
  await expect.poll(() => paired.page.evaluate("navigator.serviceWorker.controller !== null"), SHOWN).toBe(true);
  expect(await isOld(paired.page)).toBe(true);
  return paired;
}

/** A script that records each screen that the page shows. The record outlives a reload, so it covers both builds. */
const RECORD_SCREENS = `
  const shown = JSON.parse(sessionStorage.getItem("screens") || "[]");
  new MutationObserver(() => {
    const found = document.querySelector("[data-screen]");
    const text = found && found.getAttribute("data-screen") + " " + found.querySelector("main").innerText;
    if (text && text !== shown[shown.length - 1]) shown.push(text);
    sessionStorage.setItem("screens", JSON.stringify(shown));
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
`;

describe("the shell of an older build", () => {
  test("a display that is open during the upgrade: it loads the new build, and stores it as its shell", async () => {
    const { context, page } = await pairOld();
    upgrade.build = "new";
    const reloaded = page.waitForEvent("load", { timeout: NEW_MS });
    await page.evaluate("dispatchEvent(new Event('online'))");
    await reloaded;
    await isShown(page, "idle");
    expect(await isOld(page)).toBe(false);
    await context.setOffline(true);
    await page.reload({ waitUntil: "domcontentloaded" });
    await page.locator("[data-screen]").waitFor(SHOWN);
    expect(await isOld(page)).toBe(false);
    await context.close();
  });

  test("a display that was off during the upgrade: it loads the new build, and never shows an old screen", async () => {
    const { context, page } = await pairOld();
    const order_id = await newOrder(cashier, station, "12.50", "Tea");
    const collect = { body: { order_id, route: "cash" } };
    const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, collect);
    await cashier.good("POST", `${station}/intents/${intent_id}/attest/`);
    await isShown(page, "paid");
    await page.close();
    upgrade.build = "new";
    const next = await newOrder(cashier, station, "3.00", "Cake");
    const again = await context.newPage();
    await again.addInitScript(RECORD_SCREENS);
    // The display starts from the worker's shell, because only the worker still has the old build's script.
    await again.goto(`${upgrade.baseUrl}/display/`);
    await expect.poll(() => isOld(again).catch(() => true), { timeout: NEW_MS }).toBe(false);
    await isShown(again, "total");
    const screens = JSON.parse(await again.evaluate<string>("sessionStorage.getItem('screens')")) as string[];
    expect(screens.filter((screen) => /paid|12\.50/i.test(screen))).toEqual([]);
    expect(screens.at(-1)).toContain("€3.00");
    await cashier.good("POST", `orders/${next}/void/`);
    await context.close();
  });

  test("a worker that cannot be replaced: the display loads the new build anyway", async () => {
    const { context, page } = await pairOld();
    await page.close();
    Object.assign(upgrade, { build: "new", isWorkerLost: true });
    const again = await context.newPage();
    await again.goto(`${upgrade.baseUrl}/display/`);
    await expect.poll(() => isOld(again).catch(() => true), { timeout: NEW_MS }).toBe(false);
    await isShown(again, "idle");
    await context.close();
  });
});

describe("gateways that are replaced one by one", () => {
  /** Resolves to the last state of the new worker. */
  const UPDATE_WORKER = `navigator.serviceWorker.getRegistration("/display/")
    .then((registration) => registration.update())
    .then(({ installing }) => new Promise((resolve) => installing.addEventListener("statechange", () => {
      if (["activated", "redundant"].includes(installing.state)) resolve(installing.state);
    })))`;
  /** For each stored shell: the script of its page, if the shell lacks it. */
  const LACKING_SCRIPTS = `caches.keys().then((names) => Promise.all(names.map(async (name) => {
    const shell = await caches.open(name);
    const [script] = (await (await shell.match("/display/")).text()).match(/[/]assets[/]display[.][A-Za-z0-9]+[.]js/);
    return (await shell.match(script)) === undefined ? script : "";
  })))`;

  test("the page comes from a new gateway, its script from none: the old page stays until the new one is whole", async () => {
    const { context, page } = await pairOld();
    Object.assign(upgrade, { build: "new", toOld: /^\/assets\// });
    const check = () => page.evaluate("dispatchEvent(new Event('online'))").catch(() => undefined);
    const missed = async (): Promise<number> => {
      await check();
      return upgrade.missed;
    };
    // A page that has begun anew without its script would check no more.
    await expect.poll(missed, SHOWN).toBeGreaterThan(2);
    await isShown(page, "idle");
    upgrade.toOld = NONE;
    const isStillOld = async (): Promise<boolean> => {
      await check();
      return await isOld(page).catch(() => true);
    };
    await expect.poll(isStillOld, { timeout: NEW_MS }).toBe(false);
    await isShown(page, "idle");
    await context.close();
  });

  test("the worker comes from a new gateway, the page from an old one: the worker does not store that page", async () => {
    const { context, page } = await pairOld();
    Object.assign(upgrade, { build: "new", toOld: /^\/display\/$/ });
    expect(await page.evaluate(UPDATE_WORKER)).toBe("redundant");
    expect(await page.evaluate(LACKING_SCRIPTS)).toEqual([""]);
    await context.close();
  });
});

describe("the credential", () => {
  const STORED = `new Promise((resolve, reject) => {
    const opening = indexedDB.open("device-kit", 1);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("device").objectStore("device").get("record");
      reading.onsuccess = () => { opening.result.close(); resolve(JSON.parse(reading.result).credential); };
    };
  })`;
  const storedIn = (page: Page) => page.evaluate<string>(STORED);

  test.each(["revoke", "reset"])("after the owner's %s: the browser no longer stores it", async (end) => {
    const { context, page, deviceId } = await pair(system.baseUrl);
    const credential = await storedIn(page);
    expect(credential).toMatch(/^dp_/);
    await owner.good("POST", `devices/${deviceId}/${end}/`);
    await page.getByText("This display is not paired any more").waitFor(SHOWN);
    await expect.poll(() => storedIn(page), SHOWN).toBe("");
    // After a reload the display sends no credential.
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.headers()["authorization"] ?? ""));
    await page.reload();
    await isShown(page, "pair");
    expect(sent.filter((header) => header !== "")).toEqual([]);
    await context.close();
  });
});
