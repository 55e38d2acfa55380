/** Why a request got no answer, as a sentence with the next step. */

/** Error codes of TLS: the certificate is for another name, or no authority that Node trusts has signed it. */
const UNTRUSTED = /CERT|SIGNATURE/;

interface Cause {
  readonly code?: unknown;
  readonly message?: string;
  /** The file of an `ENOENT`. */
  readonly path?: string;
}

/** The sentence for an error of `fetch`. */
export function noAnswer(url: string, error: unknown): string {
  const { origin } = new URL(url);
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const { code: given, message = String(error), path = "" } = Object(cause) as Cause;
  const code = typeof given === "string" ? given : "";
  if (UNTRUSTED.test(code))
    return `The certificate of ${origin} is not trusted (${code}); name it in GATEWAY_CERTIFICATE_FILE.`;
  if (code === "ENOENT")
    return `The certificate file ${path} does not exist; name the right one in GATEWAY_CERTIFICATE_FILE.`;
  return `The service at ${origin} does not answer (${code === "" ? message : code}); check --base-url and that it runs.`;
}
