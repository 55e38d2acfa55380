/** Payment providers on the wire: what they call, how the owner configures them, and money that does not fit. */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { hasMoreAfter, pageAfterQuery } from "../http/page.ts";
import { queryId } from "../http/query-number.ts";
import {
  amountSchema,
  currencySchema,
  idSchema,
  nameSchema,
  reasonSchema,
  timestampSchema,
} from "../http/shared-schemas.ts";
import { LIMITS } from "../limits.ts";
import { modeSchema, providerConfigStatusSchema, providerKindSchema } from "./enums.ts";

/** A duplicate of a callback gets the same bytes again, so nothing of the moment is in the answer. */
export const callbackReplySchema = z
  .object({ received: z.literal(true), callback_id: idSchema })
  .meta({ id: "CallbackReceived" });

/** For the document: the providers service reads the bytes, after their signature. */
export const callbackBodySchema = z
  .looseObject({
    id: z.string().meta({ description: "Names the event; the same one gets the same answer.", examples: ["evt-1"] }),
    type: z.string().meta({
      description:
        "`payment.paid`, `payment.declined`, `payment.cancelled` or `payment.expired`; another is recorded and does nothing.",
      examples: ["payment.paid"],
    }),
    data: z.looseObject({
      reference: z
        .string()
        .meta({ description: "The payment's reference: the QR's reference label (tag 62, subtag 05)." }),
      transaction_id: z
        .string()
        .optional()
        .meta({
          description: "The provider's own name of the money, once and for good; a paid event needs it.",
          examples: ["tx-1"],
        }),
      merchant_id: z
        .string()
        .optional()
        .meta({ description: "The account that the money went to.", examples: ["M-1"] }),
      amount: amountSchema.optional(),
      currency: currencySchema.optional(),
    }),
  })
  .meta({
    id: "ProviderCallback",
    examples: [
      {
        id: "evt-1",
        type: "payment.paid",
        data: {
          reference: "7",
          transaction_id: "tx-1",
          merchant_id: "M-1",
          amount: "25.00",
          currency: "EUR",
        },
      },
    ],
    description: "As `emvco_generic` takes it. What is signed and differs from this is recorded, and pays nothing.",
  });
export const callbackHeadersSchema = z.object({
  "X-Provider-Signature": z.string().meta({
    description:
      "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the text of `callback_secret`; the time may differ by five minutes.",
    examples: ["t=1790000000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"],
  }),
});

const settingsSchema = z.record(z.string(), z.unknown()).meta({
  description:
    "What the kind of provider needs and is no secret. `emvco_generic`: `merchant_account` {`tag`, `guid`, `merchant_id`, `terminal_id`}, `category_code`, `country`, `merchant_name`, `merchant_city`, `postal_code`; lengths in `docs/providers.md`. `sandbox`: nothing.",
});
const secretsSchema = z
  .record(z.string(), z.string())
  .meta({ description: "By name. `callback_secret` signs callbacks: 16 to 256 printable ASCII characters." });
const newSecretsSchema = secretsSchema.meta({ description: "Secrets that were made now, by name; shown this once." });

export const providerConfigSchema = z
  .object({
    config_id: idSchema,
    filial_id: idSchema,
    kind: providerKindSchema,
    mode: modeSchema,
    name: z.string(),
    status: providerConfigStatusSchema,
    settings: settingsSchema,
    secrets: z
      .array(z.object({ name: z.string(), created_at: timestampSchema, expires_at: timestampSchema.nullable() }))
      .meta({ description: "Which are stored, never what they are; two of one name while it is being rotated." }),
    callback_path: z.string().meta({ description: "Where the provider sends its callbacks." }),
    created_at: timestampSchema,
  })
  .meta({
    id: "ProviderConfig",
    examples: [
      {
        config_id: 5,
        filial_id: 1,
        kind: "sandbox",
        mode: "test",
        name: "Sandbox provider",
        status: "disabled",
        settings: {},
        secrets: [{ name: "callback_secret", created_at: "2026-11-20T12:00:00.000Z", expires_at: null }],
        callback_path: "/api/providers/v1/5/callback/",
        created_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });
export const providerConfigsSchema = z.object({
  provider_configs: z.array(providerConfigSchema),
  has_more: hasMoreAfter,
});
export const newProviderConfigSchema = z
  .object({ provider_config: providerConfigSchema, new_secrets: newSecretsSchema })
  .meta({ id: "NewProviderConfig" });

export const providerConfigsQuerySchema = z.strictObject({
  ...pageAfterQuery,
  filial_id: queryId().optional(),
});
export const createProviderConfigBodySchema = z
  .strictObject({
    filial_id: idSchema,
    kind: providerKindSchema,
    mode: modeSchema,
    name: nameSchema,
    settings: settingsSchema,
    secrets: secretsSchema.optional().meta({ description: "By name; one that is left out is made." }),
    reason: reasonSchema.optional(),
  })
  .meta({
    id: "CreateProviderConfig",
    examples: [{ filial_id: 1, kind: "sandbox", mode: "test", name: "Sandbox provider", settings: {} }],
  });
export const changeProviderConfigBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    settings: settingsSchema.optional(),
    status: providerConfigStatusSchema.optional(),
    reason: reasonSchema.optional(),
  })
  .meta({ id: "ChangeProviderConfig", examples: [{ status: "disabled", reason: "The account was closed." }] });
export const rotateSecretBodySchema = z
  .strictObject({
    name: z.string().min(1).max(BOUNDS.nameCharacters),
    secret: z.string().optional().meta({ description: "The new one; made when left out." }),
    overlap_seconds: z
      .int()
      .min(0)
      .max(BOUNDS.secretOverlapMs / 1_000)
      .default(LIMITS.secretOverlapUnlessAskedSeconds)
      .meta({ description: "How long the old one is taken as well; a day when left out." }),
    reason: reasonSchema.optional(),
  })
  .meta({ id: "RotateProviderSecret", examples: [{ name: "callback_secret", overlap_seconds: 86_400 }] });
