/** Which headers of signed callbacks are accepted, and which of their signatures are compared. */
import { expect, test } from "vitest";
import { parseSignatureHeader } from "../../services/bus/signature-header.ts";

const hex = (digit: string, count = 64): string => digit.repeat(count);
const signaturesOf = (header: string): readonly string[] | undefined =>
  parseSignatureHeader(header)?.signatures.map((signature) => signature.toString("hex"));

test("time and signature, with or without spaces: both are read", () => {
  const header = `t=001795176000,v1=${hex("a")}`;
  expect(parseSignatureHeader(header)?.timestamp).toBe("001795176000");
  expect(signaturesOf(header)).toEqual([hex("a")]);
  expect(signaturesOf(` v1=${hex("a")} , t=1 , v1=${hex("b")} `)).toEqual([hex("a"), hex("b")]);
});

test.each(["", "t=", "t=x", "t=1x", "t=-1", "t=1.5", "t=1234567890123", "xt=1", "t=1,t=1"])(
  "the time %j: not read",
  (time) => {
    expect(parseSignatureHeader(`${time},v1=${hex("a")}`)).toBeUndefined();
  },
);

test.each([
  ["too short", `v1=${hex("a", 63)}`],
  ["too long", `v1=${hex("a", 65)}`],
  ["in capitals", `v1=${hex("A")}`],
  ["with a letter before", `xv1=${hex("a")}`],
  ["of another version", `v2=${hex("a")}`],
])("a signature %s: ignored", (_, signature) => {
  expect(parseSignatureHeader(`t=1,${signature}`)).toBeUndefined();
  expect(signaturesOf(`t=1,${signature},v1=${hex("b")}`)).toEqual([hex("b")]);
});

test("more than four signatures: the first four are compared", () => {
  const digits = ["1", "2", "3", "4", "5"];
  const header = `t=1,${digits.map((digit) => `v1=${hex(digit)}`).join(",")}`;
  expect(signaturesOf(header)).toEqual(digits.slice(0, 4).map((digit) => hex(digit)));
});

test("a header of 1,024 characters: read; of one more: not read", () => {
  const header = `t=1,v1=${hex("a")},`;
  expect(parseSignatureHeader(header + hex("x", 1_024 - header.length))).toBeDefined();
  expect(parseSignatureHeader(header + hex("x", 1_025 - header.length))).toBeUndefined();
});
