/** GET /healthz and /readyz: is the process alive, and should it be sent requests. */
import { type Handler, ok } from "../../http/handler-context.ts";

export const health: Handler = () => ok({ status: "ok" });

export const ready: Handler = async (context) => {
  const readiness = await context.deps.readiness();
  return { status: readiness.ready ? 200 : 503, body: readiness };
};
