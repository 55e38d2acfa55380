/** A form in which a person describes the columns of an unknown CSV file, with a preview of its first rows. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { Choice, Field } from "../../shared/field.tsx";
import { calendarDay, money } from "../../shared/format.ts";
import type { ReplyOf, RequestOf } from "../../shared/operations.ts";
import { Notice, Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { MalformedText } from "../malformed-text.tsx";
import { Refusal } from "../refusal.tsx";
import { words } from "../words.ts";
import { headOf } from "./file-heads.ts";
import { WhyRefused } from "./why-refused.tsx";

type Definition = RequestOf<"POST /api/reconciliation/v1/statement-mappings/">["body"]["definition"];
type Preview = ReplyOf<"POST /api/reconciliation/v1/statement-mappings/preview/">;
type Delimiter = Definition["delimiter"];

interface MappingFormProps {
  readonly importId: number;
  readonly encoding: Definition["encoding"];
  readonly onStored: (mappingId: number) => Promise<void>;
}

const DELIMITERS: readonly Delimiter[] = [";", ",", "\t", "|"];

interface Typed {
  readonly name: string;
  readonly delimiter: Delimiter;
  readonly headerRow: string;
  readonly decimal: Definition["decimal_separator"];
  readonly currency: string;
  readonly amount: string;
  readonly moneyIn: "positive" | "negative";
  readonly date: string;
  readonly dateFormat: string;
  readonly reference: string;
  readonly kind: "payment" | "bank_credit";
}

const linesOf = (text: string): readonly string[] => text.split(/\r\n|\r|\n/);

/** The delimiter that is most frequent in the first lines. */
function likelyDelimiter(sample: string): Delimiter {
  const count = (delimiter: Delimiter): number => linesOf(sample).slice(0, 5).join("\n").split(delimiter).length;
  return DELIMITERS.reduce((best, each) => (count(each) > count(best) ? each : best));
}

function columnsOf(sample: string, { delimiter, headerRow }: Typed): readonly string[] {
  const header = linesOf(sample)[Number(headerRow) - 1] ?? "";
  const names = header.split(delimiter).map((name) => name.trim().replace(/^"(.*)"$/, "$1"));
  return [...new Set(names.filter((name) => name !== ""))];
}

function definitionOf(typed: Typed, encoding: Definition["encoding"]): Definition {
  return {
    encoding,
    delimiter: typed.delimiter,
    header_row: Number(typed.headerRow),
    decimal_separator: typed.decimal,
    thousands_separator: typed.decimal === "," ? "." : ",",
    currency: { fixed: typed.currency.trim().toUpperCase() },
    amount: { rule: "signed", column: typed.amount, money_in: typed.moneyIn },
    date_formats: [typed.dateFormat.trim()],
    booked_on: { column: typed.date },
    kind: { fixed: typed.kind },
    ...(typed.reference === "" ? {} : { provider_reference: { column: typed.reference } }),
  };
}

export function MappingForm({ importId, encoding, onStored }: MappingFormProps) {
  const sample = headOf(importId);
  const typed = useSignal<Typed>({
    name: "",
    delimiter: likelyDelimiter(sample),
    headerRow: "1",
    decimal: ",",
    currency: "EUR",
    amount: "",
    moneyIn: "positive",
    date: "",
    dateFormat: "DD.MM.YYYY",
    reference: "",
    kind: "payment",
  });
  const preview = useSignal<Preview | null>(null);
  const failure = useSignal<Failure | null>(null);
  const texts = words().mapping;
  const columns = columnsOf(sample, typed.value);
  const isWhole = typed.value.amount !== "" && typed.value.date !== "" && /^[1-9]\d?$/.test(typed.value.headerRow);
  const isPreviewed = preview.value !== null && preview.value.refusal === null;
  const show = async (): Promise<void> => {
    const definition = definitionOf(typed.peek(), encoding);
    const body = { import_id: importId, definition, limit: 8 };
    const shown = await call("POST /api/reconciliation/v1/statement-mappings/preview/", { body });
    // The person has changed the form meanwhile, so the answer is about another mapping.
    if (JSON.stringify(definitionOf(typed.peek(), encoding)) !== JSON.stringify(definition)) return;
    failure.value = shown.ok ? null : shown;
    if (shown.ok) preview.value = shown.reply;
  };
  const store = async (): Promise<void> => {
    const body = { name: typed.peek().name.trim(), definition: definitionOf(typed.peek(), encoding) };
    const stored = await call("POST /api/reconciliation/v1/statement-mappings/", { body });
    failure.value = stored.ok ? null : stored;
    if (stored.ok) await onStored(stored.reply.mapping_id);
  };
  return (
    <div class="stack">
      <p>{texts.help}</p>
      <Fields
        value={typed.value}
        columns={columns}
        change={(changes) => {
          typed.value = { ...typed.peek(), ...changes };
          // The shown rows were read with the previous mapping. A new name does not change how rows are read.
          if (changes.name === undefined) preview.value = null;
        }}
      />
      {failure.value !== null && <Refusal failure={failure.value} />}
      <p>
        <Button onClick={show} disabledBecause={isWhole ? null : texts.chooseColumns}>
          {texts.preview}
        </Button>
      </p>
      {preview.value !== null && <PreviewRows preview={preview.value} />}
      <p>
        <Button
          kind="main"
          onClick={store}
          disabledBecause={typed.value.name.trim() === "" || !isPreviewed ? texts.previewFirst : null}
        >
          {texts.store}
        </Button>
      </p>
    </div>
  );
}

interface FieldsProps {
  readonly value: Typed;
  readonly columns: readonly string[];
  readonly change: (changes: Partial<Typed>) => void;
}

function Fields({ value, columns, change }: FieldsProps) {
  const texts = words().mapping;
  return (
    <div class="filter-fields">
      <Field label={texts.name} value={value.name} onInput={(name) => change({ name })} />
      <Choice
        label={texts.delimiter}
        value={value.delimiter}
        onChange={(delimiter) => change({ delimiter })}
        options={DELIMITERS.map((each) => ({ value: each, text: each === "\t" ? texts.tab : each }))}
      />
      <Field
        label={texts.headerRow}
        inputMode="numeric"
        value={value.headerRow}
        onInput={(headerRow) => change({ headerRow })}
      />
      <Column label={texts.amount} value={value.amount} columns={columns} onChange={(amount) => change({ amount })} />
      <Choice
        label={texts.moneyIn}
        value={value.moneyIn}
        onChange={(moneyIn) => change({ moneyIn })}
        options={[
          { value: "positive", text: texts.positive },
          { value: "negative", text: texts.negative },
        ]}
      />
      <Choice
        label={texts.decimal}
        value={value.decimal}
        onChange={(decimal) => change({ decimal })}
        options={[
          { value: ",", text: "1.234,50" },
          { value: ".", text: "1,234.50" },
        ]}
      />
      <Field label={texts.currency} value={value.currency} onInput={(currency) => change({ currency })} />
      <Column label={texts.date} value={value.date} columns={columns} onChange={(date) => change({ date })} />
      <Field label={texts.dateFormat} value={value.dateFormat} onInput={(dateFormat) => change({ dateFormat })} />
      <Column
        label={texts.reference}
        value={value.reference}
        columns={columns}
        onChange={(reference) => change({ reference })}
      />
      <Choice
        label={texts.kind}
        value={value.kind}
        onChange={(kind) => change({ kind })}
        options={[
          { value: "payment", text: texts.payment },
          { value: "bank_credit", text: texts.bankCredit },
        ]}
      />
    </div>
  );
}

interface ColumnProps {
  readonly label: string;
  readonly value: string;
  readonly columns: readonly string[];
  readonly onChange: (value: string) => void;
}

/** A choice of the file's columns, or a text field when the columns are not known. */
function Column({ label, value, columns, onChange }: ColumnProps) {
  if (columns.length === 0) return <Field label={label} value={value} onInput={onChange} />;
  const none = { value: "", text: words().mapping.none };
  const options = [none, ...columns.map((name) => ({ value: name, text: name }))];
  return <Choice {...{ label, value, onChange, options }} />;
}

function PreviewRows({ preview }: { readonly preview: Preview }) {
  const texts = words().mapping;
  if (preview.refusal !== null) {
    return (
      <Notice tone="bad" title={texts.refused}>
        <WhyRefused {...preview.refusal} />
      </Notice>
    );
  }
  return (
    <Table
      caption={texts.preview}
      rows={preview.rows}
      keyOf={({ position }) => position}
      columns={[
        { title: texts.row, isNumber: true, cell: ({ position }) => position },
        {
          title: texts.becomes,
          cell: ({ outcome }) => (
            <Tag tone={outcome === "line" ? "good" : outcome === "malformed" ? "bad" : "plain"}>
              {texts.outcomes[outcome]}
            </Tag>
          ),
        },
        { title: texts.date, cell: ({ line }) => (line === null ? "" : calendarDay(line.booked_on)) },
        {
          title: texts.amount,
          isNumber: true,
          cell: ({ line }) => (line === null ? "" : money(line.amount, line.currency)),
        },
        {
          title: texts.reference,
          cell: ({ line, malformed }) =>
            malformed === null ? (line?.provider_reference ?? "") : <MalformedText {...malformed} />,
        },
      ]}
    />
  );
}
