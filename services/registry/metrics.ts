/** What the registry counts: log-ins and enrollments, by result. */
import type { Registry } from "prom-client";
import { RefusedError, SERVICE_REFUSAL_CODES } from "../bus/refusals.ts";
import { addCount, type Count } from "../runtime/metrics.ts";

export interface RegistryMetrics {
  readonly logins: Count<"result">;
  readonly enrollments: Count<"result">;
}

export function addRegistryMetrics(registry: Registry | undefined): RegistryMetrics {
  const labels = { result: ["succeeded", "failed", ...SERVICE_REFUSAL_CODES] };
  return {
    logins: addCount(registry, {
      name: "registry_logins_total",
      help: "Log-ins by result: succeeded, or the code of the refusal.",
      labels,
    }),
    enrollments: addCount(registry, {
      name: "registry_enrollments_total",
      help: "Claims of enrollment codes by result: succeeded, or the code of the refusal.",
      labels,
    }),
  };
}

/** Counts the result of a request; an error that is no refusal counts as `failed`. */
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
