import type { Server } from "node:http";
import { UserError } from "./user-error.ts";

/**
 * Node's HTTP server. An `import` of `node:http` reads every export, and some exports load the HTTP client behind
 * `fetch`: that costs 25 ms of CPU at the start of each process.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");

export interface Listening {
  readonly port: number;
  stop(): Promise<void>;
}

/** Port 0 takes any free port. Throws the UserError that `failure` describes. */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  failure: { readonly code: string; readonly sentence: (cause: Error) => string },
): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(new UserError(failure.sentence(cause), { code: failure.code, cause })));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
