/** Makes small changes of a program, each of which a test should notice. Also writes the program with all of them as switches. */
import { parseAst } from "rolldown/parseAst";

/** One change: this text replaces the program's text from `start` to `end`. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** A short description of the change. */
  readonly what: string;
  readonly form: "expression" | "statement" | "first statement" | "member";
  /** Whether the changed code runs while the module is loaded, so that the change cannot be switched on later. */
  readonly isAtLoad: boolean;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const OPERATORS = new Map<string, readonly string[]>(
  Object.entries({
    "===": ["!=="],
    "!==": ["==="],
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["*"],
    "&&": ["||"],
    "||": ["&&"],
  }),
);
const MEMBERS = new Map(
  Object.entries({
    some: "every",
    every: "some",
    min: "max",
    max: "min",
    startsWith: "endsWith",
    endsWith: "startsWith",
    floor: "ceil",
    find: "findLast",
    findLast: "find",
  }),
);
const LEFT_OUT = new Set(["filter", "slice", "trim", "toSorted", "toReversed", "toLowerCase", "toUpperCase"]);
const TYPES_OF_VALUES = new Set(["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"]);
/** Texts for people are not decisions. */
const FOR_PEOPLE = /Error$|^Not[A-Z]|^log$/;

export function changesOf(program: string, language: "ts" | "js"): readonly Change[] {
  const changes: Change[] = [];
  let depth = 0;
  const source = ({ start, end }: { start: number; end: number }): string => program.slice(start, end);
  const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value;
  const add = (node: { start: number; end: number }, text: string, form: Change["form"] = "expression"): void => {
    const before = source(node).replaceAll(/\s+/g, " ");
    const shown =
      form === "first statement"
        ? "return at the start"
        : `${short(before)} → ${text === ";" ? "nothing" : short(text)}`;
    changes.push({ start: node.start, end: node.end, text, what: shown, form, isAtLoad: depth === 0 });
  };
  /** Adds changes that each leave out one item of the list. */
  const addWithout = (list: Node, items: readonly (Node | null)[], [open, close]: readonly [string, string]): void => {
    for (const left of items) {
      if (left === null) continue;
      const kept = items.flatMap((item) => (item === null || item === left ? [] : [source(item)]));
      add(list, `${open}${kept.join(", ")}${close}`);
      changes.push({ ...(changes.pop() as Change), what: `without ${short(source(left))}` });
    }
  };

  function visit(node: Node): void {
    const { type } = node;
    if (type.startsWith("TS")) {
      if (TYPES_OF_VALUES.has(type)) visit(node["expression"] as Node);
      return;
    }
    if (/^Import.*Declaration$/.test(type) || (type.startsWith("Export") && isNode(node["source"]))) return;
    const [test, left, right] = [node["test"], node["left"], node["right"]] as (Node | null)[];
    if (/^(?:If|While|DoWhile|For)Statement$|^ConditionalExpression$/.test(type) && isNode(test)) {
      if (!/While|For/.test(type)) add(test, "true");
      add(test, "false");
    }
    if ((type === "BinaryExpression" || type === "LogicalExpression") && isNode(left) && isNode(right)) {
      const operator = String(node["operator"]);
      const between = program.slice(left.end, right.start);
      for (const other of OPERATORS.get(operator) ?? [])
        add(
          node,
          program.slice(node.start, left.end) + between.replace(operator, other) + program.slice(right.start, node.end),
        );
      if (operator === "??") add(node, source(left));
    }
    if (type === "UnaryExpression" && node["operator"] === "!") add(node, program.slice(node.start + 1, node.end));
    if (type === "ExpressionStatement" && node["directive"] === undefined) add(node, ";", "statement");
    if (type === "Literal") addLiteral(node);
    if (type === "ArrayExpression") addWithout(node, node["elements"] as Node[], ["[", "]"]);
    if (type === "ObjectExpression") addWithout(node, node["properties"] as Node[], ["{ ", " }"]);
    if (type === "CallExpression") addCall(node);
    const isFunction = /Function/.test(type);
    if (isFunction) depth += 1;
    const body = node["body"] as Node | null;
    if (isFunction && isNode(body) && body.type !== "BlockStatement") add(body, "undefined");
    else if (isFunction && isNode(body) && (body["body"] as Node[]).length > 0)
      add({ start: body.start + 1, end: body.start + 1 }, "return;", "first statement");
    visitParts(node);
    if (isFunction) depth -= 1;
  }

  function visitParts(node: Node): void {
    const callee = node["callee"] as Node | undefined;
    const isForPeople = callee !== undefined && FOR_PEOPLE.test(source(callee).replace(/^(?:\w+\.)*(log)\.\w+$/, "$1"));
    for (const [key, value] of Object.entries(node)) {
      if (key === "key" && node["computed"] === false) continue;
      for (const part of Array.isArray(value) ? (value as unknown[]) : [value]) {
        if (!isNode(part) || (isForPeople && key === "arguments" && part.type === "Literal")) continue;
        visit(part);
      }
    }
  }

  function addLiteral(literal: Node): void {
    const { value, regex } = literal as { value?: unknown; regex?: { pattern: string; flags: string } };
    if (regex !== undefined) {
      for (const open of [regex.pattern.replace(/^\^/, ""), regex.pattern.replace(/\$$/, "")])
        if (open !== regex.pattern) add(literal, `/${open}/${regex.flags}`);
    } else if (typeof value === "string") add(literal, value === "" ? '"mutant"' : '""');
    else if (typeof value === "number") add(literal, String(value + 1));
    else if (typeof value === "boolean") add(literal, String(!value));
  }

  function addCall(call: Node): void {
    const callee = call["callee"] as Node;
    const [object, property] = [callee["object"], callee["property"]] as (Node | undefined)[];
    if (callee.type !== "MemberExpression" || callee["computed"] === true || !object || !property) return;
    if (callee["optional"] === true || call["optional"] === true) return;
    const name = source(property);
    const other = MEMBERS.get(name);
    if (other !== undefined)
      add({ start: program.lastIndexOf(".", property.start), end: property.end }, `.${other}`, "member");
    // In `a?.b.filter()` the call is not a separate expression, so it cannot be replaced.
    else if (LEFT_OUT.has(name) && !source(object).includes("?.")) add(call, `(${source(object)})`);
  }

  const tree = parseAst(program, { lang: language, preserveParens: false }) as unknown as Node;
  for (const statement of tree["body"] as Node[]) visit(statement);
  return changes;
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= 70 ? line : `${line.slice(0, 40)} … ${line.slice(-27)}`;
}

type Numbered = Change & { readonly id: number };

/** The code that asks whether a mutant is on. A process that a test starts reads the number of that mutant from the file. */
const switchOf = (file: string): string =>
  `function isMutant(id) { return globalThis.isMutant ? globalThis.isMutant(id) : id === (isMutant.on ??= Number(process.getBuiltinModule("node:fs").readFileSync(${JSON.stringify(file)}))); }`;

/** The program with all changes in it. At most one of them is on. */
export function withSwitches(program: string, changes: readonly Numbered[], activeFile: string): string {
  const places = Object.values(Object.groupBy(changes, ({ start, end }) => `${start}-${end}`))
    .filter((group) => group !== undefined)
    .toSorted(([a], [b]) => (a?.start ?? 0) - (b?.start ?? 0) || (b?.end ?? 0) - (a?.end ?? 0));
  let next = 0;
  function render(from: number, to: number): string {
    let [rendered, at] = ["", from];
    for (let group = places[next]; group?.[0] !== undefined && group[0].end <= to; group = places[next]) {
      const [{ start, end, form }] = group as [Numbered, ...Numbered[]];
      next += 1;
      rendered += program.slice(at, start);
      const ids = group.map(({ id }) => `isMutant(${id})`).join(" || ");
      if (form === "statement") rendered += `{ if (!(${ids})) { ${render(start, end)} } }`;
      else if (form === "first statement") rendered += `if (${ids}) return;`;
      else if (form === "member")
        rendered += `[isMutant(${group[0].id}) ? "${group[0].text.slice(1)}" : "${program.slice(start, end).replace(/^[\s.]+/, "")}"]`;
      else
        rendered += `(${group.map(({ id, text }) => `isMutant(${id}) ? (${text}) : `).join("")}(${render(start, end)}))`;
      at = end;
    }
    return rendered + program.slice(at, to);
  }
  const hashbang = /^#!.*\n/.exec(program)?.[0] ?? "";
  return `${hashbang}${switchOf(activeFile)}\n${render(hashbang.length, program.length)}`;
}

/** The program with this change alone. */
export const changed = (program: string, { start, end, text }: Change): string =>
  `${program.slice(0, start)}${text}${program.slice(end)}`;

export const lineOf = (program: string, { start }: Pick<Change, "start">): number =>
  program.slice(0, start).split("\n").length;
