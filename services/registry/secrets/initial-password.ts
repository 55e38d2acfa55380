/** The first password of an organization's owner: shown once, stored hashed, and changed by the owner after the first log-in. */
import { randomBytes } from "node:crypto";

const BYTES = 18;

/** 144 random bits as 24 characters, which a person can copy from one line. */
export function mintInitialPassword(): string {
  return randomBytes(BYTES).toString("base64url");
}
