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

/** Checks now and then, and when the function that it returns is called. */
export function keepNewest(isBusy: () => boolean): () => Promise<void> {
  buildName();
  let isChecking = false;
  const check = async (): Promise<void> => {
    if (isChecking || isBusy()) return;
    isChecking = true;
    try {
      const newest = await newestNames();
      if (newest === "" || newest === current) return;
      await refreshShell();
      // A guest who has come meanwhile is served first.
      if (!isBusy()) location.reload();
    } finally {
      isChecking = false;
    }
  };
  setInterval(() => void check(), CHECK_EVERY_MS);
  addEventListener("online", () => void check());
  return check;
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

function activated(worker: ServiceWorker): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, INSTALL_MS);
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated" || worker.state === "redundant") resolve();
    });
  });
}
