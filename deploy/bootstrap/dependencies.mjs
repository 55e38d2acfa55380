import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitForLock } from "./folders.mjs";
import { installScriptSentence, progress, runNpm } from "./npm.mjs";

/** An error whose message is one sentence for the person who ran the command. */
export class SetupError extends Error {
  name = "SetupError";
}

/** The Node that everything runs on, inside the checkout. */
export const PINNED_NODE = join("node_modules", "node", "bin", "node");
/** Holds the hash of the lock file and the patches that node_modules was made from, and the machine it was made for. */
const STAMP = join("node_modules", ".device-payments-lock");
/** What npm runs after each installation: applies the patches, or finds them applied. */
const APPLY_PATCHES = ["run", "--if-present", "postinstall"];
/** Everything that the lock file names, whatever npm's settings on this machine leave out. */
const INSTALL = ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund"];
/** Outside node_modules, because `npm ci` removes that folder first. */
const INSTALL_LOCK = join(".cache", "install.lock");
/** Printed before anything else, so that a person knows what they wait for. Measured: 720 MB, 36 s on two cores. */
const FIRST_START =
  "The first start installs about 800 MB into node_modules, which takes about a minute; later ones do not.\n";
/** An installation on a slow line takes minutes; a second start waits for it this long. */
const INSTALL_WAIT_MS = 15 * 60_000;

const readOr = (path, fallback) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return fallback;
  }
};

/** The content of a current stamp. node_modules holds binaries, so the machine is part of it. */
function wantedStamp(checkout) {
  const patches = join(checkout, "patches");
  const hash = createHash("sha256");
  hash.update(readOr(join(checkout, "package-lock.json"), readOr(join(checkout, "package.json"), "")));
  for (const file of existsSync(patches) ? readdirSync(patches) : []) hash.update(readOr(join(patches, file), ""));
  return `${hash.digest("hex")} ${process.platform}-${process.arch}\n`;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isCurrent(checkout) {
  return readOr(join(checkout, STAMP), "") === wantedStamp(checkout) && isExecutable(join(checkout, PINNED_NODE));
}

/**
 * True when node_modules holds exactly the lock file's packages: a person ran npm by hand, and nothing is left to do. The packages
 * for development may be missing where `withoutDev` is set.
 */
function wasInstalledByHand(checkout, { withoutDev = false } = {}) {
  try {
    const wanted = JSON.parse(readFileSync(join(checkout, "package-lock.json"), "utf8")).packages;
    const recorded = JSON.parse(readFileSync(join(checkout, "node_modules", ".package-lock.json"), "utf8")).packages;
    // npm's record alone proves nothing: `npm install --package-lock-only` writes it too, and installs nothing.
    const isThere = (path) =>
      JSON.parse(readFileSync(join(checkout, path, "package.json"), "utf8")).version === wanted[path].version;
    const same = (path) => wanted[path]?.integrity === recorded[path].integrity && isThere(path);
    const isNeeded = ({ optional, dev, devOptional }) => !optional && !(withoutDev && (dev || devOptional));
    const missing = (path) => path !== "" && isNeeded(wanted[path]) && recorded[path] === undefined;
    return Object.keys(recorded).every(same) && !Object.keys(wanted).some(missing) && pinnedNodeRuns(checkout);
  } catch {
    return false;
  }
}

function pinnedNodeRuns(checkout) {
  const version = JSON.parse(readOr(join(checkout, "node_modules", "node", "package.json"), "{}")).version;
  const answer = spawnSync(join(checkout, PINNED_NODE), ["--version"], { encoding: "utf8" });
  return answer.status === 0 && answer.stdout.trim() === `v${version}`;
}

/** Runs one npm task with a line of progress; throws its sentence when it fails. */
async function withProgress(title, task) {
  const finish = progress(title);
  const result = await task();
  finish(result.ok ? "done" : "failed");
  if (!result.ok) throw new SetupError(result.sentence);
}

async function install(checkout) {
  const isFirst = !existsSync(join(checkout, "node_modules"));
  const title = isFirst ? "Installing the dependencies" : "Updating the dependencies";
  if (isFirst) process.stderr.write(FIRST_START);
  await withProgress(title, () => runNpm(checkout, INSTALL));
  // npm may run no scripts, by its settings; the pinned Node and the patches are still needed.
  const patched = await runNpm(checkout, APPLY_PATCHES);
  if (!patched.ok) throw new SetupError(patched.sentence);
  if (pinnedNodeRuns(checkout)) return;
  await withProgress("Fetching the pinned Node", async () => {
    const rebuilt = await runNpm(checkout, ["rebuild", "node", "--ignore-scripts=false"]);
    return { ok: rebuilt.ok && pinnedNodeRuns(checkout), sentence: installScriptSentence(rebuilt) };
  });
}

/**
 * Makes node_modules match package-lock.json. Does nothing, within milliseconds, when it does already. Two starts at once
 * take turns.
 * @param {string} checkout
 * @param {{ forProduction?: boolean }} options `forProduction`: the target needs no package for development
 */
export async function prepareDependencies(checkout, { forProduction = false } = {}) {
  if (isCurrent(checkout)) return;
  // `npm ci --omit=dev` of an operator: an installation would remove the packages under the processes that run from there.
  if (forProduction && wasInstalledByHand(checkout, { withoutDev: true })) return;
  try {
    accessSync(checkout, constants.W_OK);
  } catch {
    throw new SetupError(`The dependencies cannot be installed, because ${checkout} is not writable for this user.`);
  }
  const lock = await waitForLock(join(checkout, INSTALL_LOCK), {
    timeoutMs: INSTALL_WAIT_MS,
    onWait: () => process.stderr.write("Another start is installing the dependencies; waiting for it.\n"),
  });
  if (!lock.held) {
    throw new SetupError(`Another start (process ${lock.ownerPid}) has been installing the dependencies for too long.`);
  }
  try {
    if (isCurrent(checkout)) return;
    // Patches that have changed since do not apply; then the packages are installed again.
    const isReady = wasInstalledByHand(checkout) && (await runNpm(checkout, APPLY_PATCHES)).ok;
    if (!isReady) await install(checkout);
    writeFileSync(join(checkout, STAMP), wantedStamp(checkout));
  } finally {
    lock.release();
  }
}
