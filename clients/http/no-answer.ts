/** Why a request got no answer, as a sentence with the next step. */

/** Error codes of TLS: the certificate is for another name, or no authority that Node trusts has signed it. */
const UNTRUSTED = /CERT|SIGNATURE/;

/** The sentence for an error of `fetch`. */
export function noAnswer(url: string, error: unknown): string {
  const { origin } = new URL(url);
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const { code: given, message = String(error) } = Object(cause) as { code?: unknown; message?: string };
  const code = typeof given === "string" ? given : "";
  if (UNTRUSTED.test(code))
    return `The certificate of ${origin} is not trusted (${code}); name it in GATEWAY_CERTIFICATE_FILE.`;
  if (code === "ENOENT") return "The file that GATEWAY_CERTIFICATE_FILE names does not exist; correct the path.";
  return `The service at ${origin} does not answer (${code === "" ? message : code}); check --base-url and that it runs.`;
}
