/** What the registry counts: log-ins and enrollments, by what came of them. */
import type { Registry } from "prom-client";
import { RefusedError, SERVICE_REFUSAL_CODES } from "../bus/refusals.ts";
import { addCount, type Count } from "../runtime/figures.ts";

export interface RegistryFigures {
  readonly logins: Count<"result">;
  readonly enrollments: Count<"result">;
}

export function addRegistryFigures(metrics: Registry | undefined): RegistryFigures {
  const labels = { result: ["succeeded", "failed", ...SERVICE_REFUSAL_CODES] };
  return {
    logins: addCount(metrics, {
      name: "registry_logins_total",
      help: "Log-ins by result: succeeded, or the code of the refusal.",
      labels,
    }),
    enrollments: addCount(metrics, {
      name: "registry_enrollments_total",
      help: "Claims of enrollment codes by result: succeeded, or the code of the refusal.",
      labels,
    }),
  };
}

/** Counts what becomes of a piece of work; a failure that is no refusal counts as `failed`. */
export async function counted<T>(count: Count<"result">, work: Promise<T>): Promise<T> {
  try {
    const done = await work;
    count.add({ result: "succeeded" });
    return done;
  } catch (error) {
    count.add({ result: error instanceof RefusedError ? error.refusal.code : "failed" });
    throw error;
  }
}
