/** On the wire: why a row of a statement is not a valid line. */
import { z } from "zod";
import {
  MALFORMED_REASONS,
  MALFORMED_SENTENCES,
  type malformedReasonSchema,
} from "../../../services/bus/malformed-reasons.ts";

const SENTENCES = Object.entries(MALFORMED_SENTENCES).map(([code, sentence]) => `- \`${code}\`: ${sentence}`);

export const malformedReasonShape = {
  reason_code: z.enum(MALFORMED_REASONS).meta({
    id: "MalformedReason",
    description: `The code of the sentence, from a closed list. The names in braces are the parameters.\n\n${SENTENCES.join("\n")}\n- \`other\`: only the sentence gives the reason.`,
  }),
  reason_parameters: z.record(z.string(), z.string()).meta({
    description: "The parameters of the code, by their names. `text` is what the file has, up to 40 characters.",
    examples: [{ text: "EURO" }],
  }),
};
const malformedReasonJsonSchema = z.object(malformedReasonShape);

export function malformedReasonJson({
  reasonCode,
  reasonParameters,
}: z.infer<typeof malformedReasonSchema>): z.infer<typeof malformedReasonJsonSchema> {
  return { reason_code: reasonCode, reason_parameters: reasonParameters };
}
