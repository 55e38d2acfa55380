import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { paypalActivity } from "../../../services/reconciliation/formats/paypal/paypal-activity.ts";
import { paypalStl, paypalTrr } from "../../../services/reconciliation/formats/paypal/typed-report.ts";
import { collected, dividedAt } from "./chunks.ts";
import { outlineOf, totalsOf } from "./outline.ts";
import { linesOf, NO_OPTIONS, parseSample, parseText, problemsOf, sampleText } from "./samples.ts";

const textOf = async (sample: string): Promise<string> =>
  (await collected(sampleText(`paypal/${sample}.csv`))).join("");

describe("PayPal's settlement report (STL)", () => {
  it("reads the rows of each section by its own column headers", async () => {
    const records = await parseSample(paypalStl, "paypal/stl.csv");
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records).map(outlineOf)).toEqual([
      "5 payment T0006 5200 EUR fee -225 net 4975 | TX-1 of 4H844 for ORDER-1",
      "6 refund T1107 -1340 EUR fee 47 net -1293 | TX-2 of TX-1 for ORDER-1",
      "7 payment T0003 2200 BRL fee -360 net 1840 | TX-3 for ORDER-3",
      "8 conversion T0200 -1840 BRL net -1840 | TX-4 of TX-3 for ORDER-3",
      "9 conversion T0200 327 EUR net 327 | TX-4 of TX-3 for ORDER-3",
      "10 payout T0400 -3000 EUR net -3000 | TX-5 in 1047428557493",
      "11 chargeback T1201 -300 EUR net -300 | TX-6 of TX-0",
      "12 fee T0106 -2000 EUR net -2000 | TX-7 of TX-6",
      "13 chargeback_reversal T1202 300 EUR net 300 | TX-8 of TX-0",
      "14 not_money T2107 -500 EUR net -500 | TX-9 of TX-1",
      "19 payment T0011 15000 JPY fee -430 net 14570 | TX-20 for ORDER-20",
      "20 adjustment T0000 -1000 EUR | TX-21",
    ]);
  });

  it("has the account of each section, its days, and instants with their offset", async () => {
    const records = await parseSample(paypalStl, "paypal/stl.csv");
    const headers = records.flatMap((record) => (record.type === "header" ? [record.header] : []));
    expect(headers.map(({ account, fromDate, toDate }) => `${account} ${fromDate} ${toDate}`)).toEqual([
      "MERCHANT0001 2026-03-02 2026-03-02",
      "MERCHANT0002 2026-03-02 2026-03-02",
    ]);
    const lines = linesOf(records);
    expect(lines.map(({ account }) => account).slice(9)).toEqual(["MERCHANT0001", "MERCHANT0002", "MERCHANT0002"]);
    expect(lines[0]).toMatchObject({
      bookedOn: "2026-03-02",
      occurredAt: "2026-03-02T00:00:30-08:00",
      terminal: "STORE-7",
      details: { "PayPal Reference ID Type": "TXN" },
    });
    expect(lines[9]?.details["not_money_reason"]).toBe("hold");
    expect(lines[11]?.details).toMatchObject({ "Fee Amount": "-10 USD" });
  });

  it("compares the totals of sections and of the report, for the currencies that have some", async () => {
    expect(totalsOf(await parseSample(paypalStl, "paypal/stl.csv"))).toEqual([
      "gross credits of section 1: 5827 EUR, 5827 by its lines",
      "gross debits of section 1: 7140 EUR, 7140 by its lines",
      "fee credits of section 1: 47 EUR, 47 by its lines",
      "fee debits of section 1: 225 EUR, 225 by its lines",
      "gross credits of section 2: 15000 JPY, 15000 by its lines",
      "gross debits of section 2: 0 JPY, 0 by its lines",
      "fee credits of section 2: 0 JPY, 0 by its lines",
      "fee debits of section 2: 430 JPY, 430 by its lines",
      "gross credits of report: 5827 EUR, 5827 by its lines",
      "gross debits of report: 8140 EUR, 8140 by its lines",
      "fee credits of report: 47 EUR, 47 by its lines",
      "fee debits of report: 225 EUR, 225 by its lines",
      "gross credits of report: 2200 BRL, 2200 by its lines",
      "gross debits of report: 1840 BRL, 1840 by its lines",
      "fee credits of report: 0 BRL, 0 by its lines",
      "fee debits of report: 360 BRL, 360 by its lines",
      "gross credits of report: 0 USD, 0 by its lines",
      "gross debits of report: 0 USD, 0 by its lines",
      "fee credits of report: 0 USD, 0 by its lines",
      "fee debits of report: 10 USD, 10 by its lines",
    ]);
  });

  it("reads a part of a report without the rows before it and without totals", async () => {
    const records = await parseSample(paypalStl, "paypal/stl-without-totals.csv");
    expect(linesOf(records)).toHaveLength(1);
    expect([totalsOf(records), problemsOf(records)]).toEqual([[], []]);
  });

  it("compares no totals that count rows of a missing previous file", async () => {
    const records = await parseSample(paypalStl, "paypal/stl-second-file.csv");
    expect([linesOf(records).length, totalsOf(records)]).toEqual([1, []]);
  });

  it("compares the totals of each report where one file has several, and marks where the next one begins", async () => {
    const text = await textOf("stl");
    const once = await parseText(paypalStl, text);
    const twice = await parseText(paypalStl, `${text}\n${text}`);
    expect(twice.map(({ type }) => type)).toEqual([...once, { type: "next_file" }, ...once].map(({ type }) => type));
    expect(totalsOf(twice)).toEqual([...totalsOf(once), ...totalsOf(once)]);
    expect(problemsOf(twice)).toEqual([]);
  });

  it("reads appended files of one report as one report, and a repeated file as another file", async () => {
    const rows = (await textOf("stl")).trimEnd().split("\n");
    const at = rows.findIndex((row) => row.startsWith('"SB","TX-5"'));
    const [first, second] = [rows.slice(0, at), ['"FH",02', ...rows.slice(at)]];
    const records = await parseText(paypalStl, [...first, '"FF",6', ...second].join("\n"));
    expect(records.some(({ type }) => type === "next_file")).toBe(false);
    expect(totalsOf(records)).toEqual(totalsOf(await parseText(paypalStl, rows.join("\n"))));
    expect(problemsOf(records)).toEqual([]);
    const again = await parseText(paypalStl, [...first, ...second, ...second].join("\n"));
    expect(again.filter(({ type }) => type === "next_file")).toHaveLength(1);
    expect(totalsOf(again)).toEqual(totalsOf(records));
    // The column headers of an earlier section do not apply to the rows that follow.
    expect(problemsOf(again)).toEqual([
      "2 : The file has no footer (FF), so its end may be missing; download it again.",
      ...[30, 31, 32, 33, 34].map((line) => `${line} : The row has no column headers (CH) before it.`),
    ]);
  });

  it("reports bad rows with their reasons, and the totals show them", async () => {
    const records = await parseSample(paypalStl, "paypal/stl-damaged.csv");
    expect(problemsOf(records)).toEqual([
      "2 : The row has no column headers (CH) before it.",
      '5 Gross Transaction Amount: "52.00" is not a whole number of hundredths.',
      '6 Transaction Debit or Credit: "" is neither CR nor DR.',
      '7 Transaction Initiation Date: "2026/02/30 00:00:30 -0800" is no date that the report has.',
      "8 Transaction Completion Date: The row has 6 fields after its type, and the header has 13 columns.",
      '9 Gross Transaction Currency: "EURO" is no ISO 4217 currency.',
      '10 : "XX" is no type of row that the report has.',
      '12 total gross amount of debits: "x" is not a whole number of hundredths.',
    ]);
    expect(linesOf(records).map(({ position }) => position)).toEqual([11]);
    expect(totalsOf(records)[0]).toBe("gross credits of section 1: 5201 EUR, 5200 by its lines");
  });

  it("reads hundredths of a currency without decimals too, and a fraction of a yen is malformed", async () => {
    const [header, columns, row] = (await textOf("stl-without-totals")).split("\n");
    const inYen = (gross: string) => [header, columns, row?.replace("5200,EUR,DR,225,EUR", `${gross},JPY,DR,4300,JPY`)];
    const [line] = linesOf(await parseText(paypalStl, `${inYen("15000").join("\n")}\nSF,JPY,15000,0,0,4300\n`));
    expect(line).toMatchObject({ amountMinor: 150n, feeMinor: -43n, netMinor: 107n, currency: "JPY" });
    const records = await parseText(paypalStl, `${inYen("15050").join("\n")}\nSF,JPY,15000,0,0,4300\n`);
    expect(problemsOf(records)).toEqual(["3 Gross Transaction Amount: 150.50 has more decimals than JPY has (0)."]);
    expect(totalsOf(records)[0]).toBe("gross credits of section 1: 150 JPY, 0 by its lines");
  });

  it("reads the columns in any order, with the names of early versions, and without those that no line needs", async () => {
    const [header = "", columns = "", row = ""] = (await textOf("stl-without-totals")).split("\n");
    const early = columns.replaceAll(/(?<=\w) (?=\w)/g, "");
    const expected = (await parseText(paypalStl, [header, columns, row].join("\n"))).slice(1);
    expect((await parseText(paypalStl, [header, early, row].join("\n"))).slice(1)).toEqual(expected);
    const unneeded = ["Invoice ID", "PayPal Reference ID", "PayPal Reference ID Type", "Transaction Completion Date"];
    const needed = columns.split(",").flatMap((name, at) => (unneeded.includes(name) ? [] : [at]));
    const turned = [0, ...needed.slice(1).toReversed()];
    const pick = (of: string): string => turned.map((at) => of.split(",")[at]).join(",");
    const text = [header, `${pick(columns)},A new column`, `${pick(row)},x`].join("\n");
    const [line] = linesOf(await parseText(paypalStl, text));
    const { merchantReference: _, ...whole } = linesOf(expected)[0] ?? {};
    expect(line).toMatchObject({ ...whole, details: { "A new column": "x" } });
  });

  it("names missing parts: rows that a section states, and the footer of a file", async () => {
    const text = await textOf("stl");
    const cut = text
      .split("\n")
      .filter((row) => !row.startsWith('"SB","TX-9"'))
      .join("\n");
    expect(problemsOf(await parseText(paypalStl, cut))).toEqual([
      "15 : The section states 10 rows and has 9; download the file again.",
    ]);
    const end = text.slice(0, text.indexOf('"RF"'));
    expect(problemsOf(await parseText(paypalStl, end))).toEqual([
      "2 : The file has no footer (FF), so its end may be missing; download it again.",
    ]);
  });

  it("reads a report without transactions: the days of its section are covered", async () => {
    const rows = [
      '"RH",2026/03/03,"A","M",009,',
      '"FH",01',
      '"SH",2026/03/02 00:00:00 -0800,2026/03/02 23:59:59 -0800,"M",""',
    ];
    const records = await parseText(paypalStl, [...rows, '"SC",0', '"RC",0', '"FF",0'].join("\n"));
    expect(records).toMatchObject([{ type: "header", header: { fromDate: "2026-03-02", toDate: "2026-03-02" } }]);
  });

  it("refuses a file of another type, a file without column headers, and a file with unknown headers", async () => {
    await expect(parseText(paypalStl, "Date,Amount\n1,2\n")).rejects.toMatchObject({ code: "not_this_format" });
    await expect(parseText(paypalStl, '"RH",2026/03/03\n"FH",01\n')).rejects.toMatchObject({ code: "truncated" });
    await expect(parseText(paypalStl, '"CH","Case ID","Case Type"\n')).rejects.toMatchObject({
      code: "unknown_header",
    });
  });

  it("gives the same records for each division into chunks, and throws nothing but refusals", async () => {
    const text = await textOf("stl");
    const whole = await parseText(paypalStl, text);
    const damage = fc.record({ at: fc.nat(text.length - 1), with: fc.constantFrom("", '"', ",", "\n", "9", "S", "-") });
    const property = fc.asyncProperty(
      fc.array(fc.nat(), { maxLength: 5 }),
      fc.array(damage, { minLength: 1, maxLength: 4 }),
      async (places, damages) => {
        expect(await collected(paypalStl.parse(dividedAt(text, places), NO_OPTIONS))).toEqual(whole);
        const damaged = damages.reduce((all, { at, with: part }) => all.slice(0, at) + part + all.slice(at + 1), text);
        const error = await parseText(paypalStl, damaged).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        if (error !== undefined) expect(error).toBeInstanceOf(StatementRefusedError);
      },
    );
    await fc.assert(property, { numRuns: 50 });
  });
});

describe("PayPal's transaction detail report (TRR)", () => {
  it("reads rows that moved no money as `not_money`, with their reason, and leaves them out of the totals", async () => {
    const records = await parseSample(paypalTrr, "paypal/trr.csv");
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records).map((line) => `${outlineOf(line)} ${line.details["not_money_reason"] ?? ""}`)).toEqual([
      "5 payment T0006 1500 EUR fee -43 net 1457 | TX-1 of AUTH-1 for ORDER-1 ",
      "6 not_money T0006 1500 EUR net 1500 | TX-2 for ORDER-2 denied",
      "7 not_money T0006 1500 EUR net 1500 | TX-3 for ORDER-3 pending",
      "8 not_money T1302 1560 EUR net 1560 | TX-4 for ORDER-4 authorization",
      "9 refund T1107 -1500 EUR fee 43 net -1457 | TX-5 of TX-1 for ORDER-1 ",
    ]);
    expect(totalsOf(records).slice(0, 2)).toEqual([
      "gross credits of section 1: 1500 EUR, 1500 by its lines",
      "gross debits of section 1: 1500 EUR, 1500 by its lines",
    ]);
  });

  it("keeps terminal, texts and further columns, and no data of persons", async () => {
    const [line] = linesOf(await parseSample(paypalTrr, "paypal/trr.csv"));
    expect(line).toMatchObject({ terminal: "T-1", text: 'Table 7 · Thank you, "very" much' });
    expect(line?.details).toEqual({
      "Transactional Status": "S",
      "PayPal Reference ID": "AUTH-1",
      "PayPal Reference ID Type": "TXN",
      "Custom Field": "C-1",
      "Payment Source": "Express Checkout",
    });
  });

  it("is distinguished from the settlement report by the column of the status", async () => {
    const [stl, trr] = [await textOf("stl"), await textOf("trr")];
    expect([paypalStl.detect(stl), paypalTrr.detect(stl)]).toEqual([true, false]);
    expect([paypalStl.detect(trr), paypalTrr.detect(trr)]).toEqual([false, true]);
    await expect(parseText(paypalTrr, stl)).rejects.toMatchObject({ code: "not_this_format" });
  });
});

describe("PayPal's activity download", () => {
  it("German: decimal comma, fees that are positive both ways, pairs with one id, and rows that moved no money", async () => {
    const records = await parseSample(paypalActivity, "paypal/activity-de.csv");
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payment T0007 101700 EUR fee -1764 net 99936 | TX-1 for ORDER-1",
      "3 refund T1107 -1700 EUR fee 29 net -1671 | TX-2 of TX-1 for ORDER-1",
      "4 conversion T0200 -5000 USD fee 0 net -5000 | TX-3 of TX-9",
      "5 conversion T0200 4334 EUR fee 0 net 4334 | TX-3 of TX-9",
      "6 planned_payout T0400 -10000 EUR fee 0 net -10000 | TX-4",
      "7 not_money T0006 1200 EUR fee 0 net 1200 | TX-5 for ORDER-5",
      "8 not_money T1501 -800 EUR fee 0 net -800 | TX-6",
      "9 adjustment Neue Art von Zahlung 800 EUR fee 0 net 800 | TX-7",
    ]);
    expect(problemsOf(records)).toEqual([
      '10 Datum: "30.02.2026 17:00:00" is no date that the report has.',
      "11 Gebühr: The fee is not what lies between gross and net.",
    ]);
    expect(linesOf(records)[0]).toMatchObject({
      tipMinor: 100n,
      bookedOn: "2026-03-02",
      occurredAt: "2026-03-02T12:21:25+01:00",
      text: "Tisch 7",
      details: { Name: "Gina Guest", Typ: "Web Accept-Zahlung", Status: "Abgeschlossen" },
    });
  });

  it("English: the first unambiguous date decides for the rows before it too", async () => {
    const lines = linesOf(await parseSample(paypalActivity, "paypal/activity-en.csv"));
    expect(lines.map(({ position, kind, bookedOn }) => `${position} ${kind} ${bookedOn}`)).toEqual([
      "2 payment 2026-09-04",
      "3 conversion 2026-09-12",
      "4 conversion 2026-09-12",
      "5 not_money 2026-09-25",
    ]);
    expect(lines[0]).toMatchObject({ amountMinor: 108400n, feeMinor: -425n, occurredAt: "2026-09-04T07:45:51-07:00" });
    const statement = linesOf(await parseSample(paypalActivity, "paypal/statement-en.csv"));
    expect(statement.map(({ kind, bookedOn, occurredAt }) => `${kind} ${bookedOn} ${occurredAt}`)).toEqual([
      "payout 2026-09-04 2026-09-05T04:15:11.000Z",
      "payment 2026-09-24 2026-09-25T03:44:10.000Z",
    ]);
  });

  it("English with a decimal comma: rows for information move no money, and their blanks are no amounts", async () => {
    const records = await parseSample(paypalActivity, "paypal/activity-en-comma.csv");
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records).map((line) => `${outlineOf(line)} ${line.details["not_money_reason"] ?? ""}`)).toEqual([
      "2 payment T0006 125000 EUR fee -4340 net 120660 | TX-1 ",
      "3 not_money Shopping Cart Item 125000 EUR | TX-1 information",
      "4 not_money T6000 100 EUR | TX-1 information",
      "5 payout T0400 -100000 EUR fee 0 net -100000 | TX-2 ",
      "6 conversion T0200 1000 JPY fee 0 net 1000 | TX-3 ",
    ]);
    expect(linesOf(records).map(({ occurredAt }) => occurredAt)).toContain("2026-09-13T10:00:01+02:00");
  });

  it("Italian: with all columns, where the invoice of Payflow has the same name as that of PayPal", async () => {
    const records = await parseSample(paypalActivity, "paypal/activity-it.csv");
    expect(problemsOf(records)).toEqual([]);
    const lines = linesOf(records);
    expect(lines.map(outlineOf)).toEqual([
      "2 payment T0006 101700 EUR fee -1764 net 99936 | TX-1 for ORDER-1",
      "3 refund T1107 -1700 EUR fee 29 net -1671 | TX-2 of TX-1 for ORDER-1",
      "4 not_money T1501 -800 EUR fee 0 net -800 | TX-3",
      "5 payout T0403 -10000 EUR fee 0 net -10000 | TX-4",
    ]);
    expect(lines[0]).toMatchObject({
      tipMinor: 100n,
      bookedOn: "2026-03-04",
      occurredAt: "2026-03-04T12:21:25+01:00",
      text: "Tavolo 7",
    });
    expect(lines[0]?.details).toEqual({
      Nome: "Gina Guest",
      Tipo: "Pagamento Express Checkout",
      Stato: "Completata",
      "Numero personalizzato": "C-1",
      "Impatto sul saldo": "Accredito",
      "N° ordine commerciante": "PAYFLOW-1",
    });
  });

  it("French: the download with its decimal point, the monthly statement, and no data of persons", async () => {
    const records = await parseSample(paypalActivity, "paypal/activity-fr.csv");
    expect(problemsOf(records)).toEqual([]);
    const lines = linesOf(records);
    expect(lines.map(outlineOf)).toEqual([
      "2 payment T0007 101700 CHF fee -1764 net 99936 | TX-1 for ORDER-1",
      "3 conversion T0200 -5000 EUR fee 0 net -5000 | TX-2 of TX-9",
      "4 not_money T0000 1200 CHF fee 0 net 1200 | TX-3 for C-3",
      "5 adjustment Paiement d’un autre genre 800 CHF fee 0 net 800 | TX-4",
    ]);
    expect(Object.keys(lines[0]?.details ?? {})).toEqual(["Nom", "Type", "État", "Impact sur le solde"]);
    const statement = linesOf(await parseSample(paypalActivity, "paypal/statement-fr.csv"));
    expect(statement.map(outlineOf)).toEqual(["2 payment T0006 5930 EUR fee -130 net 5800 | TX-1 for ORDER-1"]);
    expect(statement[0]).toMatchObject({ bookedOn: "2026-03-17", occurredAt: "2026-03-17T11:21:25.000Z" });
  });

  it("French: earlier files have the event code, and the effect on the balance under its English name", async () => {
    const [header, first] = (await textOf("activity-fr")).split("\n");
    const text = `${header?.replace("Impact sur le solde", "Balance Impact")},Code de transaction\n${first},T0006\n`;
    const [line] = linesOf(await parseText(paypalActivity, text));
    expect(line).toMatchObject({ kind: "payment", providerType: "T0006" });
    const memo = linesOf(await parseText(paypalActivity, text.replace("Crédit", "Mémo")));
    expect(memo).toMatchObject([{ kind: "not_money" }]);
  });

  it("English and German: with all columns the invoice is there twice, and the first one counts", async () => {
    for (const [sample, invoice] of [
      ["activity-en", "Invoice Number"],
      ["activity-de", "Rechnungsnummer"],
    ] as const) {
      const [header, first] = (await textOf(sample)).split("\n");
      const text = `${header},${invoice}\n${first?.replace("04/09/2026", "14/09/2026")},PAYFLOW-1\n`;
      expect(paypalActivity.detect(text)).toBe(true);
      const [line] = linesOf(await parseText(paypalActivity, text));
      expect(line).toMatchObject({ merchantReference: "ORDER-1", details: { [invoice]: "PAYFLOW-1" } });
    }
  });

  it("reads an unknown status by its effect on the balance, and as `not_money` without an effect", async () => {
    const [header, first = ""] = (await textOf("activity-de-holds")).split("\n");
    const row = (status: string, impact: string) =>
      first
        .replace("Einbehaltung für offene Autorisierung", "PayPal Express-Zahlung")
        .replace('"Ausstehend"', `"${status}"`)
        .replaceAll("-13,21", "13,21")
        .replace('"Soll"', `"${impact}"`);
    const rows = [row("Neu", "Haben"), row("Neu", ""), row("Abgelehnt", "Haben"), row("Teilweise erstattet", "")];
    const lines = linesOf(await parseText(paypalActivity, [header, ...rows].join("\n")));
    expect(lines.map(({ kind }) => kind)).toEqual(["payment", "not_money", "not_money", "payment"]);
  });

  it("German: a hold and its reversal move no money, whichever word names them", async () => {
    const records = await parseSample(paypalActivity, "paypal/activity-de-holds.csv");
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 not_money T1501 -1321 EUR fee 0 net -1321 | TX-1 of TX-0 for INV-1",
      "3 adjustment T0006 -1321 EUR fee 0 net -1321 | TX-2 of TX-0 for INV-2",
      "4 not_money T1105 1321 EUR fee 0 net 1321 | TX-3 of TX-1 for INV-2",
      "5 not_money T2102 500 EUR fee 0 net 500 | TX-4",
      "6 not_money Warenkorbartikel 500 EUR | TX-5",
    ]);
  });

  it("reads the types of payments by cart and of earlier German files, and the earlier name of their column", async () => {
    const [header = "", first = ""] = (await textOf("activity-de")).split("\n");
    const row = (word: string) => first.replace("Web Accept-Zahlung", word);
    const rows = ["Zahlung erhalten", "Shopping Cart Payment Received", "Shopping Cart Payment"].map(row);
    const text = [header.replace('"Typ"', '"Art"'), ...rows].join("\n");
    expect(paypalActivity.detect(text)).toBe(true);
    const lines = linesOf(await parseText(paypalActivity, text));
    expect(lines.map(({ kind, providerType }) => `${kind} ${providerType}`)).toEqual([
      "payment T0000",
      "payment T0007",
      "payment T0007",
    ]);
  });

  it("knows holds and withdrawals by their word, in British English too, where the statement has no status", async () => {
    const [header] = (await textOf("statement-en")).split("\n");
    const row = (word: string, amount: string) =>
      `9/24/2026,20:44:10,UTC,${word},EUR,${amount},0.00,${amount},0.00,TX-1,,,,,,`;
    const rows = [
      row("Account Hold for Open Authorisation", "-8.00"),
      row("Hold on Available Balance", "-8.00"),
      row("General Card Withdrawal", "-8.00"),
      row("Reversal of ACH Withdrawal Transaction", "8.00"),
      row("Reversal of ACH Deposit", "-8.00"),
      row("Allgemeine Abbuchung von Kreditkarte", "-8.00"),
      row("Rückbuchung von ACH-Abbuchung", "8.00"),
      row("Rücklastschriftgebühr", "-3.00"),
      row("Display Only Transaction", "8.00"),
      row("Suspension de compte pour autorisation en cours", "-8.00"),
      row("Virement standard", "-8.00"),
      row("Autorizzazione generica", "-8.00"),
      row("Trasferimento generico (conto bancario)", "-8.00"),
    ];
    const lines = linesOf(await parseText(paypalActivity, [header, ...rows].join("\n")));
    expect(lines.map(({ kind, providerType }) => `${kind} ${providerType}`)).toEqual([
      "not_money T1501",
      "not_money T1503",
      "payout T0600",
      "payout_reversal T1101",
      "adjustment T1104",
      "payout T0600",
      "payout_reversal T1101",
      "fee T0116",
      "not_money T9800",
      "not_money T1501",
      "payout T0400",
      "not_money T1300",
      "payout T0400",
    ]);
  });

  it("takes the reversal of a buyer's payment by another instrument for no fee", async () => {
    const text = (await textOf("activity-en-comma")).replace("T0200", "T1119");
    expect(linesOf(await parseText(paypalActivity, text)).at(-1)).toMatchObject({ kind: "adjustment" });
  });

  it("refuses dates that are all ambiguous, unless day and month are equal", async () => {
    const [header, first] = (await textOf("activity-en")).split("\n");
    const withDate = (date: string) => `${header}\n${first?.replace("04/09/2026", date)}\n`;
    await expect(parseText(paypalActivity, withDate("04/09/2026"))).rejects.toMatchObject({ code: "ambiguous_dates" });
    const [line] = linesOf(await parseText(paypalActivity, withDate("05/05/2026")));
    expect(line?.bookedOn).toBe("2026-05-05");
  });

  it("keeps a bounded count of rows until a date shows the order of day and month", async () => {
    const [header, first] = (await textOf("activity-en")).split("\n");
    const rows = (count: number) => `${header}\n${`${first}\n`.repeat(count)}`;
    const decides = `${first?.replace("04/09/2026", "13/09/2026")}\n`;
    const lines = linesOf(await parseText(paypalActivity, rows(FORMAT_LIMITS.heldRows) + decides));
    expect(lines).toHaveLength(FORMAT_LIMITS.heldRows + 1);
    const tooMany = parseText(paypalActivity, rows(FORMAT_LIMITS.heldRows + 1) + decides);
    await expect(tooMany).rejects.toMatchObject({ code: "ambiguous_dates" });
  });

  it("is detected by its header", async () => {
    const english = ["activity-en", "activity-en-comma", "statement-en"];
    const others = ["activity-de", "activity-de-holds", "activity-fr", "statement-fr", "activity-it"];
    for (const sample of [...english, ...others]) expect(paypalActivity.detect(await textOf(sample))).toBe(true);
    expect(paypalActivity.detect(await textOf("stl"))).toBe(false);
  });

  it("gives the same lines for each order of the columns and each division into chunks", async () => {
    const text = await textOf("activity-en");
    const rows = text
      .trim()
      .split("\n")
      .map((row) => row.match(/"[^"]*"|[^,]+|(?<=^|,)(?=,|$)/g) ?? []);
    const columns = rows[0]?.length ?? 0;
    const whole = linesOf(await parseText(paypalActivity, text));
    const property = fc.asyncProperty(
      fc.shuffledSubarray([...Array(columns).keys()], { minLength: columns, maxLength: columns }),
      fc.array(fc.nat(), { maxLength: 5 }),
      async (order, places) => {
        const shuffled = rows.map((row) => order.map((index) => row[index] ?? "").join(",")).join("\n");
        const divided = paypalActivity.parse(dividedAt(shuffled, places), NO_OPTIONS);
        expect(linesOf(await collected(divided))).toEqual(whole);
      },
    );
    await fc.assert(property, { numRuns: 30 });
  });
});
