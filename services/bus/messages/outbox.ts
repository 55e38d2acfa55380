/** The relay delivers outbox rows; a writer asks it to deliver its rows now, so that its caller reads what it wrote. */
import { z } from "zod";
import { defineOperation } from "../operation.ts";
import { barrierSchema } from "./caller.ts";

/** Delivers all outstanding rows of one key and returns how far the replicas must come to show them. */
export const flushOutbox = defineOperation(
  "relay.flushOutbox",
  "repeatable",
  z.object({ key: z.string() }),
  barrierSchema,
);
