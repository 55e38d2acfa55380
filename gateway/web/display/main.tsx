/**
 * The customer display: a device like any other, by the device kit. What it shows is what the service answers; what is not
 * certain any more, the kit hides.
 */
import { render } from "preact";
import { type Display, display } from "../../../clients/device-kit/display.ts";
import { indexedDbStorage } from "../../../clients/device-kit/storage/indexed-db.ts";
import "../shared/tokens.css";
import "./display.css";
import { displayName, takeCode } from "./address.ts";
import { buildName, keepNewest, keepShell } from "./build.ts";
import { Screen } from "./screen.tsx";
import { type Actions, FIRST_VIEW, isPairing, isRead, type View } from "./view.ts";
import { chooseLanguage, chosenLanguage } from "./words.ts";

/** The age of what is shown counts in seconds. */
const REDRAW_EVERY_MS = 1_000;

const place = document.getElementById("page") ?? document.body;
// Before anything else can read the address.
const code = takeCode();
const storage = indexedDbStorage(window.indexedDB, displayName());
let view: View = FIRST_VIEW;
let device: Display | undefined;

const actions: Actions = {
  change(changes) {
    view = { ...view, ...changes };
    draw();
  },
  enroll: (typed) => device?.enroll(typed),
  async forget() {
    device?.stop();
    await storage.remove().catch(() => undefined);
    location.reload();
  },
};

function draw(): void {
  render(<Screen view={view} actions={actions} />, place);
}

function start(): void {
  device = display({
    baseUrl: location.origin,
    storage,
    code,
    summary: () => ({ page: "display", build: buildName(), screen: `${innerWidth}x${innerHeight}` }),
    render(state, { isStale, blockedReason }) {
      const wasStale = view.isStale;
      actions.change({ state, isStale, blockedReason });
      // After an outage the service may have a newer build.
      if (wasStale && !isStale) void check();
    },
    onState({ phase, work, heartbeat, problem, display: newest, answeredAtMs }) {
      const isStopped = phase === "enrolled" && (work === "off" || heartbeat === "off");
      const lastAnswerAtMs = newest === null ? null : answeredAtMs;
      const typedCode = phase === "enrolled" ? "" : view.typedCode;
      actions.change({ phase, isStopped, problem, lastAnswerAtMs, typedCode });
    },
  });
}

/** A display that goes dark after a minute is none. The browser ends the lock when the page is hidden. */
function keepAwake(): void {
  if (document.hidden || !("wakeLock" in navigator)) return;
  // A browser may refuse it, for example with a low battery; it is asked again when the page is next visible.
  navigator.wakeLock.request("screen").catch(() => undefined);
}

/**
 * One display of a name for each browser: two tabs with one credential would use up its pace, and neither would be up to date. The
 * next tab begins when the first one closes. A browser without locks trusts its person.
 */
function whenAlone(name: string, begin: () => void, onWait: () => void): void {
  if (!("locks" in navigator)) return begin();
  const { locks } = navigator;
  const hold = (): Promise<never> => {
    begin();
    // Held as long as the page lives.
    return new Promise<never>(() => undefined);
  };
  const failed = (): void => begin();
  const lockName = `customer-display ${name}`;
  locks
    .request(lockName, { ifAvailable: true }, (lock) => {
      if (lock !== null) return hold();
      onWait();
      locks.request(lockName, hold).catch(failed);
      return undefined;
    })
    .catch(failed);
}

chooseLanguage(chosenLanguage());
place.textContent = "";
draw();
setInterval(draw, REDRAW_EVERY_MS);
addEventListener("resize", draw);
// Restored from the browser's memory it would show what was there when it left.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});
const check = keepNewest({ isPairing: () => isPairing(view), isRead: () => isRead(view) });
keepShell();
document.addEventListener("visibilitychange", keepAwake);
keepAwake();
whenAlone(
  displayName(),
  () => {
    actions.change({ isOpenElsewhere: false });
    start();
  },
  () => actions.change({ isOpenElsewhere: true }),
);
