import { createServer } from "node:net";
import { errorCode, UserError } from "../services/runtime/user-error.ts";

/** Resolves to the error code of listening on that address, or undefined when it works. The socket is closed again. */
export function listenError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(errorCode(error)));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** Throws UserError `port_taken`, `port_forbidden` or `host_unavailable` when the HTTP API could not listen there. */
export async function checkPort(host: string, port: number): Promise<void> {
  const code = await listenError(host, port);
  if (code === undefined) return;
  if (code === "EADDRINUSE") {
    throw new UserError(`Port ${port} on ${host} is taken by another program; set PORT to a free one.`, {
      code: "port_taken",
    });
  }
  if (code === "EACCES") {
    throw new UserError(`This user may not listen on port ${port}; set PORT to one above 1023.`, {
      code: "port_forbidden",
    });
  }
  throw new UserError(`It is not possible to listen on ${host} (${code}); set HOST to an address of this machine.`, {
    code: "host_unavailable",
  });
}
