/**
 * The enumerations of the wire. Each is one named schema of the OpenAPI document, so that a generated client has one
 * type for it and the name stays the same when an operation is added.
 */
import { z } from "zod";
import { ERRORS, PUBLISHED_ERROR_CODES } from "./errors.ts";

const yesOrNo = (value: boolean): string => (value ? "yes" : "no");
const ERROR_ROWS = PUBLISHED_ERROR_CODES.map((code) => {
  const { status, sentence, retryable, moneyMayHaveMoved } = ERRORS[code];
  return `| \`${code}\` | ${status} | ${yesOrNo(retryable)} | ${yesOrNo(moneyMayHaveMoved)} | ${sentence} |`;
});
/** The document explains the codes here, and not in its introduction: a reader wants the operations first. */
export const errorCodeSchema = z.enum(PUBLISHED_ERROR_CODES).meta({
  id: "ErrorCode",
  description: [
    "A stable word for a program; the list is closed. `x-error-codes` of the document has the same table for programs.",
    "",
    "| code | status | retry safe | money may have moved | meaning |",
    "|---|---|---|---|---|",
    ...ERROR_ROWS,
  ].join("\n"),
});
