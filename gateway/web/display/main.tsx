/**
 * The customer display: a device that uses the device kit. It shows the state that the service answers. The kit hides a state
 * that is no longer certain.
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

/** The footer shows the age of the state in seconds. */
const REDRAW_EVERY_MS = 1_000;

const place = document.getElementById("page") ?? document.body;
// First, before other code can read the address.
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

/** Keeps the screen on. The browser ends the lock when the page is hidden. */
function keepAwake(): void {
  if (document.hidden || !("wakeLock" in navigator)) return;
  // A browser may refuse it, for example with a low battery. The page asks again when it is next visible.
  navigator.wakeLock.request("screen").catch(() => undefined);
}

/**
 * Runs one display of each name per browser. Two tabs with one credential would share its request limit, and neither would be
 * up to date. The next tab begins when the first one closes. A browser without locks does not prevent a second tab.
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
// A page that the browser restores from its memory would show an old state.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});
// The address with a code may be opened in this tab, as by a tap on a link: the browser then loads no page.
addEventListener("hashchange", () => {
  const newCode = takeCode();
  if (newCode !== undefined && isPairing(view)) device?.enroll(newCode);
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
