/** One-time links. With a link the person at this machine logs in as the people of the sandbox. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once } from "../operation.ts";
import { barrierSchema } from "./caller.ts";
import { userSchema } from "./users.ts";

const id = z.int().positive();

/**
 * Creates a link and ends the earlier ones. Only this reply has the token. The start of a sandbox calls this, on the
 * bus.
 */
export const createLoginLink = once(
  "registry.createLoginLink",
  z.object({ organizationId: id, stationId: id }),
  z.object({ token: z.string(), expiresAtMs: z.number() }),
);

/**
 * Uses up the link, and opens sessions for the owner, the cashier and the reconciliation operator of the sandbox.
 * Unknown, used and expired links are all `not_found`.
 */
export const logInByLink = once(
  "registry.logInByLink",
  z.object({ token: z.string().max(BOUNDS.loginLinkCharacters) }),
  z.object({
    organizationId: id,
    stationId: id,
    sessions: z.array(z.object({ token: z.string(), expiresAtMs: z.number(), user: userSchema })),
    barrier: barrierSchema,
  }),
);
