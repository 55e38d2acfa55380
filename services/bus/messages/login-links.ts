/** One-time links that log the person at this machine in as the people of the sandbox. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once } from "../operation.ts";
import { barrierSchema } from "./caller.ts";
import { userSchema } from "./users.ts";

const id = z.int().positive();

/** Ends the earlier links. The token is returned once. For the start of a sandbox, on the bus only. */
export const createLoginLink = once(
  "registry.createLoginLink",
  z.object({ organizationId: id, stationId: id }),
  z.object({ token: z.string(), expiresAtMs: z.number() }),
);

/**
 * Spends the link and opens a session for the owner, the cashier and the reconciliation operator of the sandbox. Unknown,
 * spent and expired links are `not_found` alike.
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
