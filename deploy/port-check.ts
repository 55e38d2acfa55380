import { createServer } from "node:net";
import { reasonOf } from "../services/runtime/fault.ts";
import { errorCode, UserError } from "../services/runtime/user-error.ts";

/** Resolves to the error of listening on that address, or undefined when it works. The socket is closed again. */
export function listenError(host: string, port: number): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(error));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** The variables to name in a sentence about an address. */
interface Variables {
  port: string;
  host: string;
}

/** Throws UserError `port_taken`, `port_forbidden` or `host_unavailable` when it is not possible to listen there. */
export async function checkPort(host: string, port: number, variables: Variables): Promise<void> {
  const error = await listenError(host, port);
  if (error === undefined) return;
  const code = errorCode(error);
  if (code === "EADDRINUSE") {
    throw new UserError(`Port ${port} on ${host} is taken by another program; set ${variables.port} to a free one.`, {
      code: "port_taken",
    });
  }
  if (code === "EACCES") {
    throw new UserError(`This user may not listen on port ${port}; set ${variables.port} to one above 1023.`, {
      code: "port_forbidden",
    });
  }
  const advice = `set ${variables.host} to an address of this machine`;
  throw new UserError(`It is not possible to listen on ${host}: ${reasonOf(error)}; ${advice}.`, {
    code: "host_unavailable",
  });
}
