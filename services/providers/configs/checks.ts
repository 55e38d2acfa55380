/** What an owner may give. */
import { BOUNDS } from "../../bus/bounds.ts";
import { type FieldError, RefusedError } from "../../bus/refusals.ts";
import { PROVIDER_LIMITS } from "../limits.ts";

export function refuseFields(...errors: FieldError[]): never {
  throw new RefusedError({ code: "invalid_request", errors });
}

export function checkName(name: string): void {
  const isFine =
    name.trim() !== "" && name.length <= BOUNDS.nameCharacters && name.isWellFormed() && !name.includes("\0");
  if (!isFine) refuseFields({ pointer: "/name", detail: `a name has 1 to ${BOUNDS.nameCharacters} characters` });
}

/** Secrets are keys: printable ASCII, not short enough to be guessed. */
export function checkSecret(pointer: string, secret: string): void {
  const { min, max } = PROVIDER_LIMITS.secretCharacters;
  if (secret.length >= min && secret.length <= max && /^[\x21-\x7e]+$/.test(secret)) return;
  refuseFields({ pointer, detail: `a secret has ${min} to ${max} printable ASCII characters without spaces` });
}
