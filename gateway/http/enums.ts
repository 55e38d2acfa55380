/**
 * The enumerations of the wire. Each is one named schema of the OpenAPI document, so that a generated client has one
 * type for it and the name stays the same when an operation is added.
 */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../machines/serving-task.ts";
import { CONSUMER_STATUSES } from "../../services/bus/messages/robotics.ts";
import { ERRORS, PUBLISHED_ERROR_CODES } from "./errors.ts";

export const moneyMovedSchema = z
  .enum(["no", "yes", "maybe"])
  .meta({ id: "MoneyMoved", description: "`maybe` where only evidence says so." });

export const consumerStatusSchema = z.enum(CONSUMER_STATUSES).meta({ id: "ConsumerStatus" });
export const servingTaskStatusSchema = z.enum(SERVING_TASK_STATUSES).meta({ id: "ServingTaskStatus" });
export const servingTaskLegSchema = z
  .enum(TASK_LEGS)
  .meta({ id: "ServingTaskLeg", description: "Where from and where to." });

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
