import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  MALFORMED_REASONS,
  MALFORMED_SENTENCES,
  malformedReason,
  malformedReasonSchema,
} from "../../services/bus/malformed-reasons.ts";
import { readDecimal } from "../../services/reconciliation/formats/amounts.ts";
import { quoted } from "../../services/reconciliation/formats/csv/field-problem.ts";

const FORMATS = new URL("../../services/reconciliation/formats/", import.meta.url);

/** Files whose sentences are no reasons of rows: they are about a mapping, an encoding or a whole file. */
const OTHERS = ["csv/extract-pattern.ts", "decode.ts", "archive.ts", "camt/xml.ts"];

/** Each sentence that is the reason of a row, as the source has it: after `reason` or as the argument of a problem. */
function sentencesInSource(): readonly string[] {
  const files = readdirSync(FORMATS, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !OTHERS.includes(file),
  );
  return files.flatMap((file) =>
    [
      ...readFileSync(new URL(file, FORMATS), "utf8").matchAll(
        /(?:\breason(?::| =)|TOO_LARGE =|[pP]roblem\([^;]*?,|malformed\(\w*\.?field,)\s*(?:"(?<plain>[^"\n]*\.)"|`(?<template>[^`]*)`)/g,
      ),
    ].map(({ groups = {} }) => groups["plain"] ?? groups["template"] ?? ""),
  );
}

/** Replaces each expression of a template: by a text in quotes where the source quotes it, otherwise by a number. */
const filled = (sentence: string): string =>
  sentence.replaceAll(/\$\{(?:quoted|JSON\.stringify)\([^}]*\)\}/g, '"a \\"b\\" c"').replaceAll(/\$\{[^}]*\}/g, "7");

describe("the codes of malformed rows", () => {
  test("each sentence of a parser has a code", () => {
    const sentences = sentencesInSource();
    expect(sentences.length).toBeGreaterThan(70);
    const without = sentences.filter((sentence) => malformedReason(filled(sentence)).reasonCode === "other");
    expect(without).toEqual([]);
  });

  test("each code but `other` is the code of a sentence that a parser or the database writes", () => {
    const written = new Set(sentencesInSource().map((sentence) => malformedReason(filled(sentence)).reasonCode));
    const unused = MALFORMED_REASONS.filter((code) => !written.has(code));
    expect(unused).toEqual(["known_with_other_amount", "other"]);
  });

  test("each sentence gives its own code and its parameters", () => {
    for (const [code, sentence] of Object.entries(MALFORMED_SENTENCES)) {
      const names = [...sentence.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      const parameters = Object.fromEntries(names.map((name, index) => [name, `${name}${index}`]));
      const filledIn = sentence.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        name === "text" ? quoted(parameters[name] ?? "") : (parameters[name] ?? ""),
      );
      expect(malformedReason(filledIn), code).toEqual({ reasonCode: code, reasonParameters: parameters });
    }
  });

  test("a text of the file is an unchanged parameter, whatever characters it has", () => {
    for (const text of [
      'a "quoted" one',
      "back\\slash",
      "two\nlines",
      "Größe 💶",
      '" is not a decimal number.',
      "\u202e",
      "",
    ]) {
      const reading = readDecimal(text, "EUR");
      expect(malformedReason("reason" in reading ? reading.reason : "")).toEqual({
        reasonCode: "no_number",
        reasonParameters: { text },
      });
    }
  });

  test("a code of another version, and a row without a code: both are `other`", () => {
    const other = { reasonCode: "other", reasonParameters: {} };
    expect(malformedReasonSchema.parse({ reasonCode: "of_tomorrow", reasonParameters: 7 })).toEqual(other);
    expect(malformedReasonSchema.parse({})).toEqual(other);
    expect(malformedReason("A sentence that no parser has.")).toEqual(other);
  });
});
