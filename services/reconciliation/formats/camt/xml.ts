/**
 * XML of a statement as events: strict, with namespaces, and in bounded memory. A document type is refused, so that no
 * file can define entities; the reader knows only the five of XML.
 */
import { SaxesParser } from "saxes";
import { printableStart } from "../../../runtime/printable.ts";
import { StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";

export type XmlEvent =
  | {
      readonly type: "open";
      readonly uri: string;
      readonly name: string;
      /** The attribute `Ccy`, the only one that camt's amounts have. */
      readonly currency: string | undefined;
    }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "close" };

/** The events of each part of the text. Throws only `StatementRefusedError`. */
export async function* xmlEvents(text: AsyncIterable<string>): AsyncGenerator<readonly XmlEvent[]> {
  const reader = new XmlReader();
  for await (const chunk of text)
    for (let start = 0; start < chunk.length; start += FORMAT_LIMITS.chunkCharacters)
      yield reader.read(chunk.slice(start, start + FORMAT_LIMITS.chunkCharacters));
  yield reader.end();
}

class XmlReader {
  readonly #parser = new SaxesParser({ xmlns: true, position: true });
  #events: XmlEvent[] = [];
  #depth = 0;
  #hasRoot = false;
  /** The position of the last event. The parser buffers the text after it. */
  #eventAt = 0;
  #writtenTo = 0;

  constructor() {
    this.#parser.on("doctype", () => {
      throw new StatementRefusedError(
        "doctype_refused",
        "The file has a DOCTYPE, which no statement has: ask the bank for the file without it.",
      );
    });
    this.#parser.on("opentag", ({ uri, local, attributes }) => this.#open(uri, local, attributes["Ccy"]?.value));
    this.#parser.on("closetag", () => this.#close());
    this.#parser.on("text", (text) => this.#text(text));
    this.#parser.on("cdata", (text) => this.#text(text));
    this.#parser.on("comment", () => this.#passed());
    this.#parser.on("processinginstruction", () => this.#passed());
  }

  read(part: string): readonly XmlEvent[] {
    this.#guarded(() => this.#parser.write(part));
    this.#writtenTo += part.length;
    if (this.#writtenTo - this.#eventAt > FORMAT_LIMITS.xmlTokenCharacters + FORMAT_LIMITS.chunkCharacters)
      throw new StatementRefusedError(
        "line_too_long",
        `The file has a text or a tag of more than ${FORMAT_LIMITS.xmlTokenCharacters} characters, as no statement has.`,
      );
    return this.#taken();
  }

  end(): readonly XmlEvent[] {
    if (this.#depth > 0)
      throw new StatementRefusedError(
        "truncated",
        "The file ends in the middle of a statement: download it from the bank again.",
      );
    this.#guarded(() => this.#parser.close());
    return this.#taken();
  }

  #taken(): readonly XmlEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #open(uri: string, name: string, currency: string | undefined): void {
    this.#passed();
    this.#hasRoot = true;
    this.#depth += 1;
    if (this.#depth > FORMAT_LIMITS.xmlDepth)
      throw new StatementRefusedError(
        "not_this_format",
        `The file nests its elements more than ${FORMAT_LIMITS.xmlDepth} deep, as no statement does.`,
      );
    this.#events.push({ type: "open", uri, name, currency });
  }

  #close(): void {
    this.#passed();
    this.#depth -= 1;
    this.#events.push({ type: "close" });
  }

  #text(text: string): void {
    this.#passed();
    if (this.#depth > 0) this.#events.push({ type: "text", text });
  }

  #passed(): void {
    this.#eventAt = this.#parser.position;
  }

  /** The parser's errors become refusals; before the first tag the file is no XML at all. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof StatementRefusedError) throw error;
      const reason =
        error instanceof Error ? printableStart(error.message, 200).replace(/\.+$/, "") : "it cannot be read";
      if (!this.#hasRoot)
        throw new StatementRefusedError("not_this_format", `The file is no XML (${reason}): declare its format.`);
      throw new StatementRefusedError(
        "not_well_formed",
        `The XML is not well-formed (${reason}): download it from the bank again.`,
      );
    }
  }
}
