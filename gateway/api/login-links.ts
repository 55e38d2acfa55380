/** The one-time link of a start: it logs in the person at this machine to the sandbox. */
import ipaddr from "ipaddr.js";
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import * as messages from "../../services/bus/messages/login-links.ts";
import { sessionCookie } from "../http/cookies.ts";
import { ApiError, type Handler, ok } from "../http/handler-context.ts";
import { anyoneWithCookie, route } from "../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../http/shared-schemas.ts";
import { ENROLL_RATE, throttleHeaders } from "../read-model/throttles.ts";
import { API_OF_ROLE, personJson, personSchema } from "./sessions.ts";

const bodySchema = z
  .strictObject({
    token: z.string().min(1).max(BOUNDS.loginLinkCharacters).meta({ description: "What the link has behind `#`." }),
  })
  .meta({ id: "LogInByLink", examples: [{ token: "dpl_the-token-of-the-link" }] });

export const linkedSessionsSchema = z
  .object({
    station_id: idSchema.meta({ description: "A station with a virtual companion, for the first collection." }),
    sessions: z
      .array(z.object({ expires_at: timestampSchema, user: personSchema }))
      .meta({ description: "Who is logged in, each in the API of their role; the cookies have the tokens." }),
  })
  .meta({
    id: "LinkedSessions",
    examples: [
      {
        station_id: 2,
        sessions: [
          {
            expires_at: "2026-11-21T00:00:00.000Z",
            user: {
              user_id: 2,
              name: "Sandbox Cashier",
              role: "cashier",
              permissions: ["payments.collect"],
              organization_id: 1,
            },
          },
        ],
      },
    ],
  });

/** Whether the client is on this machine. For a trusted proxy, the forwarded address counts. */
function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "loopback";
}

/**
 * Whether the browser used a local name of this machine. This excludes two cases in which the connection is local but the person
 * is not: a proxy that is missing in the settings, and a page of another site whose name was redirected to this machine (DNS
 * rebinding).
 */
function isOwnName(host: string): boolean {
  const name = URL.parse(`http://${host}`)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  return name === "localhost" || isLoopback(name);
}

const logInByLink: Handler<z.infer<typeof bodySchema>> = async (context) => {
  const { deps, body, address, secure } = context;
  // The same error as for a link that does not exist, so that the answer reveals nothing.
  if (!isLoopback(address) || !isOwnName(context.header("host"))) throw new ApiError("not_found");
  const retryAfterMs = deps.enrollThrottle.take(address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new ApiError("throttled", { headers: throttleHeaders("enroll", ENROLL_RATE, retryAfterMs) });
  }
  const found = await deps.bus.call(messages.logInByLink, { token: body.token });
  const reply: z.infer<typeof linkedSessionsSchema> = {
    station_id: found.stationId,
    sessions: found.sessions.map(({ expiresAtMs, user }) => ({
      expires_at: toTimestamp(expiresAtMs),
      user: personJson(user, found.organizationId),
    })),
  };
  const cookies = found.sessions.map(({ token, expiresAtMs, user }) =>
    sessionCookie(token, { api: API_OF_ROLE[user.role], maxAgeMs: expiresAtMs - deps.nowMs(), secure }),
  );
  return { ...ok(reply, { "Cache-Control": "no-store" }), cookies };
};

export const loginLinkRoutes = [
  route({
    method: "POST",
    path: "/api/start/v1/session/",
    operation: "logInByLink",
    tag: "session",
    summary: "Log in by the link of a start",
    description:
      "For the page that the link of `npm start` opens. It spends the link and sets a session cookie for each API: the sandbox's owner, cashier and reconciliation operator are logged in side by side. Only connections of the same machine may, and only by its own name: `localhost` or a loopback address. Unknown, used and expired links and other addresses are answered alike.",
    who: anyoneWithCookie,
    body: bodySchema,
    replies: { 200: { description: "Who is logged in.", schema: linkedSessionsSchema } },
    errors: ["not_found", "throttled"],
    awaitsEffect: true,
    handler: logInByLink,
  }),
];
