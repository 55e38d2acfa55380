/** Text from outside that people read: it cannot change the meaning of the text around it. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { printable, printableJson, printableStart } from "../../services/runtime/printable.ts";

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u;
const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) });

describe("printable text", () => {
  it.each([
    ["letters, marks and signs", "RRN-1 é 支付 🍵 «x»", "RRN-1 é 支付 🍵 «x»"],
    ["marks of direction", "a\u202Eb\u2066c\u200Fd\u061Ce", "a\\u202eb\\u2066c\\u200fd\\u061ce"],
    ["line breaks", "a\r\nb\u2028c\u2029d\u0085e\tf", "a\\r\\nb\\u2028c\\u2029d\\u0085e\\tf"],
    ["controls and an escape sequence", "\0\u001B[31mred\u007F", "\\u0000\\u001b[31mred\\u007f"],
    ["invisible signs", "a\u200Bb\u00ADc\uFEFFd\u3164e\u{E0041}", "a\\u200bb\\u00adc\\ufeffd\\u3164e\\udb40\\udc41"],
    ["other spaces than the usual one", "a\u00A0b\u2003c d", "a\\u00a0b\\u2003c d"],
    ["halves of surrogate pairs", "\uDC00a\uD800", "\\udc00a\\ud800"],
    ["a backslash, so that it is no escape", "C:\\u202e", "C:\\\\u202e"],
  ])("%s: %j is written %s", (_what, text, written) => {
    expect(printable(text)).toBe(written);
  });

  it("any text: no unsafe character is left, and JSON.parse gives the text back", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const written = printable(text);
        expect(written).not.toMatch(UNSAFE);
        expect(JSON.parse(`"${written.replaceAll('"', '\\"')}"`)).toBe(text);
      }),
    );
  });

  it("a long text: it is cut between characters, and the omitted ones are counted", () => {
    expect(printableStart("x".repeat(20), 20)).toBe("x".repeat(20));
    expect(printableStart("🍵".repeat(15_000), 3)).toBe("🍵… (29998 more characters)");
    expect(printableStart("\u202E".repeat(4), 2)).toBe("\\u202e\\u202e… (2 more characters)");
  });
});

describe("printable JSON", () => {
  it("any value: it stays the same value on one line, without unsafe characters", () => {
    fc.assert(
      fc.property(fc.dictionary(anyText, anyText), (value) => {
        const line = `${JSON.stringify(value)}\n`;
        const written = printableJson(line);
        expect(written.slice(0, -1)).not.toMatch(UNSAFE);
        expect(written.endsWith("\n")).toBe(true);
        expect(JSON.parse(written)).toEqual(value);
      }),
    );
  });
});
