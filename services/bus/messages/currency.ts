/** The ISO 4217 code of an active currency, in a request. Stored codes may be of currencies that have ended. */
import { z } from "zod";
import { currencyExponent } from "../../../machines/currencies.ts";

export const currencySchema = z
  .string()
  .regex(/^[A-Z]{3}$/, { abort: true })
  .refine((currency) => currencyExponent(currency) !== undefined, {
    error: "This is no active ISO 4217 currency.",
    params: { code: "unknown_currency" },
  });
