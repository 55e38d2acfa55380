/**
 * The control of the poll bench: a bare uWebSockets.js handler that returns the same bytes as the gateway did, with the
 * same headers, and nothing else: no credential, no throttle, no state. Started with the captured answer as JSON.
 */
import { App } from "uWebSockets.js";

interface CapturedAnswer {
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly notModifiedHeaders: readonly (readonly [string, string])[];
}

const answer = JSON.parse(process.argv[2] ?? "{}") as CapturedAnswer;

App()
  .get(answer.path, (res, req) => {
    const isUnchanged = req.getHeader("if-none-match") !== "";
    res.cork(() => {
      res.writeStatus(isUnchanged ? "304 Not Modified" : "200 OK");
      for (const [name, value] of isUnchanged ? answer.notModifiedHeaders : answer.headers)
        res.writeHeader(name, value);
      if (isUnchanged) res.endWithoutBody();
      else res.end(answer.body);
    });
  })
  .listen("127.0.0.1", Number(process.argv[3]), (socket) => {
    process.send?.({ ready: socket !== false });
  });
process.on("disconnect", () => process.exit(0));
