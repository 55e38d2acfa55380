/**
 * The files of the page. The service worker stores them, so that the first paint needs no server. The page replaces them when
 * the service has a newer build. File names contain a hash of the content, so together they identify the build.
 */
/** A build changes with an upgrade of the service: a display is at most a minute behind. */
const CHECK_EVERY_MS = 60_000;
/** The new files have about 40 kilobytes. After a slower answer the next check asks again. */
const LOAD_MS = 30_000;
/** A browser that stores the files more slowly loads them from the service. */
const INSTALL_MS = 10_000;
const RELOADED = "dp_display_reloaded";
/** The prefix of the cache names in `service-worker.ts`. */
const SHELL_CACHE = "display-";
const NAMES = /\/assets\/[\w.-]+/g;

const namesIn = (html: string): string => [...new Set(html.match(NAMES))].join(" ");

/** The names of the files that the browser has loaded. */
let current = "";
export function buildName(): string {
  if (current === "") current = namesIn(document.head.innerHTML);
  return current.replace(/.*display\.(\w+)\.js.*/, "$1");
}

export function keepShell(): void {
  // Browsers offer service workers only over HTTPS and on localhost.
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register("/display/service-worker.js", { scope: "/display/" }).catch(() => undefined);
}

interface Uses {
  /** A person pairs the display: a reload would delete the typed code. */
  readonly isPairing: () => boolean;
  /** A guest may be reading the screen. */
  readonly isRead: () => boolean;
}

/** Checks for a newer build at the start, on a timer, and when the caller calls the returned function. */
export function keepNewest({ isPairing, isRead }: Uses): () => Promise<void> {
  buildName();
  let isChecking = false;
  const check = async (isStart = false): Promise<void> => {
    const isBusy = (): boolean => isPairing() || (isRead() && !isStart);
    if (isChecking || isBusy() || hasJustReloaded()) return;
    isChecking = true;
    try {
      const newest = namesIn(await load("/display/", "no-store"));
      if (newest === "" || newest === current) return;
      // During an upgrade another gateway, of the old build, may answer: a page without its script would never check again.
      // The files never change, so the new page then gets them from the browser's HTTP cache.
      for (const name of newest.split(" ")) if ((await load(name, "default")) === "") return;
      await refreshShell();
      await removeOtherShells(newest);
      // A guest may have come meanwhile: the next check reloads.
      if (isBusy()) return;
      sessionStorage.setItem(RELOADED, String(Date.now()));
      // Opens this address again. Over plain HTTP Firefox would ask for each file again in a reload.
      location.replace("");
    } finally {
      isChecking = false;
    }
  };
  // A display that was off during an upgrade starts with the old shell. It may reload: no guest has read anything yet.
  void check(true);
  setInterval(() => void check(), CHECK_EVERY_MS);
  addEventListener("online", () => void check());
  return check;
}

/** During an upgrade two processes may answer with different builds. The display must not switch back and forth between them. */
function hasJustReloaded(): boolean {
  return Math.abs(Date.now() - Number(sessionStorage.getItem(RELOADED))) < CHECK_EVERY_MS;
}

/** Empty when the service does not answer with the file. */
async function load(path: string, cache: RequestCache): Promise<string> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), LOAD_MS);
  try {
    const answer = await fetch(path, { cache, signal: controller.signal });
    return answer.ok ? await answer.text() : "";
  } catch {
    return "";
  } finally {
    clearTimeout(timer);
  }
}

/** Lets the new worker store the new files before the page reloads. */
async function refreshShell(): Promise<void> {
  try {
    const registration = await navigator.serviceWorker.getRegistration("/display/");
    if (!registration) return;
    await registration.update();
    const worker = registration.installing ?? registration.waiting;
    if (worker) await activated(worker);
  } catch {
    // Without a worker, as on plain HTTP, the reload itself loads the new files.
  }
}

/** A worker that could not be replaced would always load its old page. Without a stored shell it asks the service. */
async function removeOtherShells(newest: string): Promise<void> {
  try {
    for (const name of (await caches.keys()).filter((each) => each.startsWith(SHELL_CACHE))) {
      const page = await caches.match("/display/", { cacheName: name });
      if (page === undefined || namesIn(await page.text()) !== newest) await caches.delete(name);
    }
  } catch {
    // A browser without caches, as on plain HTTP, or one that stores nothing, has no old shell.
  }
}

function activated(worker: ServiceWorker): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, INSTALL_MS);
    worker.addEventListener("statechange", () => {
      if (/activated|redundant/.test(worker.state)) resolve();
    });
  });
}
