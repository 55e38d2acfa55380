// Folders: making them, and a lock file that survives neither its owner nor its owner's machine: it is taken over when the
// process that wrote it is gone. Plain JavaScript, because the first start uses it before TypeScript can run.
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";

/** @type {import("./folders.d.mts").makeFolder} */
export function makeFolder(path, mode = 0o777) {
  if (existsSync(path)) return;
  makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have made it in between.
    if (error.code !== "EEXIST") throw error;
  }
}

export const LOCK_LIMITS = {
  /** How often the owner touches its lock file. */
  refreshMs: 2_000,
  /** A lock from another machine or container, whose processes cannot be seen, counts as left over when untouched this long: some missed touches. */
  foreignStaleMs: 15_000,
  /** How often a waiting process checks again. */
  pollMs: 200,
};

const readOr = (read, fallback) => {
  try {
    return read();
  } catch {
    return fallback;
  }
};

/** Processes with the same value can see each other's process ids: same host name, same boot, same pid namespace. */
function processSpace() {
  const boot = readOr(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), "");
  const namespace = readOr(() => readlinkSync("/proc/self/ns/pid"), "");
  return `${hostname()} ${boot} ${namespace}`;
}

/** When a process started, in kernel ticks; process ids are reused, a pair of id and start is not. Empty where there is no /proc. */
function startTicks(pid) {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, "utf8"), "");
  // The second field, the name, may itself hold blanks and brackets: count from its end.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function readOwner(path) {
  const text = readOr(() => readFileSync(path, "utf8"), undefined);
  if (text === undefined) return undefined;
  const owner = readOr(() => JSON.parse(text), undefined);
  const touchedMs = readOr(() => statSync(path).mtimeMs, 0);
  const visible = owner?.space === processSpace();
  const ageMs = Date.now() - touchedMs;
  // A file without readable content is one that is being written this moment, or one cut short by a crash.
  const stale = visible
    ? !isRunning(owner.pid) || startTicks(owner.pid) !== owner.startTicks
    : ageMs > (owner === undefined ? LOCK_LIMITS.refreshMs : LOCK_LIMITS.foreignStaleMs);
  return { text, pid: owner?.pid, visible, stale };
}

/** Moves a left-over lock away. The rename is checked afterwards, because another process may have replaced it in between. */
function removeStale(path, staleText) {
  const aside = `${path}.${process.pid}`;
  if (!readOr(() => (renameSync(path, aside), true), false)) return;
  if (readOr(() => readFileSync(aside, "utf8"), "") !== staleText) readOr(() => linkSync(aside, path), undefined);
  rmSync(aside, { force: true });
}

function tryCreate(path, text) {
  try {
    const file = openSync(path, "wx", 0o600);
    writeSync(file, text);
    closeSync(file);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** @type {import("./folders.d.mts").tryLock} */
export function tryLock(path) {
  makeFolder(dirname(path));
  const text = JSON.stringify({ pid: process.pid, startTicks: startTicks(process.pid), space: processSpace() });
  for (let round = 0; round < 2; round += 1) {
    if (tryCreate(path, text)) {
      const refresh = setInterval(() => {
        const now = new Date();
        readOr(() => utimesSync(path, now, now), undefined);
      }, LOCK_LIMITS.refreshMs);
      refresh.unref();
      const release = () => {
        clearInterval(refresh);
        if (readOr(() => readFileSync(path, "utf8"), "") === text) rmSync(path, { force: true });
      };
      return { held: true, release };
    }
    const owner = readOwner(path);
    if (owner !== undefined && !owner.stale) return { held: false, ownerPid: owner.pid, ownerVisible: owner.visible };
    if (owner !== undefined) removeStale(path, owner.text);
  }
  return { held: false, ownerPid: undefined, ownerVisible: false };
}

/** @type {import("./folders.d.mts").waitForLock} */
export async function waitForLock(path, { timeoutMs, isFinal, onWait }) {
  const deadline = Date.now() + timeoutMs;
  for (let waited = false; ; waited = true) {
    const attempt = tryLock(path);
    if (attempt.held || isFinal?.(attempt) || Date.now() > deadline) return attempt;
    if (!waited) onWait?.(attempt);
    await new Promise((done) => setTimeout(done, LOCK_LIMITS.pollMs));
  }
}
