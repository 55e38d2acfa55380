/**
 * Where a request's body ends. A proxy in front that reads it differently from this server would take the rest of one
 * client's request for the beginning of another's (request smuggling), so anything but one clear answer is refused
 * (RFC 9112, 6.3 and 11.2). The HTTP parser itself takes the first `Content-Length` and any `Transfer-Encoding`.
 */
import type { HttpRequest } from "uWebSockets.js";

/** Whether the headers leave in doubt where the body ends. Looks at every header. */
export function isAmbiguous(req: HttpRequest): boolean {
  let lengths = 0;
  let encodings = 0;
  let isClear = true;
  req.forEach((name, value) => {
    if (name === "content-length") {
      lengths += 1;
      isClear &&= /^\d+$/.test(value);
    } else if (name === "transfer-encoding") {
      encodings += 1;
      isClear &&= value.toLowerCase() === "chunked";
    }
  });
  return !isClear || lengths + encodings > 1;
}

/** The same for a poll, which has no body and must be quick: every header is looked at only when one announces a body. */
export function isAmbiguousPoll(req: HttpRequest): boolean {
  return (req.getHeader("content-length") !== "" || req.getHeader("transfer-encoding") !== "") && isAmbiguous(req);
}
