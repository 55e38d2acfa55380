/**
 * One whole system for all test files of a worker, which starts when a file asks for it. Each file has an organization of
 * its own, the seeded sandbox, and sees nothing of the files before it.
 *
 *   system = await sharedSystem();   // in beforeAll, in place of startSystem()
 *   afterAll(() => system.stop());   // leaves it to the next file
 *
 * A file that loses data, reads metrics of a process, or needs other settings has a system of its own. One that kills a
 * process starts it again.
 */
import postgres from "postgres";
import { isRunning } from "./running-program.ts";
import { type RunningSystem, type SystemOptions, seed, startProcesses, type TestSystem } from "./system.ts";

/** The key of the installation's operator at this system. */
export const PLATFORM_KEY = "p".repeat(43);

/** What none of the files minds and some of them need. */
const OPTIONS: SystemOptions = {
  sandboxProvider: true,
  webhookSigner: true,
  environment: { PLATFORM_KEY, TRUSTED_PROXIES: "127.0.0.1", WEBHOOK_ALLOW_LOOPBACK: "true" },
};

/** How long it waits for a next file: it costs a twentieth of a core. */
const UNUSED_MS = 5_000;

let shared: Promise<RunningSystem> | undefined;
let unused: NodeJS.Timeout | undefined;

/** The worker's system with a fresh sandbox, and with the sandbox's provider where `sandboxProvider` asks for it. */
export async function sharedSystem(options: Pick<SystemOptions, "sandboxProvider"> = {}): Promise<TestSystem> {
  clearTimeout(unused);
  if (shared !== undefined && !isWhole(await shared)) await stopShared();
  if (shared === undefined) {
    shared = startProcesses(OPTIONS);
    worker().onCleanup(stopShared);
  }
  const running = await shared.catch((error: unknown) => {
    shared = undefined;
    throw error;
  });
  await retireSandbox(running.database.url);
  const stop = (): Promise<void> => {
    unused = setTimeout(() => void stopShared(), UNUSED_MS);
    return Promise.resolve();
  };
  return { ...running, ...(await seed(running, options)), stop };
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

/** `onCleanup` adds to what `vitest` does when the worker ends, after its last file; it has no public name. */
function worker(): { onCleanup: (listener: () => Promise<void>) => void } {
  return (globalThis as unknown as { __vitest_worker__: ReturnType<typeof worker> }).__vitest_worker__;
}

/**
 * Makes room for the next file's sandbox: there is one in an installation, and an e-mail address belongs to one person. The
 * log-in attempts of earlier files do not count against the next one's.
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
