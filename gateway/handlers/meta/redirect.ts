/** A path that only leads to another one, for good. */
import type { Handler } from "../../http/handler-context.ts";

/** Answers 308, which tells the client to ask there with the same method. */
export const redirectTo =
  (path: `/${string}`): Handler =>
  () => ({ status: 308, headers: { Location: path } });
