/** Whose certificates a target may have. */
import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { UserError } from "../../runtime/user-error.ts";

/**
 * The authorities that Node trusts and those of the file. One context for all connections, because reading the
 * authorities takes longer than a handshake. Throws UserError `invalid_setting`.
 */
export function trustedRoots(caFile: string | undefined): SecureContext {
  try {
    const own = caFile === undefined ? [] : [readFileSync(caFile, "utf8")];
    return createSecureContext({ ca: [...getCACertificates("default"), ...own], minVersion: "TLSv1.2" });
  } catch (cause) {
    throw new UserError(`The file ${caFile} of WEBHOOK_CA_FILE holds no certificates that can be read.`, {
      code: "invalid_setting",
      cause,
    });
  }
}
