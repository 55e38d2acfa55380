import { createHash } from "node:crypto";
import type { offerTask } from "../../bus/messages/robotics.ts";
import type { RequestOf } from "../../bus/operation.ts";

/** Of what an offer asks for, so that a repetition under one key is told from another request. */
export function requestHash(request: RequestOf<typeof offerTask>): Buffer {
  const { consumerId, leg, manifest, destination, validForMs } = request;
  const lines = manifest.map(({ name, quantity }) => [name, quantity]);
  const asked = [consumerId, leg, lines, destination.name, destination.details ?? null, validForMs];
  return createHash("sha256").update(JSON.stringify(asked)).digest();
}
