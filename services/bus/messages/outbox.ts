/**
 * The operations of the relay, which delivers outbox rows. A writer requests the delivery of its rows, so that its
 * caller can read the change. A reader of a bucket reads how far the relay has delivered.
 */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { barrierSchema } from "./caller.ts";

/** Delivers all outstanding rows of one key. Returns the positions at which the replicas show them. */
export const flushOutbox = repeatable("relay.flushOutbox", z.object({ key: z.string() }), barrierSchema);

/**
 * The newest entry of a bucket that is recorded as delivered; zero without a recent record. The records are in
 * PostgreSQL, so every relay can answer, also a standby.
 */
export const readDelivered = repeatable(
  "relay.readDelivered",
  z.object({ stream: z.string() }),
  z.object({ sequence: z.int().min(0) }),
);
