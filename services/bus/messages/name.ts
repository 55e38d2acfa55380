/** The name of a place, a device, a person or an order line: one line of text that people read and compare. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/**
 * A text without control characters and line ends, which break a list or a printed slip. And without marks that change
 * the direction of the following text: with them one name can look like another.
 */
export const ONE_LINE = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u;

/**
 * An empty text, or one with a visible character: a name of only spaces and joiners would be a blank line on a bill.
 */
export const VISIBLE = /^$|[\p{L}\p{N}\p{P}\p{S}]/u;

/**
 * 1 to 200 characters, after white space at both ends is removed. It is in Unicode's NFC, so that names that look the
 * same are equal.
 */
export const nameSchema = z
  .string()
  .trim()
  .normalize("NFC")
  .min(1)
  .max(BOUNDS.nameCharacters)
  .regex(ONE_LINE, "A name is one line of text, without control characters and marks of direction.")
  .regex(VISIBLE, "A name has at least one character that can be seen.");
