/** What people write in sentences: why they did something, what else there is to say of a place. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { ONE_LINE, VISIBLE } from "./name.ts";

/** What `ONE_LINE` takes, and line ends between. */
const LINES = /^(?:[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|\r?\n)*$/u;

/** As a name may be, only longer: it stands in a line of a list, and must not resemble another line of it. */
const written = z.string().trim().normalize("NFC").min(1).max(BOUNDS.reasonCharacters);

/** A reason on one line, for the reader of the audit log. */
export const reasonSchema = written
  .regex(ONE_LINE, "A reason is one line of text, without control characters and marks of direction.")
  .regex(VISIBLE, "A reason has at least one character that can be seen.");

/** What a robot or a person reads at a door: several lines, where it needs them; each ends with a line feed alone. */
export const detailsSchema = written
  .overwrite((text) => text.replaceAll("\r\n", "\n"))
  .regex(LINES, "Such text has no control characters but line ends, and no marks of direction.")
  .regex(VISIBLE, "It has at least one character that can be seen.");
