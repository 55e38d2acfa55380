/** Our reference of a payment: nobody can guess another's. */
import { randomBytes } from "node:crypto";

/** Crockford's base 32: no letter is mistaken for a digit when a person reads it out. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** 120 random bits; an EMVCo reference label has at most 25 characters. */
const CHARACTERS = 24;

export function newReference(): string {
  return Array.from(randomBytes(CHARACTERS), (byte) => ALPHABET[byte & 31]).join("");
}
