/** Bank statements (camt.053) and notifications of credits and debits (camt.054) of ISO 20022, versions 02, 04 and 08. */
import type { StatementFormat, StatementRecord } from "../format.ts";
import { type CamtMessage, NOTIFICATION_MESSAGE, namesMessage, STATEMENT_MESSAGE } from "./messages.ts";
import { StatementReader } from "./statement-reader.ts";
import { xmlEvents } from "./xml.ts";

export const CAMT_053 = camtFormat(STATEMENT_MESSAGE, "Bank statement (ISO 20022 camt.053)");
export const CAMT_054 = camtFormat(NOTIFICATION_MESSAGE, "Bank credit and debit notification (ISO 20022 camt.054)");

function camtFormat(message: CamtMessage, title: string): StatementFormat {
  return {
    name: message.name,
    version: 2,
    title,
    referenceScope: "day",
    detect: (head) => namesMessage(head, message),
    parse: (text) => records(text, message),
  };
}

async function* records(text: AsyncIterable<string>, message: CamtMessage): AsyncGenerator<StatementRecord> {
  const reader = new StatementReader(message);
  for await (const events of xmlEvents(text)) yield* reader.read(events);
  reader.end();
}
