/** Passwords: argon2id at the parameters that OWASP recommends (19 MiB, two passes, one lane), which are the library's own. */
import { randomBytes } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import { RefusedError } from "../../bus/refusals.ts";
import { REGISTRY_LIMITS } from "../limits.ts";

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

export interface Passwords {
  readonly hash: (password: string) => Promise<string>;
  /** False for an unknown user (`undefined`) after the same work as for a known one. Refuses as `busy` when too many wait. */
  readonly verify: (stored: string | undefined, password: string) => Promise<boolean>;
}

/** Makes the hash that stands in for an unknown user's, once, at the parameters in use. */
export async function createPasswords(): Promise<Passwords> {
  const standIn = await hash(randomBytes(32), PARAMETERS);
  let checks = 0;
  return {
    hash: (password) => hash(password, PARAMETERS),
    verify: async (stored, password) => {
      if (checks >= REGISTRY_LIMITS.passwordChecks) throw new RefusedError({ code: "busy", retryAfterMs: 1_000 });
      checks += 1;
      try {
        const matches = await verify(stored ?? standIn, password);
        return matches && stored !== undefined;
      } finally {
        checks -= 1;
      }
    },
  };
}
