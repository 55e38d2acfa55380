/**
 * What an owner says about the merchant, so that a payload can be written. Field names are those of the owner's API, the
 * lengths those of EMVCo's merchant-presented mode, which no operator can change.
 */
import { z } from "zod";

/** Printable ASCII without a space at an end: what every wallet reads the same way. */
const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, "only printable ASCII, without spaces at the ends");

export const merchantDataSchema = z.strictObject({
  /** Merchant account information: a template of 26 to 51, which names its scheme by a globally unique id. */
  merchant_account: z.strictObject({
    tag: z.string().regex(/^(?:2[6-9]|3\d|4\d|5[01])$/, "26 to 51"),
    guid: text(32),
    merchant_id: text(35),
    terminal_id: text(8).optional(),
  }),
  /** ISO 18245, for example 5812 for a restaurant. */
  category_code: z.string().regex(/^\d{4}$/, "four digits"),
  country: z.string().regex(/^[A-Z]{2}$/, "two capital letters"),
  merchant_name: text(25),
  merchant_city: text(15),
  postal_code: text(10).optional(),
});
export type MerchantData = z.infer<typeof merchantDataSchema>;
