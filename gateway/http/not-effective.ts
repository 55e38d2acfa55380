/** The answer to a change that is stored and not yet effective (`gateway/http/effect.ts`). */
import { EFFECTIVE_HEADER } from "./effect.ts";
import type { Reply } from "./handler-context.ts";

export function notEffective(reply: Reply): Reply {
  const headers = { ...reply.headers, [EFFECTIVE_HEADER]: "false" };
  if (reply.status === 201) return { ...reply, headers };
  return { ...reply, status: 202, body: { ...(reply.body as object | undefined), effective: false }, headers };
}
