/** The answer to a change that is stored and not yet effective (`gateway/contract/effect.ts`). */
import { EFFECTIVE_HEADER } from "../contract/effect.ts";
import type { Reply } from "../handlers/context.ts";

export function notEffective(reply: Reply): Reply {
  const headers = { ...reply.headers, [EFFECTIVE_HEADER]: "false" };
  if (reply.status === 201) return { ...reply, headers };
  return { ...reply, status: 202, body: { ...(reply.body as object | undefined), effective: false }, headers };
}
