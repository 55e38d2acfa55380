/**
 * Stores the display's shell in the browser. A kiosk that starts without a network then shows the page and not the browser's
 * error. The worker never stores answers of the API.
 */
declare const BUILD: string;
declare const SHELL: readonly string[];

/** The parts of a worker's global scope that this file uses. TypeScript's worker types conflict with those of a page. */
interface WorkerEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface WorkerFetchEvent extends WorkerEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Worker {
  readonly location: Location;
  readonly caches: CacheStorage;
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: WorkerEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: WorkerFetchEvent) => void): void;
}
const worker = self as unknown as Worker;

const PREFIX = "display-";
const CACHE = PREFIX + BUILD;
const PAGE = "/display/";

worker.addEventListener("install", (event) => {
  event.waitUntil(store());
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(replaceOlder());
});

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== worker.location.origin) return;
  // When the page itself requests `/display/`, to find the newest build, the request goes to the service.
  const isPage = pathname === PAGE && request.mode === "navigate";
  if (!isPage && !(pathname !== PAGE && SHELL.includes(pathname))) return;
  const answer = async (): Promise<Response> => {
    const cache = await worker.caches.open(CACHE);
    return (await cache.match(pathname)) ?? (await fetch(request));
  };
  event.respondWith(answer());
});

async function store(): Promise<void> {
  const cache = await worker.caches.open(CACHE);
  // The browser's HTTP cache may contain the page of the previous build. The other files never change.
  await cache.addAll(SHELL.map((path) => new Request(path, { cache: path === PAGE ? "reload" : "default" })));
  const page = (await (await cache.match(PAGE))?.text()) ?? "";
  if (!SHELL.every((path) => path === PAGE || page.includes(path))) {
    // During an upgrade another gateway may answer with the page of the old build, whose script will soon be gone.
    await worker.caches.delete(CACHE);
    throw new Error("The page is of another build.");
  }
  await worker.skipWaiting();
}

async function replaceOlder(): Promise<void> {
  const names = await worker.caches.keys();
  const old = names.filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(old.map((name) => worker.caches.delete(name)));
  await worker.clients.claim();
}
