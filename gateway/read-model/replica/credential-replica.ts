/** Device credentials by their SHA-256, followed from the bucket CREDENTIALS (design §2.2). */
import { bucketBeats } from "../../../services/bus/beats.ts";
import type { BusLog } from "../../../services/bus/connection.ts";
import { credentialEntrySchema } from "../../../services/bus/messages/caller.ts";
import { CREDENTIALS } from "../../../services/bus/streams.ts";
import { DEVICE_SCOPES, type DeviceScope } from "../../http/route.ts";
import { CredentialTable } from "./credential-table.ts";
import type { FeedTarget } from "./replica-feed.ts";

const PREFIX = `$KV.${CREDENTIALS.name}.`;

/** A scope as its bit in a credential's mask. */
export const scopeBit = (scope: DeviceScope): number => 1 << DEVICE_SCOPES.indexOf(scope);

export class CredentialReplica implements FeedTarget {
  readonly stream = `KV_${CREDENTIALS.name}`;
  readonly filter = `${PREFIX}>`;
  readonly bucket = CREDENTIALS;
  readonly beats = bucketBeats(CREDENTIALS);
  readonly table = new CredentialTable();
  readonly #log: BusLog;

  constructor(log: BusLog) {
    this.#log = log;
  }

  reset(): void {
    this.table.clear();
  }

  apply(subject: string, data: Uint8Array): void {
    const digest = Buffer.from(subject.slice(PREFIX.length), "hex").toString("latin1");
    if (digest.length !== 32) return;
    if (data.length === 0) {
      this.table.delete(digest);
      return;
    }
    const entry = parseEntry(data);
    if (entry === undefined) {
      // Whose it is cannot be told, so it opens nothing.
      this.table.delete(digest);
      this.#log.warn({ stream: this.stream }, "an entry of the credentials bucket is not valid");
      return;
    }
    let mask = 0;
    for (const scope of entry.scopes) {
      const at = DEVICE_SCOPES.indexOf(scope as DeviceScope);
      if (at >= 0) mask |= 1 << at;
    }
    this.table.set(digest, entry.deviceId, entry.stationId, mask);
  }
}

function parseEntry(data: Uint8Array) {
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.length).toString("utf8");
    return credentialEntrySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
