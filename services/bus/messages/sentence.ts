/** Sentences of people: the reason for an action, or a note about a place. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { ONE_LINE, VISIBLE } from "./name.ts";

/** The same characters as `ONE_LINE`, and line ends. */
const LINES = /^(?:[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|\r?\n)*$/u;

/** The same rules as for a name, with a larger bound: it is a line in a list, and must not look like another line. */
const written = z.string().trim().normalize("NFC").min(1).max(BOUNDS.reasonCharacters);

/** A person gives a reason on one line, because a later reader of the audit log cannot ask. */
export const reasonSchema = written
  .regex(ONE_LINE, "A reason is one line of text, without control characters and marks of direction.")
  .regex(VISIBLE, "A reason has at least one character that can be seen.");

/** A text for a robot or a person at a destination. It may have several lines; each ends with a line feed. */
export const detailsSchema = written
  .overwrite((text) => text.replaceAll("\r\n", "\n"))
  .regex(LINES, "Such text has no control characters but line ends, and no marks of direction.")
  .regex(VISIBLE, "It has at least one character that can be seen.");
