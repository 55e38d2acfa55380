/**
 * One whole system for all test files of a worker. It starts when the first file calls `sharedSystem`. Each file has its
 * own organization, a new seeded sandbox, and no data of earlier files.
 *
 *   system = await sharedSystem();   // in beforeAll, in place of startSystem()
 *   afterAll(() => system.stop());   // leaves it to the next file
 *
 * A file that loses data, reads metrics of a process, changes the platform's switches, or needs other settings starts its
 * own system. A file that kills a process starts it again.
 */
import postgres from "postgres";
import { isRunning } from "./running-program.ts";
import { type RunningSystem, type SystemOptions, seed, startProcesses, type TestSystem } from "./system.ts";
import type { TestProcess } from "./test-process.ts";

/** The key of the installation's operator at this system. */
export const PLATFORM_KEY = "p".repeat(43);

/** The options that some files need. They do not disturb the other files. */
const OPTIONS: SystemOptions = {
  sandboxProvider: true,
  webhookSigner: true,
  environment: { PLATFORM_KEY, TRUSTED_PROXIES: "127.0.0.1", WEBHOOK_ALLOW_LOOPBACK: "true" },
};

/** How long the unused system waits for the next file. Meanwhile it uses a twentieth of a core. */
const UNUSED_MS = 5_000;

let shared: Promise<RunningSystem> | undefined;
let isUsed = false;
let unused: NodeJS.Timeout | undefined;

interface SharedOptions extends Pick<SystemOptions, "sandboxProvider"> {
  /** Set when a program or page of the file claims codes from this machine's address, which may claim ten times a minute. */
  readonly claims?: boolean;
  /** Set when the file reads the records of refused callbacks, of which a process stores a bounded number a minute. */
  readonly refusals?: boolean;
}

/** The worker's system with a fresh sandbox. With `sandboxProvider` the sandbox also has its provider. */
export async function sharedSystem(options: SharedOptions = {}): Promise<TestSystem> {
  clearTimeout(unused);
  if (shared !== undefined && !isWhole(await shared)) await stopShared();
  const running = await (shared === undefined ? startShared() : shared);
  if (options.claims === true && isUsed) await renew(running.processes.gateway);
  if (options.refusals === true && isUsed) await renew(running.processes.services);
  isUsed = true;
  await retireSandbox(running.database.url);
  const stop = (): Promise<void> => {
    unused = setTimeout(() => void stopShared(), UNUSED_MS);
    return Promise.resolve();
  };
  return { ...running, ...(await seed(running, options)), stop };
}

async function startShared(): Promise<RunningSystem> {
  isUsed = false;
  // The run's PostgreSQL, and the database with it, may have ended before the last worker.
  worker().onCleanup(() => stopShared().catch(() => undefined));
  shared = startProcesses(OPTIONS);
  try {
    return await shared;
  } catch (error) {
    shared = undefined;
    throw error;
  }
}

/** Starts a process again, so that its counts are zero. */
async function renew(process: TestProcess): Promise<void> {
  await process.stop();
  await process.restart();
}

/** A file that failed may have left a process killed. */
const isWhole = ({ processes, bus }: RunningSystem): boolean =>
  bus.isUp() && Object.values(processes).every((each) => isRunning(each.pid()));

async function stopShared(): Promise<void> {
  clearTimeout(unused);
  const running = shared;
  shared = undefined;
  await (await running)?.stop();
}

/** `onCleanup` registers a function that `vitest` calls when the worker ends, after its last file. It is not a public API. */
const worker = () => Reflect.get(globalThis, "__vitest_worker__") as { onCleanup: (end: () => Promise<void>) => void };

/**
 * Prepares for the next file's sandbox: an installation has one sandbox, and an e-mail address belongs to one person. The
 * log-in attempts of earlier files are deleted, so that they do not count for the next file.
 */
async function retireSandbox(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1 });
  try {
    await sql`update organizations set sandbox = false where sandbox`;
    await sql`update users set email = 'retired-' || user_id || '@sandbox.example' where email not like 'retired-%'`;
    await sql`delete from login_attempts`;
  } finally {
    await sql.end();
  }
}
