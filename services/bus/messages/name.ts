/** The name of a place, a device, a person or an order's line: one line of text that people read and compare. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/**
 * Without control characters and line ends, which break a list or a printed slip, and without the marks that turn the
 * direction of the text after them, with which one name can be made to resemble another.
 */
export const ONE_LINE = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u;

/** Empty, or with at least one visible character: a name of spaces and joiners alone would be a blank line on a bill. */
export const VISIBLE = /^$|[\p{L}\p{N}\p{P}\p{S}]/u;

/** 1 to 200 characters after white space at both ends is taken off; kept in Unicode's NFC, so that text that reads the same is the same. */
export const nameSchema = z
  .string()
  .trim()
  .normalize("NFC")
  .min(1)
  .max(BOUNDS.nameCharacters)
  .regex(ONE_LINE, "A name is one line of text, without control characters and marks of direction.")
  .regex(VISIBLE, "A name has at least one character that can be seen.");
