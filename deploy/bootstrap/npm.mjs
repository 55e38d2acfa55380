import { spawn } from "node:child_process";
import { accessSync, constants, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { makeFolder } from "./folders.mjs";

/** Where the full output of the last npm run is kept, relative to the checkout. */
const NPM_LOG = join(".cache", "npm.log");
/** npm's output is kept in memory for the sentence and the log; more than this of it does not help. */
const MAX_OUTPUT_CHARS = 1_000_000;
const PROGRESS_MS = 1_000;

function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** npm's surroundings: never this checkout's node (npm is about to replace it), and a cache folder that can be written. */
function npmEnvironment(checkout) {
  const local = join(checkout, "node_modules", ".bin");
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== local);
  const environment = { ...process.env, PATH: path.join(delimiter), npm_config_update_notifier: "false" };
  const home = process.env.HOME;
  if ((home === undefined || home === "" || !isWritable(home)) && process.env.npm_config_cache === undefined) {
    environment.npm_config_cache = join(checkout, ".cache", "npm");
  }
  if (home === "") environment.HOME = join(checkout, ".cache");
  return environment;
}

/** The line of npm's output that names the fault; the rest is in the log. */
function npmReason(output) {
  const lines = output.split("\n").filter((line) => /^npm (error|ERR!)/.test(line));
  const texts = lines.map((line) => line.replace(/^npm (error|ERR!)\s*/, "").trim());
  return (
    texts.find((text) => text !== "" && !/^(code|errno|syscall|path|A complete log|command|signal) ?/.test(text)) ??
    "no reason given"
  );
}

/** Writes over the terminal's current line. */
function draw(text) {
  process.stderr.write(`\r\x1b[K${text}`);
}

/**
 * One line that counts the seconds on a terminal; two plain lines elsewhere.
 * @param {string} title
 * @returns {(outcome: "done" | "failed") => void} ends the line
 */
export function progress(title) {
  const startedMs = Date.now();
  const seconds = () => `${Math.round((Date.now() - startedMs) / 1000)} s`;
  if (!process.stderr.isTTY) {
    process.stderr.write(`${title} …\n`);
    return (outcome) => process.stderr.write(`${title}: ${outcome} after ${seconds()}.\n`);
  }
  draw(`${title} …`);
  const timer = setInterval(() => draw(`${title} … ${seconds()}`), PROGRESS_MS);
  return (outcome) => {
    clearInterval(timer);
    draw(`${title}: ${outcome} after ${seconds()}.\n`);
  };
}

/**
 * Ends npm and everything it started when this process is killed: an npm that went on writing into node_modules would
 * collide with the next start's. A shell waits for the pipe from here to close.
 */
function leash(child) {
  if (child.pid === undefined) return () => undefined;
  const script = 'cat >/dev/null; kill -s KILL -- "-$1"';
  const shell = spawn("/bin/sh", ["-c", script, "leash", String(child.pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  shell.on("error", () => undefined);
  return () => shell.kill("SIGKILL");
}

/**
 * Runs npm in the checkout.
 * @param {string} checkout
 * @param {string[]} args
 * @returns {Promise<{ ok: boolean, sentence: string }>} `sentence` gives a person the reason of a failure
 */
export function runNpm(checkout, args) {
  return new Promise((resolve) => {
    let output = "";
    const keep = (chunk) => {
      if (output.length < MAX_OUTPUT_CHARS) output += chunk;
    };
    const child = spawn("npm", args, {
      cwd: checkout,
      env: npmEnvironment(checkout),
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    child.stdout.setEncoding("utf8").on("data", keep);
    child.stderr.setEncoding("utf8").on("data", keep);
    const release = leash(child);
    // npm has a separate process group, so a terminal's Ctrl-C reaches it from here only.
    const forward = (signal) => child.kill(signal);
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, forward);
    let ended = false;
    const end = (ok, sentence) => {
      // A program that cannot be started may report both an error and its end.
      if (ended) return;
      ended = true;
      for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, forward);
      release();
      resolve({ ok, sentence });
    };
    child.on("error", (error) =>
      end(
        false,
        error.code === "ENOENT"
          ? "npm is needed to install the dependencies, and there is none on PATH."
          : `npm cannot be run (${error.code}).`,
      ),
    );
    child.on("close", (code, signal) => {
      makeFolder(join(checkout, ".cache"));
      writeFileSync(join(checkout, NPM_LOG), output);
      const why = signal === null ? npmReason(output) : `it was ended by ${signal}`;
      end(code === 0, `npm ${args[0]} failed: ${why.replace(/\.$/, "")}; the full output is in ${NPM_LOG}.`);
    });
  });
}

/** The error when npm installed everything, but did not complete the install script that fetches the pinned Node. */
export function installScriptSentence(result) {
  const why = result.ok ? "npm refused to run its install script" : result.sentence.replace(/\.$/, "");
  return `The pinned Node could not be put into node_modules (${why}); allow it with \`npm rebuild node --ignore-scripts=false\` and start again.`;
}
