import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeWake, encodeWake } from "../../services/stations/station-log.ts";

describe("the wake header of a commit", () => {
  it("any content: decoding gives what was encoded", () => {
    const wake = fc.record({
      dueMs: fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
      isAsking: fc.boolean(),
      onlineDevices: fc.array(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { maxLength: 16 }),
    });
    fc.assert(
      fc.property(wake, (written) => {
        // NATS removes white space at the end of a header.
        expect(decodeWake(encodeWake(written).trim())).toEqual(written);
      }),
    );
  });

  it.each([undefined, "", "soon", "1 2 3", "1 0 a"])(
    "the invalid header %j: decoded to undefined, so that the host reads the state",
    (text) => {
      expect(decodeWake(text)).toBeUndefined();
    },
  );
});
