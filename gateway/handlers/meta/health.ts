/** GET /healthz and /readyz: is the process alive, and should it be sent requests. */
import { type Handler, ok } from "../context.ts";

export const health: Handler = () => ok({ status: "ok" });

export const ready: Handler = (context) => {
  const readiness = context.deps.readiness();
  return { status: readiness.ready ? 200 : 503, body: readiness };
};
