/** Whether the gateway is alive, and whether it is ready for requests. */
import { z } from "zod";
import { PARTITION_COUNT } from "../../../machines/partition.ts";
import { SERVICE_FAULTS } from "../../../services/bus/messages/health.ts";
import { type Handler, ok } from "../../http/handler-context.ts";
import { anyone, route } from "../../http/route.ts";

const healthSchema = z.object({ status: z.literal("ok") }).meta({ id: "Health", examples: [{ status: "ok" }] });

/** Why a dependency is not ready. These are words and not sentences, because monitors read `GET /readyz`. */
const DEPENDENCY_FAULTS = [
  "disconnected",
  "no_majority",
  "silent",
  "incomplete",
  "no_answer",
  ...SERVICE_FAULTS,
  "partitions_unowned",
  "disk_low",
  "disk_below_reserve",
  "disk_full",
] as const;
export type DependencyFault = (typeof DEPENDENCY_FAULTS)[number];

const FAULTS_EXPLAINED = [
  "Why it is not ready, null while it is.",
  "`disconnected`: the connection to the bus is down.",
  "`no_majority`: the bus is connected, and no majority of its servers answers.",
  "`silent`: the feed does not arrive, or has not arrived completely.",
  "`incomplete`: the bus was started or created again, and the relay has not yet confirmed that the bus has all data of this dependency.",
  "`no_answer`: no process of the service answers in time, or none with a current answer; a database that begins to hang is first reported with this code.",
  "`database_unreachable`: PostgreSQL does not answer the service, or is read-only.",
  "`copy_late`: commits wait too long for their audit copy.",
  "`delivery_late`: changes wait too long in the outbox for their station or for the gateways.",
  "`streams_missing`: a stream or bucket of the bus is missing; the relay's log names it, and `migrate` creates it again.",
  "`clock_wrong`: the clock of the machine is wrong by more than a second; the service uses the time of the bus, so nothing is lost. For `database`: PostgreSQL's clock is wrong, so a QR may expire late, or a payment that came in time may count as late.",
  "`partitions_unowned`: no actor host answers for some of the stations.",
  "`disk_low`: the disk has less than twice its reserve free; all operations still work.",
  "`disk_below_reserve`: operations that can wait get `storage_low`, and no webhook is sent.",
  "`disk_full`: no collection begins either; collections under way are completed while there is space.",
].join(" ");

const dependencyFaultSchema = z.enum(DEPENDENCY_FAULTS).meta({ id: "DependencyFault", description: FAULTS_EXPLAINED });

const dependencySchema = z
  .object({
    ready: z.boolean(),
    required: z.boolean().meta({ description: "Whether this gateway needs it to be ready." }),
    silent_ms: z.number().nullable().meta({
      description:
        "Milliseconds since its feed was last known to be complete, or since it last answered; null when that never happened, or is not measured.",
    }),
    detail: dependencyFaultSchema.nullable(),
  })
  .meta({ id: "DependencyReadiness" });
export type DependencyReadiness = z.infer<typeof dependencySchema>;

const stationHostsSchema = dependencySchema
  .extend({
    partitions: z.literal(PARTITION_COUNT).meta({ description: "The number of partitions of all stations." }),
    partitions_owned: z
      .int()
      .min(0)
      .max(PARTITION_COUNT)
      .nullable()
      .meta({ description: "Partitions that some actor host answers for; null when no host answered." }),
  })
  .meta({ id: "StationHostsReadiness" });

const diskSchema = dependencySchema
  .extend({
    free_bytes: z.number().nullable().meta({
      description: "Free bytes on the disk that this gateway watches; null when it watches none.",
    }),
  })
  .meta({ id: "DiskReadiness" });

const clockSchema = dependencySchema
  .extend({
    ahead_ms: z.number().nullable().meta({
      description:
        "By how many milliseconds the clock of this gateway's machine is ahead of the bus, negative when it is behind; null before the first comparison.",
    }),
  })
  .meta({ id: "ClockReadiness" });

export const readinessSchema = z
  .object({
    ready: z.boolean().meta({ description: "Whether every required dependency is ready." }),
    dependencies: z.object({
      bus: dependencySchema,
      stations: dependencySchema,
      credentials: dependencySchema,
      sessions: dependencySchema,
      switches: dependencySchema,
      registry: dependencySchema,
      settlement: dependencySchema,
      providers: dependencySchema,
      audit: dependencySchema,
      relay: dependencySchema,
      robotics: dependencySchema,
      webhook_signer: dependencySchema,
      reconciliation: dependencySchema,
      station_hosts: stationHostsSchema,
      database: dependencySchema,
      disk: diskSchema,
      clock: clockSchema,
    }),
  })
  .meta({ id: "Readiness" });
export type Readiness = z.infer<typeof readinessSchema>;

const getReadiness: Handler = async ({ deps }) => {
  const readiness = await deps.readiness();
  return { status: readiness.ready ? 200 : 503, body: readiness };
};

export const healthRoutes = [
  route({
    method: "GET",
    path: "/healthz",
    operation: "getHealth",
    tag: "service",
    summary: "Whether the process is alive",
    description: "Does not check the dependencies; `/readyz` does.",
    who: anyone,
    replies: { 200: { description: "The process is alive.", schema: healthSchema } },
    quiet: true,
    needsNoSlot: true,
    handler: () => ok({ status: "ok" }),
  }),
  route({
    method: "GET",
    path: "/readyz",
    operation: "getReadiness",
    tag: "service",
    summary: "Whether this gateway should be sent requests",
    description:
      "The readiness of each dependency. The bus and the feeds from which this gateway answers are required. The services behind the bus are reported for monitors and decide nothing here, because all gateways share them. The gateway asks them at most once a second, and reports `no_answer` for one that does not answer within 250 ms, unless its last answer was `database_unreachable`.",
    who: anyone,
    replies: {
      200: { description: "Ready.", schema: readinessSchema },
      503: {
        description: "Not ready: a required dependency is not ready, and the gateway refuses requests that need it.",
        schema: readinessSchema,
      },
    },
    quiet: true,
    needsNoSlot: true,
    handler: getReadiness,
  }),
];
