import type { authenticateConsumer } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { RoboticsDeps } from "../deps.ts";
import { findByCredential } from "../sql/consumers.ts";
import { callerOnWire } from "./consumer-wire.ts";

/** Looked up each time, because a credential is verified on every read: a reset and a suspension hold from their commit on. */
export async function authenticate(
  { database, figures }: Pick<RoboticsDeps, "database" | "figures">,
  { credentialHash }: RequestOf<typeof authenticateConsumer>,
): Promise<ReplyOf<typeof authenticateConsumer>> {
  const row = await findByCredential(database, Buffer.from(credentialHash, "hex"));
  const isKnown = row?.status === "active";
  figures.credentialChecks.add({ result: isKnown ? "known" : "unknown" });
  // Only who holds the credential is told of the suspension, so nobody can find out by it whom there is.
  return isKnown ? { consumer: callerOnWire(row) } : { consumer: null, suspended: row !== undefined };
}
