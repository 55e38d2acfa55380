/** Passwords: argon2id at the parameters that OWASP recommends (19 MiB, two passes, one lane), which are the library's own. */
import { randomBytes } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import { type Party, PasswordTurns } from "./password-turns.ts";

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

export interface PasswordChecks {
  readonly hash: (password: string) => Promise<string>;
  /** False for an unknown user (`undefined`) after the same work as for a known one. */
  readonly verify: (stored: string | undefined, password: string) => Promise<boolean>;
}

export interface Passwords {
  /** Runs `work` while the party holds a place; its checks wait for their turns. Throws `busy` when there is no place. */
  readonly hold: <T>(party: Party, work: (checks: PasswordChecks) => Promise<T>) => Promise<T>;
}

/** Makes the hash that stands in for an unknown user's, once, at the parameters in use. */
export async function createPasswords(): Promise<Passwords> {
  const standIn = await hash(randomBytes(32), PARAMETERS);
  const turns = new PasswordTurns();
  return {
    hold: (party, work) =>
      turns.hold(party, (turn) =>
        work({
          hash: (password) => turn(() => hash(password, PARAMETERS)),
          verify: async (stored, password) => {
            const matches = await turn(() => verify(stored ?? standIn, password));
            return matches && stored !== undefined;
          },
        }),
      ),
  };
}

/** The operator of the installation. */
export const OPERATOR_PARTY: Party = { lane: "known", key: "operator" };

/** A person of the organization at a known address or with a valid session: so one tenant does not keep others waiting. */
export function organizationParty(organizationId: number): Party {
  return { lane: "known", key: `organization ${organizationId}` };
}
