/** Logging in and out: the same for the owner's and the cashier's API (design §5). */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { permissionSchema, roleSchema } from "../http/enums.ts";
import { idSchema, newPasswordSchema, timestampSchema } from "../http/shared-schemas.ts";

/** The credentials of a person. */
export const logInBodySchema = z
  .strictObject({
    email: z
      .string()
      .min(1)
      .max(BOUNDS.emailCharacters)
      .meta({ examples: ["cashier@sandbox.example"] }),
    password: z.string().min(1).max(BOUNDS.passwordCharacters.max),
  })
  .meta({ id: "LogIn", examples: [{ email: "cashier@sandbox.example", password: "a long pass phrase" }] });

/** One's own password, by whoever still knows the old one. */
export const changePasswordBodySchema = z
  .strictObject({
    old_password: z.string().min(1).max(BOUNDS.passwordCharacters.max),
    new_password: newPasswordSchema,
  })
  .meta({
    id: "ChangePassword",
    examples: [{ old_password: "a long pass phrase", new_password: "another long pass phrase" }],
  });

/** Who is logged in. */
export const personSchema = z
  .object({
    user_id: idSchema,
    name: z.string(),
    role: roleSchema,
    permissions: z.array(permissionSchema),
    organization_id: idSchema,
  })
  .meta({ id: "Person" });

/** The token is shown this once; programs send it as a bearer, pages have it in the cookie `dp_session`. */
export const newSessionSchema = z
  .object({
    token: z.string().meta({ description: "Send it as `Authorization: Bearer <token>`." }),
    expires_at: timestampSchema,
    user: personSchema,
  })
  .meta({
    id: "NewSession",
    examples: [
      {
        token: "the token, shown this once",
        expires_at: "2026-11-21T00:00:00.000Z",
        user: {
          user_id: 31,
          name: "Kim",
          role: "cashier",
          permissions: ["payments.collect"],
          organization_id: 1,
        },
      },
    ],
  });

export const sessionSchema = z.object({ expires_at: timestampSchema, user: personSchema }).meta({ id: "Session" });
