import type { ConsumerContext, Reply } from "../../http/handler-context.ts";
import { etagOf, matchesEtag } from "../../read-model/etag.ts";

/** The body with its entity tag, or 304 to whoever has it already. */
export function conditional(context: ConsumerContext<unknown>, body: unknown): Reply {
  const ready = JSON.stringify(body);
  const headers = { ETag: etagOf(ready) };
  const sent = context.header("if-none-match");
  return sent !== "" && matchesEtag(sent, headers.ETag) ? { status: 304, headers } : { status: 200, ready, headers };
}
