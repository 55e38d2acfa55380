import { Readable } from "node:stream";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { archivedRows } from "../../../services/reconciliation/formats/archive.ts";
import { CAMT_053, CAMT_054 } from "../../../services/reconciliation/formats/camt/camt.ts";
import { decode, detectEncoding } from "../../../services/reconciliation/formats/decode.ts";
import type { StatementLine, StatementRecord } from "../../../services/reconciliation/formats/format.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { moved } from "../../../services/reconciliation/formats/records.ts";
import { chunked, expectRecordsOrRefusal, expectRefusal, movedBy, read, recordsOf, sample } from "./read-sample.ts";
import { zipOf } from "./zip-writer.ts";

const V08 = sample("camt/statement-v08.xml");

describe("camt.053 version 08", () => {
  it("reads the header and the control totals, which hold", async () => {
    const reading = await read(CAMT_053, V08);
    expect(reading.headers).toEqual([
      {
        account: "DE02120300000000202051",
        currency: "EUR",
        fromDate: "2026-03-02",
        toDate: "2026-03-02",
      },
    ]);
    expect(reading.totals).toEqual([
      { name: "closing balance of STMT-0042", currency: "EUR", statedMinor: 153319n, computedMinor: 153319n },
      { name: "sum of the credit entries of STMT-0042", currency: "EUR", statedMinor: 59059n, computedMinor: 59059n },
      { name: "sum of the debit entries of STMT-0042", currency: "EUR", statedMinor: 2740n, computedMinor: 2740n },
    ]);
    expect(movedBy(reading)).toBe(53319n);
    expect(reading.malformed).toEqual([]);
  });

  it("reads an instant credit with its references, parties and texts", async () => {
    const { lines } = await read(CAMT_053, V08);
    expect(lines[0]).toEqual({
      position: 1,
      kind: "bank_credit",
      providerType: "PMNT/RRCT/ESCT",
      amountMinor: 1250n,
      currency: "EUR",
      feeMinor: undefined,
      netMinor: undefined,
      tipMinor: undefined,
      bookedOn: "2026-03-02",
      valueOn: "2026-03-03",
      occurredAt: "2026-03-02T12:31:07.250+01:00",
      providerReference: "2026030200001",
      paymentReference: "",
      merchantReference: "ORDER-4711",
      payoutReference: "",
      terminal: "",
      account: "DE02120300000000202051",
      text: "Table 7 & drinks\nthank you",
      details: {
        NtryRef: "1",
        "BkTxCd/Prtry": "NTRF+168+9001",
        AddtlNtryInf: "Instant credit",
        MsgId: "PAYER-77",
        UETR: "8a562c67-ca16-48ba-b074-65581be6f001",
        Dbtr: "Zoë Guest",
        DbtrAcct: "DE75512108001245126199",
        DbtrAgt: "SOGEDEFFXXX",
      },
    });
  });

  it("reads gross, charges and net where the statement states all three and they agree", async () => {
    const { lines } = await read(CAMT_053, V08);
    expect(lines[1]).toMatchObject({
      amountMinor: 49000n,
      feeMinor: -641n,
      netMinor: 48359n,
      merchantReference: "",
      terminal: "TERM-03",
      details: { TxId: "ACQ-20260301", TxAmt: "490.00 EUR", Chrgs: "6.41 EUR DBIT" },
    });
  });

  it("gives each transaction of a batch its own line, with its own reference or none", async () => {
    const { lines } = await read(CAMT_053, V08);
    const batch = lines.slice(2, 5);
    expect(
      batch.map((line) => [line.position, line.amountMinor, line.providerReference, line.merchantReference]),
    ).toEqual([
      [3, 2000n, "T-1", "RF18539007547034"],
      [4, 2000n, "T-2", "SAME-ID"],
      [5, 2450n, "", ""],
    ]);
    expect(batch.map(({ payoutReference, providerType }) => [payoutReference, providerType])).toEqual([
      ["2026030200003", "PMNT/RCDT/VCOM"],
      ["2026030200003", "PMNT/RCDT/VCOM"],
      ["2026030200003", "PMNT/RCDT/AUTT"],
    ]);
    expect(batch[0]?.details).toMatchObject({ Ntry: "3", NtryDtls: "1 of 3", EndToEndId: "SAME-ID" });
  });

  it("uses CdtDbtInd for the sign of a reversal, and recognizes a charge by its code", async () => {
    const { lines } = await read(CAMT_053, V08);
    expect(lines[5]).toMatchObject({ kind: "bank_debit", amountMinor: -1500n, providerReference: "" });
    expect(lines[5]?.details).toMatchObject({ RvslInd: "true", RtrInf: "AC04" });
    expect(lines[6]).toMatchObject({
      kind: "fee",
      amountMinor: -1240n,
      occurredAt: "2026-03-02T18:00:00+01:00",
      text: "Account fee February",
    });
  });

  it("reads a pending entry as a line of the kind `not_money`", async () => {
    const { lines } = await read(CAMT_053, V08);
    expect(lines[7]).toMatchObject({
      kind: "not_money",
      amountMinor: 3000n,
      bookedOn: "2026-03-04",
      details: { not_money_reason: "PDNG" },
    });
  });
});

describe("camt.053 versions 02 and 04", () => {
  it("reads five decimals, and charges without a record of their own", async () => {
    const reading = await read(CAMT_053, sample("camt/statement-v02.xml"));
    expect(reading.lines[0]).toMatchObject({
      amountMinor: 1900n,
      feeMinor: -5n,
      netMinor: 1895n,
      providerReference: "REF-18",
      details: { Dbtr: "Payer" },
    });
    expect(reading.lines.slice(1).map(({ amountMinor }) => amountMinor)).toEqual([300n, -100n]);
    expect(reading.totals).toMatchObject([{ statedMinor: 3095n, computedMinor: 3095n }]);
    expect(reading.malformed).toMatchObject([
      { position: 4, column: "Amt", reason: "1.23456 has more decimals than EUR has (2)." },
    ]);
    expect(reading.malformed[0]?.raw).toMatch(/^<Ntry><Amt Ccy="EUR">1\.23456<\/Amt>/);
  });

  it("reads several statements, prefixes, an extension of the bank and CDATA", async () => {
    const reading = await read(CAMT_053, sample("camt/statements-v04.xml"));
    const accounts = reading.headers.map(({ account, currency }) => JSON.stringify([account, currency ?? null]));
    expect([...new Set(accounts)]).toEqual(['["CH9300762011623852957",null]', '["0001-22","EUR"]']);
    expect(reading.totals.map(({ statedMinor, computedMinor }) => [statedMinor, computedMinor])).toEqual([
      [43359n, 43359n],
      [700n, 700n],
    ]);
    expect(reading.lines[0]).toMatchObject({
      providerType: "TWINT",
      amountMinor: 48359n,
      feeMinor: undefined,
      text: "Gross: 490.00 Fees: -6.41 <TWINT>",
    });
  });

  it("takes its days from the balances where it names none, also without an entry", async () => {
    const { headers } = await read(CAMT_053, sample("camt/statements-v04.xml"));
    expect(headers[0]).toMatchObject({ fromDate: undefined, toDate: undefined });
    expect(headers[1]).toMatchObject({ fromDate: "2026-03-02", toDate: "2026-03-02" });
    const daysOf = async (opening: string, closing: string) => {
      const balances = [
        ["OPBD", opening],
        ["CLBD", closing],
      ].map(
        ([type, on]) =>
          `<Bal><Tp><CdOrPrtry><Cd>${type}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">1</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>${on}</Dt></Dt></Bal>`,
      );
      const text = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Id>S</Id>${balances.join("")}</Stmt></BkToCstmrStmt></Document>`;
      const { fromDate, toDate } = (await read(CAMT_053, text)).headers.at(-1) ?? {};
      return [fromDate, toDate];
    };
    expect(await daysOf("2026-02-28", "2026-03-15")).toEqual(["2026-03-01", "2026-03-15"]);
    expect(await daysOf("2026-03-15", "2026-03-15")).toEqual(["2026-03-15", "2026-03-15"]);
    expect(await daysOf("2026-02-30", "2026-03-15")).toEqual(["2026-03-15", "2026-03-15"]);
    expect(await daysOf("2026-03-01", "2026-02-30")).toEqual([undefined, undefined]);
  });

  it("leaves a batch that does not add up as one line", async () => {
    const { lines } = await read(CAMT_053, sample("camt/statements-v04.xml"));
    expect(lines[1]).toMatchObject({
      position: 2,
      amountMinor: 700n,
      bookedOn: "2026-03-02",
      providerReference: "",
      details: { NtryDtls: "2, not split into lines" },
    });
    expect(lines).toHaveLength(2);
  });
});

describe("camt.053 traps", () => {
  it("never takes a missing amount from the details, the text or the balances", async () => {
    const reading = await read(CAMT_053, sample("camt/missing-amount.xml"));
    expect(reading.malformed).toMatchObject([{ position: 1, column: "Amt" }]);
    expect(reading.lines.map(({ amountMinor }) => amountMinor)).toEqual([1641n]);
    expect(reading.totals).toMatchObject([{ statedMinor: 60000n, computedMinor: 11641n }]);
  });

  it("reports balances and entries of different currencies as a difference", async () => {
    const { totals } = await read(CAMT_053, sample("camt/other-currencies.xml"));
    expect(totals.map(({ currency, statedMinor, computedMinor }) => [currency, statedMinor, computedMinor])).toEqual([
      ["EUR", 0n, 1815n],
      ["SEK", -2700n, 0n],
      ["USD", 0n, 885n],
    ]);
  });

  it.each([
    ["Amt", '<Amt Ccy="EUR"></Amt>', "The amount is missing; it is not taken from elsewhere in the entry."],
    ["Amt", '<Amt Ccy="EUR">-5</Amt>', "The amount is negative; camt gives the sign in CdtDbtInd."],
    ["Amt", "<Amt>5</Amt>", '"" is no ISO 4217 currency.'],
    ["Amt", '<Amt Ccy="EUR">5,00</Amt>', '"5,00" is not a decimal number.'],
    ["CdtDbtInd", "<CdtDbtInd>C</CdtDbtInd>", "CdtDbtInd is neither CRDT nor DBIT."],
    ["Sts", "<Sts><Prtry>X</Prtry></Sts>", "The status is none of BOOK, PDNG, INFO and FUTR."],
    ["BookgDt", "<BookgDt><Dt>2026-02-30</Dt></BookgDt>", "The date is not in the calendar."],
    ["ValDt", "<ValDt><Dt>2026-13-01</Dt></ValDt>", "The date is not in the calendar."],
    ["BookgDt", "<BookgDt/>", "The entry has neither a booking date nor a value date."],
  ])("makes the entry malformed: %s %s", async (column, element, reason) => {
    const reading = await read(CAMT_053, statementWith(entryWith(element)));
    expect(reading.malformed).toMatchObject([{ position: 1, column, reason }]);
    expect(reading.lines).toEqual([]);
  });

  it("makes an entry with too many transactions malformed, and reads on", async () => {
    const transaction = '<TxDtls><Amt Ccy="EUR">0.01</Amt></TxDtls>';
    const many = entryWith(`<NtryDtls>${transaction.repeat(FORMAT_LIMITS.entryTransactions + 1)}</NtryDtls>`);
    const reading = await read(CAMT_053, statementWith(many + entryWith("")));
    expect(reading.malformed).toMatchObject([{ position: 1, column: "Ntry" }]);
    expect(reading.lines).toMatchObject([{ position: 2, amountMinor: 500n }]);
  });

  it("makes an endless entry malformed in bounded memory, and reads on", async () => {
    const text = `<NtryDtls><TxDtls>${"<RmtInf><Ustrd>abcdefghij</Ustrd></RmtInf>".repeat(200)}</TxDtls></NtryDtls>`;
    const head = statementWith(entryWith("").slice(0, -"</Ntry>".length)).split("</Stmt>");
    // Elements need more space in memory than in the file, so fewer characters than the limit are already too many.
    const parts = Math.ceil(FORMAT_LIMITS.entryCharacters / text.length / 2);
    const endless = async function* () {
      yield head[0] ?? "";
      for (let count = 0; count < parts; count += 1) yield text;
      yield `</Ntry>${entryWith("")}</Stmt>${head[1] ?? ""}`;
    };
    const reading = await read(CAMT_053, endless());
    expect(reading.malformed).toMatchObject([{ position: 1, column: "Ntry" }]);
    expect(reading.lines).toMatchObject([{ position: 2, amountMinor: 500n }]);
  });

  it("gives an entry that is not booked and has no date the day of its statement, and reports a booked one", async () => {
    const undated = (status: string) => entryWith(`<Sts>${status}</Sts><BookgDt/>`);
    const text = statementWith(
      `<CreDtTm>2026-03-02T14:00:30+01:00</CreDtTm>${["PDNG", "INFO", "FUTR", "BOOK"].map(undated).join("")}`,
    );
    const reading = await read(CAMT_053, text);
    expect(reading.lines.map(({ kind, bookedOn, valueOn }) => [kind, bookedOn, valueOn])).toEqual(
      Array.from({ length: 3 }, () => ["not_money", "2026-03-02", undefined]),
    );
    expect(reading.malformed).toMatchObject([{ position: 4, column: "BookgDt" }]);
  });

  it("reads a zero amount as `not_money`", async () => {
    const { lines } = await read(CAMT_053, statementWith(entryWith('<Amt Ccy="EUR">0</Amt>')));
    expect(lines).toMatchObject([{ kind: "not_money", details: { not_money_reason: "zero amount" } }]);
  });

  it.each([
    ["PMNT", "MCRD", "UPCT", "DBIT", "chargeback"],
    ["PMNT", "MCRD", "POSC", "CRDT", "bank_credit"],
    ["PMNT", "ICDT", "FEES", "DBIT", "fee"],
    ["FORX", "SPOT", "OTHR", "DBIT", "conversion"],
    ["PMNT", "IDDT", "UPDD", "DBIT", "bank_debit"],
  ])("maps %s/%s/%s only where it is certain", async (domain, family, subFamily, indicator, kind) => {
    const code = `<BkTxCd><Domn><Cd>${domain}</Cd><Fmly><Cd>${family}</Cd><SubFmlyCd>${subFamily}</SubFmlyCd></Fmly></Domn></BkTxCd>`;
    const { lines } = await read(CAMT_053, statementWith(entryWith(`<CdtDbtInd>${indicator}</CdtDbtInd>${code}`)));
    expect(lines).toMatchObject([{ kind, providerType: `${domain}/${family}/${subFamily}` }]);
  });

  it.each([
    ["an opening and a closing balance", ["OPBD 10", "CLBD 15"], [15n, 15n]],
    ["the previous closing balance as the opening one", ["PRCD 10", "CLBD 15"], [15n, 15n]],
    ["an interim balance at the end of a page", ["OPBD 10", "ITBD 15"], [15n, 15n]],
    ["interim balances at both ends of a page", ["ITBD 10", "ITBD 15"], [15n, 15n]],
    ["several days", ["OPBD 10", "CLBD 99", "OPBD 99", "CLBD 15"], [15n, 15n]],
    ["a wrong closing balance", ["OPBD 10", "CLBD 16"], [16n, 15n]],
  ])("compares the entries with the balances: %s", async (_what, balances, [stated = 0n, computed = 0n]) => {
    const text = balances.map((balance) => balanceOf(balance)).join("");
    const { totals } = await read(CAMT_053, statementWith(text + entryWith("")));
    expect(totals).toMatchObject([{ statedMinor: stated * 100n, computedMinor: computed * 100n }]);
  });

  it("states no total without balances, and reports a balance that cannot be read", async () => {
    const reading = await read(CAMT_053, statementWith(balanceOf("OPBD 1.234") + entryWith("")));
    expect(reading.totals).toEqual([]);
    expect(reading.malformed).toMatchObject([{ column: "Bal" }]);
  });
});

describe("camt statements that their file repeats", () => {
  const statement = (id: string, more = "", opening = "10.00"): string =>
    `<Stmt><Id>${id}</Id>${more}<Acct><Id><IBAN>DE02120300000000202051</IBAN></Id></Acct>
      <Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${opening}</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>
      <Ntry><Amt Ccy="EUR">5</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt></Ntry></Stmt>`;
  const file = (...statements: readonly string[]): string =>
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>${statements.join("")}</BkToCstmrStmt></Document>`;
  const typesOf = async (...statements: readonly string[]) =>
    (await recordsOf(CAMT_053, file(...statements))).map(({ type }) => type).join(" ");

  it("are recognized by identifier, account, numbers, days and opening balance", async () => {
    const numbered = statement("A", "<ElctrncSeqNb>7</ElctrncSeqNb><LglSeqNb>8</LglSeqNb>");
    expect(await typesOf(numbered, statement("B"), numbered)).toBe("header line header line next_file header line");
  });

  it.each([
    ["identifier", "B", "", "10.00"],
    ["electronic number", "A", "<ElctrncSeqNb>2</ElctrncSeqNb>", "10.00"],
    ["legal number", "A", "<LglSeqNb>2</LglSeqNb>", "10.00"],
    ["page", "A", "<StmtPgntn><PgNb>2</PgNb><LastPgInd>true</LastPgInd></StmtPgntn>", "10.00"],
    ["days", "A", "<FrToDt><FrDt>2026-03-03</FrDt><ToDt>2026-03-03</ToDt></FrToDt>", "10.00"],
    ["opening balance", "A", "", "15.00"],
  ])("are different statements when their %s differs", async (_what, id, more, opening) => {
    expect(await typesOf(statement("A"), statement(id, more, opening))).toBe("header line header line");
  });

  it("refuses a file with more statements than the parser remembers", async () => {
    const notification = "<Ntfctn><Id>A</Id><NtfctnPgntn><PgNb>1</PgNb></NtfctnPgntn></Ntfctn>";
    const many = Array.from({ length: FORMAT_LIMITS.statements + 1 }, (_, number) =>
      notification.replace("A", `${number}`),
    );
    const text = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.08"><BkToCstmrDbtCdtNtfctn>${many.join("")}</BkToCstmrDbtCdtNtfctn></Document>`;
    await expectRefusal(CAMT_054, text, "too_large", /divide it/);
  });
});

describe("camt.054", () => {
  it("reads a notification in an envelope", async () => {
    const reading = await read(CAMT_054, sample("camt/notification-v08.xml"));
    expect(reading.headers).toMatchObject([{ currency: undefined }]);
    expect(reading.lines).toMatchObject([
      {
        kind: "bank_credit",
        amountMinor: 500n,
        currency: "CHF",
        providerReference: "98888208N8",
        merchantReference: "210000000003139471430009017",
        occurredAt: undefined,
        details: { EndToEndId: "E-01", AcctSvcrRef: "151800" },
      },
    ]);
    expect(reading.totals).toMatchObject([{ statedMinor: 500n, computedMinor: 500n }]);
  });
});

describe("camt in an archive", () => {
  it("reads several files of one archive, in the encoding that they declare", async () => {
    const latin = V08.replace('encoding="UTF-8"', 'encoding="ISO-8859-1"');
    const file = Buffer.from(latin, "latin1");
    expect(detectEncoding(file).map(({ encoding }) => encoding)).toEqual(["iso-8859-1"]);
    const zip = zipOf([
      { name: "1.xml", content: file },
      { name: "2.xml", content: file, hasDescriptor: true },
    ]);
    const records = archivedRows(Readable.from([zip]), (bytes) => readFile(decode(bytes, "iso-8859-1")), moved);
    const lines: StatementLine[] = [];
    for await (const record of records) if (record.type === "line") lines.push(record.line);
    expect(lines.map(({ position }) => position)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
    expect(lines[8]?.details["Dbtr"]).toBe("Zoë Guest");
  });
});

describe("camt refusals", () => {
  it.each([
    ["an interim report", sample("camt/report-052.xml"), "not_a_statement", /ask the bank for camt\.053/],
    ["a DOCTYPE", sample("camt/doctype.xml"), "doctype_refused", /DOCTYPE/],
    ["an entity bomb", sample("camt/entity-bomb.xml"), "doctype_refused", /DOCTYPE/],
    ["an undefined entity", sample("camt/undefined-entity.xml"), "not_well_formed", /undefined entity/],
    ["a notification", sample("camt/notification-v08.xml"), "not_this_format", /is a camt\.054 and no camt\.053/],
    ["another version", V08.replace("001.08", "001.06"), "unsupported_version", /version 06/],
    ["another namespace", V08.replace("urn:iso", "urn:ico"), "not_this_format", /no ISO 20022 message/],
    ["no namespace", "<Document><BkToCstmrStmt/></Document>", "not_this_format", /no ISO 20022 message/],
    ["another document", "<html><body/></html>", "not_this_format", /no Stmt/],
    ["no XML", "Datum;Betrag\n1;2\n", "not_this_format", /no XML/],
    ["an empty file", "", "not_this_format", /no XML/],
    ["a truncated file", V08.slice(0, 3_000), "truncated", /ends in the middle/],
    ["tags that do not match", V08.replace("</Ntry>", "</Entry>"), "not_well_formed", /not well-formed/],
    ["endless text", endlessly("a"), "line_too_long", /65536 characters/],
    ["an endless tag", endlessly("<a b='"), "line_too_long", /65536 characters/],
    ["an endless comment", endlessly("<!--"), "line_too_long", /65536 characters/],
    ["an endless DOCTYPE", endlessly("<!DOCTYPE a ["), "line_too_long", /65536 characters/],
    ["endless nesting", "<a>".repeat(1_000), "not_this_format", /64 deep/],
    ["an endless envelope", `<a>${"<b/>".repeat(2_000)}`, "not_this_format", /no ISO 20022 message/],
  ] as const)("refuses, in one sentence, %s", async (_what, text, code, sentence) => {
    await expectRefusal(CAMT_053, text, code, sentence);
  });
});

describe("camt detection", () => {
  it("uses the namespace", () => {
    const heads = [
      V08,
      sample("camt/statements-v04.xml"),
      sample("camt/notification-v08.xml"),
      sample("camt/report-052.xml"),
    ];
    expect(heads.map((head) => CAMT_053.detect(head))).toEqual([true, true, false, false]);
    expect(heads.map((head) => CAMT_054.detect(head))).toEqual([false, false, true, false]);
    expect(CAMT_053.detect(`text about ${V08}`)).toBe(false);
  });
});

describe("camt properties", () => {
  it("gives the same records whatever the chunks", async () => {
    const texts = [V08, sample("camt/statements-v04.xml")];
    const expected = await Promise.all(texts.map((text) => recordsOf(CAMT_053, text)));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(1),
        fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }),
        async (which, lengths) => {
          expect(await recordsOf(CAMT_053, chunked(texts[which] ?? "", lengths))).toEqual(expected[which]);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("answers any damage with records or with a refusal", async () => {
    const piece = fc.constantFrom(
      "<",
      ">",
      "</Ntry>",
      "&",
      "]]>",
      "<!--",
      '"',
      "\0",
      "\ud800",
      "9",
      "-",
      "<Ntry>",
      "</Stmt>",
      "",
    );
    const damage = fc.array(fc.tuple(fc.nat(V08.length), fc.nat(40), piece), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(damage, async (changes) => {
        let text = V08;
        for (const [at, length, put] of changes) text = text.slice(0, at) + put + text.slice(at + length);
        await expectRecordsOrRefusal(CAMT_053, text);
      }),
      { numRuns: 150 },
    );
  });
});

function readFile(text: AsyncIterable<string>): AsyncIterable<StatementRecord> {
  return CAMT_053.parse(text, { mapping: undefined, timeZone: undefined });
}

/** A document of version 08 with one statement. */
function statementWith(content: string): string {
  return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Id>S</Id>${content}</Stmt></BkToCstmrStmt></Document>`;
}

/** A booked credit of 5.00 EUR. An element of the argument replaces the one of the same name, or is added. */
function entryWith(elements: string): string {
  const parts = ['<Amt Ccy="EUR">5.00</Amt>', "<CdtDbtInd>CRDT</CdtDbtInd>", "<Sts><Cd>BOOK</Cd></Sts>"];
  parts.push("<BookgDt><Dt>2026-03-02</Dt></BookgDt>");
  const others = parts.filter(
    (part) => !elements.includes(/^<\w+/.exec(part)?.[0] ?? "") || elements.includes("<TxDtls"),
  );
  return `<Ntry>${others.join("")}${elements}</Ntry>`;
}

/** The balance for a text such as "OPBD 10": its type and its amount. */
function balanceOf(text: string): string {
  const [type = "", amount = ""] = text.split(" ");
  return `<Bal><Tp><CdOrPrtry><Cd>${type}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>`;
}

async function* endlessly(start: string): AsyncGenerator<string> {
  yield start.startsWith("a") ? `<a>${start}` : start;
  for (let count = 0; count < 100_000; count += 1) yield "a".repeat(10_000);
  throw new Error("The whole text was read.");
}
