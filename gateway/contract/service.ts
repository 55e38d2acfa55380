/** The service's own endpoints: liveness and readiness of the gateway. */
import { z } from "zod";

export const healthSchema = z.object({ status: z.literal("ok") }).meta({ id: "Health", examples: [{ status: "ok" }] });

const dependencySchema = z
  .object({
    ready: z.boolean(),
    silent_ms: z
      .number()
      .nullable()
      .meta({ description: "Milliseconds since its feed was last known to be complete." }),
  })
  .meta({ id: "DependencyReadiness" });

export const readinessSchema = z
  .object({
    ready: z.boolean(),
    dependencies: z.object({
      bus: dependencySchema,
      stations: dependencySchema,
      credentials: dependencySchema,
      sessions: dependencySchema,
      switches: dependencySchema,
    }),
  })
  .meta({ id: "Readiness" });
