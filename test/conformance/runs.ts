/** The suite against a running service: by command, which is a separate program, and by API. */
import { join } from "node:path";
import { expect, vi } from "vitest";
import type { Person } from "../support/people.ts";
import { programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import type { LogIn } from "../support/system.ts";

const SUITE = join(import.meta.dirname, "..", "..", "clients", "conformance.ts");

/** Seeds a sandbox station for runs. Returns its id. */
export async function seedSandbox(owner: Person, filialId: number): Promise<string> {
  const body = { filial_id: filialId, name: "Conformance", currency: "EUR" };
  return String((await owner.good<{ sandbox_id: number }>("POST", "sandboxes/", { body })).sandbox_id);
}

export function runSuite(
  { baseUrl: BASE_URL, dataDir: DATA_DIR, by }: { baseUrl: string; dataDir: string; by: LogIn },
  args: readonly string[],
): RunningProgram {
  const access = { BASE_URL, DATA_DIR, OWNER_EMAIL: by.email, OWNER_PASSWORD: by.password };
  return runProgram(process.execPath, [SUITE, ...args], { env: programEnvironment(access) });
}

/** What the file of `--json-file` contains. */
export interface Result {
  readonly duration_ms: number;
  readonly left_behind: readonly string[];
  readonly checks: readonly { readonly id: string; readonly outcome: string; readonly sentences: readonly string[] }[];
}

/** A run as the API shows it. */
export interface Run {
  readonly conformance_run_id: number;
  readonly status: string;
  readonly ended_at: string | null;
  readonly passed: number;
  readonly suite_version: string;
  readonly left_behind: readonly string[];
  readonly checks: readonly { readonly id: string; readonly outcome: string }[];
}

export const readRunOf = (owner: Person, id: number): Promise<Run> => owner.good<Run>("GET", `conformance-runs/${id}/`);

export async function startRunOf(owner: Person, sandboxId: string): Promise<number> {
  const body = { sandbox_id: Number(sandboxId) };
  return (await owner.good<Run>("POST", "conformance-runs/", { body })).conformance_run_id;
}

export const untilRunOf = (owner: Person, id: number, isRight: (run: Run) => boolean): Promise<Run> =>
  vi.waitFor(
    async () => {
      const run = await readRunOf(owner, id);
      expect(isRight(run), JSON.stringify(run)).toBe(true);
      return run;
    },
    { timeout: 90_000, interval: 500 },
  );
