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

/** One call for all headers, like the gateway: more calls into C++ would make the control slower than it has to be. */
function joined(headers: readonly (readonly [string, string])[]): readonly [string, string] {
  const [[name, value] = ["", ""], ...others] = headers;
  return [name, [value, ...others.map(([other, text]) => `${other}: ${text}`)].join("\r\n")];
}

const [freshName, freshValue] = joined(answer.headers);
const [unchangedName, unchangedValue] = joined(answer.notModifiedHeaders);

App()
  .get(answer.path, (res, req) => {
    if (req.getHeader("if-none-match") === "") {
      res.writeHeader(freshName, freshValue);
      res.end(answer.body);
    } else {
      res.writeStatus("304 Not Modified");
      res.writeHeader(unchangedName, unchangedValue);
      res.endWithoutBody();
    }
  })
  .listen("127.0.0.1", Number(process.argv[3]), (socket) => {
    process.send?.({ ready: socket !== false });
  });
process.on("disconnect", () => process.exit(0));
