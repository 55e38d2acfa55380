/** The messages of ISO 20022 that are statements, by their namespaces, and why the others are refused. */
import { StatementRefusedError } from "../format.ts";

export interface CamtMessage {
  /** "camt.053" */
  readonly name: string;
  /** The element in `Document`. */
  readonly root: string;
  /** The element that repeats in it. */
  readonly statement: string;
}

export const STATEMENT_MESSAGE: CamtMessage = { name: "camt.053", root: "BkToCstmrStmt", statement: "Stmt" };
export const NOTIFICATION_MESSAGE: CamtMessage = {
  name: "camt.054",
  root: "BkToCstmrDbtCdtNtfctn",
  statement: "Ntfctn",
};

/** The versions that banks deliver. Some elements have different places in them. */
const VERSIONS = ["02", "04", "08"];
const NAMESPACE = /^urn:(?:iso:std:iso:20022:tech|swift):xsd:(?<message>[a-z]{4}\.\d{3})\.\d{3}\.(?<version>\d\d)$/;

/** Throws unless the namespace is of this message in a version that is read. */
export function checkNamespace(uri: string, { name }: CamtMessage): void {
  const { message, version } = NAMESPACE.exec(uri)?.groups ?? {};
  if (message === undefined || version === undefined)
    throw new StatementRefusedError("not_this_format", "The file is no ISO 20022 message: declare its format.");
  if (message === "camt.052")
    throw new StatementRefusedError(
      "not_a_statement",
      "A camt.052 is an interim report and no statement, because its entries can still change: ask the bank for camt.053 or camt.054.",
    );
  if (message !== name)
    throw new StatementRefusedError("not_this_format", `The file is a ${message} and no ${name}: declare its format.`);
  if (!VERSIONS.includes(version))
    throw new StatementRefusedError(
      "unsupported_version",
      `The file is version ${version} of ${name}, and only ${VERSIONS.join(", ")} are read: ask the bank for version 08.`,
    );
}

/** Whether the head of a file names the namespace of a message, in whichever version. */
export function namesMessage(head: string, { name }: CamtMessage): boolean {
  return namespaces(head).some((uri) => NAMESPACE.exec(uri)?.groups?.["message"] === name);
}

/** Throws the refusal of a file whose message is no statement, or has a version that is not read. */
export function refuseOtherMessage(head: string): void {
  for (const uri of namespaces(head)) {
    const message = NAMESPACE.exec(uri)?.groups?.["message"];
    const read = message === NOTIFICATION_MESSAGE.name ? NOTIFICATION_MESSAGE : STATEMENT_MESSAGE;
    if (message === "camt.052" || message === read.name) checkNamespace(uri, read);
  }
}

function namespaces(head: string): readonly string[] {
  if (!/^\uFEFF?\s*</.test(head)) return [];
  return [...head.matchAll(/\sxmlns(?::[\w.-]+)?\s*=\s*["']([^"']*)["']/g)].map(([, uri = ""]) => uri);
}
