/** Checks that what comments and documents cite exists: paths, sections of the design, and parts of the contract. */
import { isCode, type Rule, type SourceFile } from "./source-file.ts";

/** What can be cited. */
export interface Library {
  /** Every file of the repository. */
  readonly paths: readonly string[];
  /** The text of `docs/design.md`. */
  readonly design: string;
  /** The text of `docs/contract.md`. */
  readonly contract: string;
}

const isCiting = ({ path }: SourceFile): boolean =>
  /\.(md|ts|mjs|sql|ya?ml|conf|cfg|service)$/.test(path) && path !== "CHANGELOG.md" && !path.startsWith("test/tidy");

export function citedPathsExist({ paths }: Library): Rule {
  const known = new Set(paths);
  for (const path of paths) {
    const parts = path.split("/");
    for (let length = 1; length < parts.length; length += 1) known.add(parts.slice(0, length).join("/"));
  }
  // A text may name a program without its file extension, and a group of tests by the beginning of their names.
  const isKnown = (path: string): boolean => known.has(path) || paths.some((each) => each.startsWith(`${path}.`));
  return (file) => {
    if (!isCiting(file)) return [];
    const cited = file.text.matchAll(
      /(?<![\w./$-])((?:gateway|services|machines|clients|deploy|test|docs)\/[\w./-]*\w)/g,
    );
    return [...cited].flatMap(([, path = ""]) =>
      isKnown(path) ? [] : [`${file.path} names ${path}, which is not there; name the file that has it.`],
    );
  };
}

/** `design §4, "heartbeat"` is a section of the design that has the word; `contract, "Events"` is a text of the contract. */
export function citedSectionsExist({ design, contract }: Library): Rule {
  const sections = sectionsOf(design);
  return (file) => {
    if (!isCiting(file) || (!isCode(file) && !file.path.endsWith(".sql"))) return [];
    // A comment of several lines is one text.
    const text = file.text.replaceAll(/\s*\n\s*(?:\*|\/\/|--)\s*/g, " ");
    const ofDesign = [...text.matchAll(/design,? §(\d+(?:\.\d+)?)(?:, "([^"]+)")?/g)].flatMap(
      ([, number = "", word = ""]) =>
        sections.get(number)?.includes(word.toLowerCase()) === true
          ? []
          : [
              `${file.path} cites design §${number}${word === "" ? "" : `, "${word}"`}, which docs/design.md does not have.`,
            ],
    );
    const ofContract = [...text.matchAll(/contract, "([^"]+)"/g)].flatMap(([, word = ""]) =>
      contract.includes(word) ? [] : [`${file.path} cites contract, "${word}", which docs/contract.md does not have.`],
    );
    return [...ofDesign, ...ofContract];
  };
}

/** The text of each section by its number, in lower case: `## 4. …` and the paragraphs `**2.1 …**` in it. */
function sectionsOf(design: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>();
  for (const section of design.split(/^## /m).slice(1)) {
    const number = /^(\d+)\./.exec(section)?.[1];
    if (number !== undefined) sections.set(number, section.toLowerCase());
    for (const [paragraph, part = ""] of section.matchAll(/^\*\*(\d+\.\d+) .*$/gm))
      sections.set(part, paragraph.toLowerCase());
  }
  return sections;
}
