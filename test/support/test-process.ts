/** A process of ours that a test may kill, stop and start again. */
import { join } from "node:path";
import type { Child } from "../../deploy/child.ts";
import { startServiceProcess } from "../../deploy/service-process.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");

export interface TestProcess {
  pid(): number;
  /** SIGKILL; resolves when it has ended. */
  kill9(): Promise<void>;
  /** SIGTERM, as an orderly shutdown would send it; resolves when it has ended. */
  stop(): Promise<void>;
  /**
   * Starts it again with the same settings; the gateway on the same port. Resolves when it is ready. With a checkout, it runs the
   * program of that checkout from now on.
   */
  restart(checkout?: string): Promise<void>;
}

export interface TestProcessOptions {
  /** For sentences about it. */
  readonly name: string;
  /** The TypeScript file to run, from the root of the checkout. */
  readonly script: string;
  /** Another checkout than that of the test. */
  readonly checkout?: string | undefined;
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly logFile: string;
}

/** Starts it; resolves when it is ready, rejects with its own sentence when it does not come up. */
export async function startTestProcess(options: TestProcessOptions): Promise<TestProcess> {
  let { checkout = CHECKOUT } = options;
  const launch = async (): Promise<Child> => {
    // A process that ends by itself shows as the failed request or the failed restart that follows.
    const { script, args } = options;
    return (await startServiceProcess({ ...options, script: join(checkout, script), args: [...args] })).child;
  };
  let child = await launch();
  return {
    pid: () => child.pid,
    async kill9() {
      await child.kill();
    },
    async stop() {
      await child.stop();
    },
    async restart(from = checkout) {
      checkout = from;
      child = await launch();
    },
  };
}
