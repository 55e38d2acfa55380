import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";

export interface SandboxDeps {
  readonly database: Database;
  readonly log: Log;
  readonly key: Buffer;
  /** SHA-256 of the key that opens accounts, as it is sent. */
  readonly installationKeyHash: Buffer;
  readonly decidesAfterMs: number;
  readonly callbackOrigin: string;
  /** The certificate that is trusted there beside the authorities of Node. */
  readonly certificateFile: string | undefined;
  /** Of a payment's guest page. Known once the server listens. */
  readonly guestUrl: (paymentId: string) => string;
}
