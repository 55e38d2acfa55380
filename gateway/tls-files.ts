/** Checks the TLS files before the server opens them, because the error of the server's library has no reason. */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { faultOf, reasonOf } from "../services/runtime/fault.ts";
import { UserError } from "../services/runtime/user-error.ts";

export interface TlsFiles {
  readonly keyFile: string;
  readonly certFile: string;
}

type Setting = "TLS_CERT_FILE" | "TLS_KEY_FILE";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g;
const PRIVATE_KEY = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^]*?-----END (?:[A-Z]+ )?PRIVATE KEY-----/;
const ENCRYPTED = /BEGIN ENCRYPTED|^Proc-Type:.*ENCRYPTED/m;

/** Throws UserError `invalid_setting` with the setting and the reason unless the server can use both files. */
export function checkTlsFiles({ certFile, keyFile }: TlsFiles): void {
  const certificate = readCertificate(readText("TLS_CERT_FILE", certFile));
  const key = readKey(readText("TLS_KEY_FILE", keyFile));
  if (certificate.checkPrivateKey(key)) return;
  throw unusable("TLS_KEY_FILE", "its private key does not belong to the certificate in TLS_CERT_FILE");
}

/** The error when the TLS library refuses files that passed `checkTlsFiles`. */
export function refusedTlsFiles(cause: unknown): UserError {
  return unusable("TLS_CERT_FILE", "the TLS library refuses this certificate or its key; use a newer kind", cause);
}

function readText(setting: Setting, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const next = faultOf(error)?.next;
    throw unusable(setting, next === undefined ? reasonOf(error) : `${reasonOf(error)}; ${next}`, error);
  }
}

/** The first certificate of the file: it is the server's. The certificates of its chain follow. */
function readCertificate(text: string): X509Certificate {
  const setting = "TLS_CERT_FILE";
  const found = text.match(CERTIFICATE) ?? [];
  let certificates: readonly X509Certificate[];
  try {
    certificates = found.map((one) => new X509Certificate(one));
  } catch (error) {
    throw unusable(setting, "the file holds a damaged certificate", error);
  }
  const [first] = certificates;
  if (first !== undefined) return first;
  const what = PRIVATE_KEY.test(text) ? "a private key and no certificate" : "no certificate in PEM";
  throw unusable(setting, `the file holds ${what}`);
}

function readKey(text: string): KeyObject {
  const setting = "TLS_KEY_FILE";
  const found = PRIVATE_KEY.exec(text);
  if (found === null) {
    const what = text.search(CERTIFICATE) >= 0 ? "a certificate and no private key" : "no private key in PEM";
    throw unusable(setting, `the file holds ${what}`);
  }
  if (ENCRYPTED.test(found[0])) throw unusable(setting, "its private key needs a passphrase; store it without one");
  try {
    return createPrivateKey(found[0]);
  } catch (error) {
    throw unusable(setting, "the file holds a damaged private key", error);
  }
}

function unusable(setting: Setting, reason: string, cause?: unknown): UserError {
  return new UserError(`The setting ${setting} is not usable: ${reason}.`, { code: "invalid_setting", cause });
}
