/** A process of the product that a test may kill, stop and start again. */
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
   * Starts it again with the same settings; the gateway on the same port. Resolves when it is ready. With `checkout`, it
   * runs the program of that checkout from now on.
   */
  restart(checkout?: string): Promise<void>;
}

export interface TestProcessOptions {
  /** The name of the process in error messages. */
  readonly name: string;
  /** The TypeScript file to run, from the root of the checkout. */
  readonly script: string;
  /** A checkout other than the test's. */
  readonly checkout?: string | undefined;
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly logFile: string;
}

/** Starts the process. Resolves when it is ready; rejects with its error message when it does not start. */
export async function startTestProcess(options: TestProcessOptions): Promise<TestProcess> {
  let { checkout = CHECKOUT } = options;
  const launch = async (): Promise<Child> => {
    // When a process ends unexpectedly, the next request or restart fails.
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
