/**
 * The page's own files: kept by the service worker, so that the first paint needs no server, and replaced when the service
 * has a newer build. The names of the files have a hash of their content, so they name the build.
 */
/** A build changes with an upgrade of the service: a display is at most a minute behind. */
const CHECK_EVERY_MS = 60_000;
/** The page is a kilobyte; an answer that takes longer is asked for again at the next check. */
const CHECK_MS = 10_000;
/** The new files are 40 kilobytes; a browser that has not stored them by then loads them from the service. */
const INSTALL_MS = 10_000;
const RELOADED = "dp_display_reloaded";
/** As `service-worker.ts` names them. */
const SHELL_CACHE = "display-";
const NAMES = /\/assets\/[\w.-]+/g;

const namesIn = (html: string): string => [...new Set(html.match(NAMES) ?? [])].join(" ");

/** The names in the page as the browser has loaded it. */
let current = "";
export function buildName(): string {
  if (current === "") current = namesIn(document.head.innerHTML);
  return /display\.(\w+)\.js/.exec(current)?.[1] ?? "";
}

export function keepShell(): void {
  // Browsers offer it over HTTPS and on this machine alone.
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register("/display/service-worker.js", { scope: "/display/" }).catch(() => undefined);
}

interface Uses {
  /** A person pairs the display: a reload would take away the code. */
  readonly isPairing: () => boolean;
  /** A guest reads what is shown. */
  readonly isRead: () => boolean;
}

/** Checks at the start, now and then, and when the function that it returns is called. */
export function keepNewest({ isPairing, isRead }: Uses): () => Promise<void> {
  buildName();
  let isChecking = false;
  const check = async (isStart = false): Promise<void> => {
    const isBusy = (): boolean => isPairing() || (isRead() && !isStart);
    if (isChecking || isBusy() || hasJustReloaded()) return;
    isChecking = true;
    try {
      const newest = await newestNames();
      if (newest === "" || newest === current) return;
      await refreshShell();
      await removeOtherShells(newest);
      // A guest who has come meanwhile is served first.
      if (isBusy()) return;
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
    } finally {
      isChecking = false;
    }
  };
  // A display that was off during an upgrade starts with the shell of the build before. A guest has read nothing yet.
  void check(true);
  setInterval(() => void check(), CHECK_EVERY_MS);
  addEventListener("online", () => void check());
  return () => check();
}

/** During an upgrade two processes may answer with two builds: the display does not go back and forth between them. */
function hasJustReloaded(): boolean {
  return Math.abs(Date.now() - Number(sessionStorage.getItem(RELOADED))) < CHECK_EVERY_MS;
}

/** Empty when the service does not answer. */
async function newestNames(): Promise<string> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), CHECK_MS);
  try {
    const answer = await fetch("/display/", { cache: "no-store", signal: controller.signal });
    return answer.ok ? namesIn(await answer.text()) : "";
  } catch {
    return "";
  } finally {
    clearTimeout(timer);
  }
}

/** The worker has the new files before the page asks for them. */
async function refreshShell(): Promise<void> {
  try {
    const registration = await navigator.serviceWorker?.getRegistration("/display/");
    await registration?.update();
    const worker = registration?.installing ?? registration?.waiting;
    if (worker) await activated(worker);
  } catch {
    // Without a worker the reload itself loads the new files.
  }
}

/** A worker that could not be replaced would load its old page for ever; without a shell it asks the service. */
async function removeOtherShells(newest: string): Promise<void> {
  if (!("caches" in window)) return;
  try {
    for (const name of (await caches.keys()).filter((each) => each.startsWith(SHELL_CACHE))) {
      const page = await (await caches.open(name)).match("/display/");
      if (page === undefined || namesIn(await page.text()) !== newest) await caches.delete(name);
    }
  } catch {
    // A browser that keeps nothing has no old shell.
  }
}

function activated(worker: ServiceWorker): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, INSTALL_MS);
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated" || worker.state === "redundant") resolve();
    });
  });
}
