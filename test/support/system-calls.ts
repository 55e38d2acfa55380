/**
 * Records the system calls of a program, with the order in which they began and ended.
 *
 *   const tracer = await startTracing("nats-server");
 *   spawn(tracer.traced("/path/of/program"), ["its", "arguments"]);
 *   …                                    // the program ends
 *   const calls = await tracer.calls();
 */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { type DebianProgram, debianPrograms } from "./debian-programs.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** The calls that write to a file or a socket, and those that make a file durable. */
const TRACED = "write,writev,pwrite64,pwritev,pwritev2,send,sendto,sendmsg,sendmmsg,fsync,fdatasync,sync_file_range";
/** Longer than any message of these tests, because a shortened text would not be found. */
const LONGEST_BYTES = 1_000_000;
const COMPLETE_WITHIN_MS = 10_000;

/** When a call began or ended. `line` orders the calls of one program, and the clock those of several programs. */
export interface Moment {
  readonly line: number;
  readonly atUs: number;
}

export interface SystemCall {
  readonly name: string;
  /** The path of a file, or the two ends of a connection, `TCP:[…->…]`. */
  readonly target: string;
  /** The bytes that the call writes. */
  readonly data: Buffer;
  readonly began: Moment;
  /** Undefined when the call had not ended. */
  readonly ended: Moment | undefined;
  readonly isDone: boolean;
}

export interface Tracer {
  /**
   * Returns the path of a script that runs this program, traced from its first call on with all threads and children.
   * `before` is a shell command that runs first, with the program's arguments in $1, $2, …
   */
  traced(program: string, before?: string): string;
  /** The program's calls, once it has ended. */
  calls(): Promise<SystemCall[]>;
  readonly remove: () => void;
}

export async function startTracing(name: string): Promise<Tracer> {
  const strace = await findStrace();
  const folder = temporaryFolder(`trace-${name}`);
  const file = join(folder.path, "calls");
  return {
    traced: (program, before = "") => {
      // With -D the program is the child of its caller, as without strace. So it gets signals, and the caller gets its exit code.
      const how = `-D -f --seccomp-bpf -yy -ttt -T -xx -s ${LONGEST_BYTES} -e trace=${TRACED} -e signal=none`;
      const script = join(folder.path, name);
      const start = `exec "${strace.path}" ${how} -E LD_LIBRARY_PATH -o "${file}" "${program}" "$@"`;
      writeFileSync(script, `#!/bin/sh\n${before}\nLD_LIBRARY_PATH="${strace.libraries}" ${start}\n`, { mode: 0o700 });
      return script;
    },
    calls: async () => parseCalls(await completeText(file)),
    remove: folder.remove,
  };
}

/** The output of strace, once each thread of the program has ended. */
async function completeText(file: string): Promise<string> {
  const deadlineMs = Date.now() + COMPLETE_WITHIN_MS;
  for (;;) {
    const text = readFileSync(file, "utf8");
    const ended = threadsIn(text, /^(\d+) .*\+\+\+ (?:exited|killed)/gm);
    if (ended.size > 0 && threadsIn(text, /^(\d+) /gm).size === ended.size) return text;
    if (Date.now() > deadlineMs)
      throw new Error(`The traced program has not ended; its last calls:\n${text.slice(-500)}`);
    await delay(20);
  }
}

function threadsIn(text: string, pattern: RegExp): Set<string | undefined> {
  return new Set([...text.matchAll(pattern)].map(([, thread]) => thread));
}

const LINE = /^(\d+) +(\d+)\.(\d{6}) (?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$/;

/** Reads the output of strace with the options above. */
function parseCalls(text: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const lasting = new Map<string, number>();
  for (const [line, entry] of text.split("\n").entries()) {
    const [, thread = "", seconds, microseconds, resumed, name, rest = ""] = LINE.exec(entry) ?? [];
    if (seconds === undefined) continue;
    const atUs = Number(seconds) * 1_000_000 + Number(microseconds);
    const isDone = / = \d+( |$)/.test(rest);
    if (resumed !== undefined) {
      const index = lasting.get(`${thread} ${resumed}`);
      const call = index === undefined ? undefined : calls[index];
      if (call === undefined || index === undefined) throw new Error(`This call ended but did not begin: ${entry}`);
      calls[index] = { ...call, isDone, ended: { line, atUs } };
      continue;
    }
    const isUnfinished = rest.endsWith("<unfinished ...>");
    if (isUnfinished) lasting.set(`${thread} ${name}`, calls.length);
    const tookUs = Math.ceil(Number(/<(\d+\.\d+)>$/.exec(rest)?.[1] ?? 0) * 1_000_000);
    calls.push({
      name: name ?? "",
      target: targetOf(rest),
      data: writtenBytes(rest),
      began: { line, atUs },
      ended: isUnfinished ? undefined : { line, atUs: atUs + tookUs },
      isDone: !isUnfinished && isDone,
    });
  }
  return calls;
}

function targetOf(rest: string): string {
  const named = /^\d+<(.*?)>(?:[,)]| <unfinished)/.exec(rest)?.[1] ?? "";
  return named.startsWith("\\x") ? fromHex(named).toString() : named;
}

function fromHex(text: string): Buffer {
  return Buffer.from(text.replaceAll("\\x", ""), "hex");
}

function writtenBytes(rest: string): Buffer {
  const texts = [...rest.matchAll(/"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?/g)];
  if (texts.some(([, , cut]) => cut !== undefined)) throw new Error(`A text is cut off: ${rest.slice(0, 200)}`);
  return fromHex(texts.map(([, text = ""]) => text).join(""));
}

const SYNCS: ReadonlySet<string> = new Set(["fsync", "fdatasync"]);

/** The calls that sent bytes to a socket, and so to other programs. */
export function sent(calls: readonly SystemCall[]): SystemCall[] {
  return calls.filter(({ name, target }) => target.startsWith("TCP") && !SYNCS.has(name));
}

export interface Durable {
  readonly write: SystemCall;
  /** The first successful sync of that file that began after the write had ended. Undefined when there was none. */
  readonly sync: SystemCall | undefined;
}

/** Each write of these bytes to a file whose path contains `path`, with the sync that made it durable. */
export function durableWrites(calls: readonly SystemCall[], path: string, bytes: string): Durable[] {
  return calls
    .filter(({ name, target, data }) => !SYNCS.has(name) && target.includes(path) && data.includes(bytes))
    .map((write) => ({
      write,
      sync: calls.find(
        ({ name, target, began, isDone }) =>
          SYNCS.has(name) &&
          target === write.target &&
          isDone &&
          write.ended !== undefined &&
          began.line > write.ended.line,
      ),
    }));
}

const PROBE_MS = 10_000;

/**
 * Finds a strace that can trace on this machine. Its libraries are for strace only, not for the traced program. Rejects
 * when there is none: a test that needs strace then fails.
 */
export async function findStrace(): Promise<DebianProgram> {
  const { strace } = await debianPrograms("strace");
  await promisify(execFile)(strace.path, ["-f", "-o", "/dev/null", "-e", "trace=fsync", "true"], {
    env: { ...process.env, LD_LIBRARY_PATH: strace.libraries },
    timeout: PROBE_MS,
  }).catch((cause: unknown) => {
    throw new Error(`${strace.path} cannot trace a process here: allow ptrace for this user or container.`, { cause });
  });
  return strace;
}
