/**
 * The relay delivers outbox rows; a writer asks it to deliver its rows now, so that its caller reads what it wrote. A reader
 * asks how far the relay has come.
 */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { barrierSchema } from "./caller.ts";

/** Delivers all outstanding rows of one key and returns how far the replicas must come to show them. */
export const flushOutbox = repeatable("relay.flushOutbox", z.object({ key: z.string() }), barrierSchema);

/**
 * The newest entry of a bucket that was delivered of late and noted as delivered, when the request was read; zero for none.
 * Every relay answers, also one that stands by, because PostgreSQL knows.
 */
export const readDelivered = repeatable(
  "relay.readDelivered",
  z.object({ stream: z.string() }),
  z.object({ sequence: z.int().min(0) }),
);
