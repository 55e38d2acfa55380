/** Builds one XML element of a statement in memory, and reads it by path. */
import { FORMAT_LIMITS } from "../limits.ts";
import { cutTo } from "../records.ts";

export interface XmlElement {
  readonly name: string;
  /** The attribute `Ccy`. */
  readonly currency: string | undefined;
  /** "" for an element with children. */
  text: string;
  readonly children: XmlElement[];
}

/**
 * Builds one element from the events of the XML reader. Passes a `reduced` descendant to `onReduced` as soon as it is
 * complete, and does not keep it. So an element with many of them stays small.
 */
export class ElementBuilder {
  readonly #open: XmlElement[] = [];
  readonly #onReduced: (element: XmlElement) => void;
  readonly #reducedDepth: number;
  readonly #reducedName: string;
  #characters = 0;

  constructor(reduced: { readonly name: string; readonly depth: number }, onReduced: (element: XmlElement) => void) {
    this.#reducedName = reduced.name;
    this.#reducedDepth = reduced.depth;
    this.#onReduced = onReduced;
  }

  /** Whether the element is larger than an entry may be. The builder then drops its content and ignores the rest. */
  get isTooLarge(): boolean {
    return this.#characters > FORMAT_LIMITS.entryCharacters;
  }

  open(name: string, currency: string | undefined): void {
    const element: XmlElement = { name, currency, text: "", children: [] };
    const parent = this.#open.at(-1);
    this.#open.push(element);
    this.#count(name.length + NODE_CHARACTERS);
    if (parent === undefined || this.isTooLarge) return;
    parent.text = "";
    if (!this.#isReduced(element)) parent.children.push(element);
  }

  text(text: string): void {
    const element = this.#open.at(-1);
    if (element === undefined || element.children.length > 0 || this.isTooLarge) return;
    this.#count(text.length);
    element.text += text;
  }

  /** Returns the whole element once it is complete. */
  close(): XmlElement | undefined {
    const element = this.#open.at(-1);
    const isReduced = element !== undefined && this.#isReduced(element);
    this.#open.pop();
    if (isReduced && !this.isTooLarge) this.#onReduced(element);
    return this.#open.length === 0 ? element : undefined;
  }

  #isReduced(element: XmlElement): boolean {
    return this.#open.length === this.#reducedDepth && element.name === this.#reducedName;
  }

  #count(characters: number): void {
    this.#characters += characters;
    if (this.isTooLarge) for (const element of this.#open) element.children.length = 0;
  }
}

/** The memory of an element without its name and its text, in characters. */
const NODE_CHARACTERS = 60;

export function elementsAt(element: XmlElement, path: string): readonly XmlElement[] {
  let found: readonly XmlElement[] = [element];
  for (const name of path.split("/"))
    found = found.flatMap(({ children }) => children.filter((child) => child.name === name));
  return found;
}

export function elementAt(element: XmlElement, path: string): XmlElement | undefined {
  let found = element;
  for (const name of path.split("/")) {
    const child = childOf(found, name);
    if (child === undefined) return undefined;
    found = child;
  }
  return found;
}

function childOf({ children }: XmlElement, name: string): XmlElement | undefined {
  for (const child of children) if (child.name === name) return child;
  return undefined;
}

/** The trimmed text of the first path that has text; "" where no path has text. */
export function textAt(element: XmlElement, ...paths: readonly string[]): string {
  for (const path of paths) {
    const text = elementAt(element, path)?.text.trim() ?? "";
    if (text !== "") return text;
  }
  return "";
}

/** The element as XML text for a person, cut to the length that a malformed line stores. */
export function sourceOf(element: XmlElement): string {
  const parts: string[] = [];
  let characters = 0;
  const write = (part: string): boolean => {
    parts.push(part);
    characters += part.length;
    return characters < FORMAT_LIMITS.rawCharacters;
  };
  writeSource(element, write);
  return cutTo(FORMAT_LIMITS.rawCharacters, parts.join(""));
}

function writeSource({ name, currency, text, children }: XmlElement, write: (part: string) => boolean): boolean {
  const attribute = currency === undefined ? "" : ` Ccy="${escaped(currency)}"`;
  if (!write(`<${name}${attribute}>`)) return false;
  if (children.length === 0 && !write(escaped(text.trim()))) return false;
  return children.every((child) => writeSource(child, write)) && write(`</${name}>`);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
