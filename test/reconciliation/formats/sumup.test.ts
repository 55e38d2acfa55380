import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type StatementLine, StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { sumup } from "../../../services/reconciliation/formats/sumup.ts";
import { collected, dividedAt, oneChunk } from "./chunks.ts";
import { linesOf, NO_OPTIONS, parseSample, parseText, problemsOf, sampleText } from "./samples.ts";

/** For example "2 payment Sale TA1 1700 CHF fee -24 net 1676 tip 100 2025-02-14". */
function outline(line: StatementLine): string {
  const sums = Object.entries({ fee: line.feeMinor, net: line.netMinor, tip: line.tipMinor })
    .filter(([, minor]) => minor !== undefined && minor !== 0n)
    .map(([name, minor]) => ` ${name} ${minor}`)
    .join("");
  const payout = line.payoutReference === "" ? "" : ` in ${line.payoutReference} on ${line.valueOn}`;
  const id = line.providerReference.slice(0, 3);
  return `${line.position} ${line.kind} ${line.providerType} ${id} ${line.amountMinor} ${line.currency}${sums} ${line.bookedOn}${payout}`;
}

const outlines = async (sample: string, currency?: string): Promise<readonly string[]> => {
  const records = await parseSample(sumup, `sumup/${sample}.csv`, { currency });
  expect(problemsOf(records)).toEqual([]);
  return linesOf(records).map(outline);
};

const outlinesOf = async (text: string): Promise<readonly string[]> =>
  linesOf(await parseText(sumup, text, { currency: "EUR" })).map(outline);

describe("SumUp's transaction report", () => {
  it("German, early 2025: sale and payout share an id; cash, cancelled, failed and planned rows keep their kinds", async () => {
    expect(await outlines("de-early-2025", "CHF")).toEqual([
      "2 payment Sale TA1 1700 CHF fee -24 net 1676 tip 100 2025-02-14",
      "3 payout Payout TA1 -1676 CHF net -1676 2025-02-14 in 900001 on 2025-02-17",
      "4 cash_payment Sale TA2 450 CHF net 450 2025-02-14",
      "5 not_money Sale TA3 450 CHF 2025-02-14",
      "6 not_money Sale TA4 1200 CHF 2025-02-14",
      "7 payment Sale TA5 101150 CHF fee -1517 net 99633 2025-02-14",
      "8 planned_payout Payout TA5 -99633 CHF net -99633 2025-02-14 in 900002 on 2025-02-18",
      "9 refund Refund TA1 -1700 CHF net -1700 2025-02-15",
    ]);
  });

  it("German, late 2025: decimal comma and thousands", async () => {
    expect(await outlines("de-late-2025", "EUR")).toEqual([
      "2 payment Sale TB1 1700 EUR fee -24 net 1676 tip 100 2025-11-14",
      "3 payout Payout TB1 -1676 EUR net -1676 2025-11-14 in 900011 on 2025-11-17",
      "4 payment Sale TB2 123450 EUR fee -1852 net 121598 2025-11-14",
    ]);
  });

  it("German, 2026: the file has its currency and a new column, and a payout is the total less the fee", async () => {
    expect(await outlines("de-2026")).toEqual([
      "2 payment Sale TC1 1700 EUR fee -24 net 1676 tip 100 2026-03-14",
      "3 payout Payout TC1 -1676 EUR net -1676 2026-03-14 in 900021 on 2026-03-17",
      "4 cash_payment Sale TC2 450 EUR net 450 2026-03-14",
      "5 not_money Sale TC3 450 EUR 2026-03-14",
    ]);
  });

  it("French: the id has a French name, the tip an English one, and months are words", async () => {
    expect(await outlines("fr-2025", "EUR")).toEqual([
      "2 payment Sale TD1 1700 EUR fee -24 net 1676 tip 100 2025-11-14",
      "3 payout Payout TD1 -1676 EUR net -1676 2025-11-14 in 900031 on 2025-11-17",
      "4 cash_payment Sale TD2 450 EUR net 450 2025-12-01",
      "5 not_money Sale TD3 450 EUR 2025-12-02",
    ]);
  });

  it("German, 2026, as it is downloaded: paid and planned payouts with a column for their amount", async () => {
    expect(await outlines("de-2026-paid", "CHF")).toEqual([
      "2 payment Sale TL1 1100 CHF fee -11 net 1089 2026-09-06",
      "3 planned_payout Payout TL1 -1089 CHF net -1089 2026-09-06",
      "4 payout Payout TL2 -490 CHF net -490 2026-08-31 in PAYOUT 1 on 2026-09-01",
    ]);
  });

  it("French with English words: a refund without a status, and a share of a payout that the refund used up", async () => {
    expect(await outlines("fr-late-2025", "CHF")).toEqual([
      "2 payment Sale TK1 1700 CHF fee -24 net 1676 tip 100 2025-12-14",
      "3 payout Payout TK1 -1676 CHF net -1676 2025-12-14 in 900061 on 2025-12-17",
      "4 cash_payment Sale TK2 450 CHF net 450 2025-12-15",
      "5 refund Refund TK3 -260 CHF 2025-12-16",
      "6 payment Sale TK3 260 CHF fee -7 net 253 2025-12-15",
      "7 not_money Payout TK3 -260 CHF net -260 2025-12-15",
    ]);
  });

  it("Italian: the sample is read", async () => {
    expect(await outlines("it-2025", "EUR")).toEqual([
      "2 payment Sale TE1 1700 EUR fee -24 net 1676 tip 100 2025-11-14",
      "3 payout Payout TE1 -1676 EUR net -1676 2025-11-14 in 900041 on 2025-11-17",
      "4 planned_payout Payout TE2 -886 EUR net -886 2025-11-15 in 900042 on 2025-11-18",
    ]);
  });

  it("English, late 2025 and 2026: the samples are read", async () => {
    expect(await outlines("en-late-2025", "GBP")).toEqual([
      "2 payment Sale TF1 1700 GBP fee -24 net 1676 tip 100 2025-11-14",
      "3 payout Payout TF1 -1676 GBP net -1676 2025-11-14 in 900051 on 2025-11-17",
      "4 planned_payout Payout TF2 -886 GBP net -886 2025-11-14 in 900052 on 2025-11-18",
      "5 not_money Sale TF3 1200 GBP 2025-11-14",
    ]);
    expect(await outlines("en-2026")).toEqual(["2 payment Sale TG1 1700 GBP fee -24 net 1676 tip 100 2026-03-14"]);
  });

  it.each([
    ["French", "early 2025", "Date,Réf. transaction,Type de paiement,Statut,Montant total,Tip amount,Frais,Versement"],
    [
      "French",
      "late 2025",
      "Date,Réf. transaction,Type de transaction,Statut,Montant total,Tip amount,Frais,Versement",
    ],
    [
      "French",
      "2026",
      "Horodatage,Code de transaction,Type de transaction,Statut,Montant,Pourboire,Montant des frais,Versement",
    ],
    ["Italian", "early 2025", "Data,ID transazione,Tipo di pagamento,Stato,Totale,Mancia,Commissione,Accredito"],
    ["Italian", "late 2025", "Data,ID transazione,Tipo di transazione,Stato,Totale,Mancia,Commissione,Accredito"],
    [
      "Italian",
      "2026",
      "Data e ora,Codice transazione,Tipo di transazione,Stato,Importo,Mancia,Importo commissione,Accredito",
    ],
  ])("%s, %s: the header and all its columns are known", async (language, _generation, header) => {
    const words =
      language === "French" ? ["Vente", "Réussi", "Versement", "Payé"] : ["Vendita", "Riuscito", "Accredito", "Pagato"];
    const [sale, done, payout, paid] = words;
    const rows = [
      `2026-03-14 12:03:10,TM1,${sale},${done},17.00,1.00,0.24,16.76`,
      `2026-03-14 12:03:21,TM1,${payout},${paid},17.00,,0.24,16.76`,
    ];
    expect(sumup.detect(`${header}\n`)).toBe(true);
    expect(await outlinesOf([header, ...rows].join("\n"))).toEqual([
      "2 payment Sale TM1 1700 EUR fee -24 net 1676 tip 100 2026-03-14",
      "3 payout Payout TM1 -1676 EUR net -1676 2026-03-14",
    ]);
  });

  it("a line has the references, the text verbatim, the reason and the further columns of the row", async () => {
    const [sale, payout, , cancelled, failed] = linesOf(
      await parseSample(sumup, "sumup/de-early-2025.csv", { currency: "CHF", timeZone: "Europe/Zurich" }),
    );
    expect(sale).toMatchObject({
      merchantReference: "ORDER-17",
      paymentReference: "",
      text: '1 x Menü 16.-, dazu "Tagessuppe"',
      occurredAt: "2025-02-14T11:03:10.000Z",
      details: { Zahlungsart: "Umsatz", Kartentyp: "VISA", "Letzte 4 Ziffern": "**** **** **** 1111" },
    });
    expect(payout).toMatchObject({ paymentReference: "TA1AAAAAAA", details: { Gebühr: "0.24" } });
    expect(cancelled?.details).toMatchObject({ not_money_reason: "Abgebrochen" });
    expect(failed?.text).toBe('=HYPERLINK("http://example.com")');
  });

  it("an instant comes from the file's offset, and a local time without a declared zone gives none", async () => {
    const [english] = linesOf(await parseSample(sumup, "sumup/en-2026.csv"));
    const [german] = linesOf(await parseSample(sumup, "sumup/de-2026.csv"));
    expect(english?.occurredAt).toBe("2026-03-14T12:03:10Z");
    expect(german?.occurredAt).toBeUndefined();
  });

  it("a row that cannot be read is malformed with its column and reason, and the rest is read", async () => {
    const records = await parseSample(sumup, "sumup/damaged.csv", { currency: "EUR" });
    expect(linesOf(records).map(outline)).toEqual(["3 payment Sale TJ2 500 EUR fee -10 net 490 2025-11-14"]);
    expect(problemsOf(records)).toEqual([
      '2 Total: "1.234" can be read in two ways, and no amount before it shows which one is meant.',
      '4 Total: "5,00" is not a decimal number.',
      '5 Date: "2025-02-30 12:00:00" is no date that the report has.',
      '6 Transaction type: "Transfer" is no word that is known here.',
      '7 Status: "Half" is no word that is known here.',
      "8 Transaction ID: The row has no transaction id.",
      "9 Total: The row has no amount.",
      "10 Total: 5.001 has more decimals than EUR has (2).",
      "11 Fee: The row has 6 fields, and the header has 7 columns.",
    ]);
  });

  it.each([
    ["fr-sales-report", "unknown_header", /it has unknown columns \("Quantité", "Catégorie", .+store a mapping/],
    ["account-statement", "unknown_header", /store a mapping/],
    ["de-late-2025", "mapping_refused", /declare the currency of its account/],
  ])("refuses %s as %s", async (sample, code, message) => {
    const refusal = await parseSample(sumup, `sumup/${sample}.csv`).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it("a sale that was partly refunded or disputed has still moved its money", async () => {
    const header = "Date,Transaction ID,Transaction type,Status,Total,Fee\n";
    const rows = ["Partially refunded", "Charged back", "Teilweise erstattet"].map(
      (status, index) => `2026-01-0${index + 1} 12:00:00,T${index}AAAAAAAA,Sale,${status},5.00,0.10\n`,
    );
    const lines = linesOf(await parseText(sumup, header + rows.join(""), { currency: "GBP" }));
    expect(lines.map(({ kind, netMinor }) => `${kind} ${netMinor}`)).toEqual(Array(3).fill("payment 490"));
  });

  it("reads the day after the month where the month is a word", async () => {
    const header = "Date,Transaction ID,Transaction type,Status,Currency,Total,Fee";
    const times = ["Nov 14, 2025, 3:07 PM", "14 Nov 2025, 12:00:05 AM", "November 14, 2025", "Nov 14, 2025, 13:07 PM"];
    const rows = times.map((time, index) => `"${time}",T${index},Sale,Successful,GBP,5.0,0.1`);
    const records = await parseText(sumup, [header, ...rows].join("\n"), { timeZone: "UTC" });
    expect(linesOf(records).map(({ bookedOn, occurredAt }) => [bookedOn, occurredAt])).toEqual([
      ["2025-11-14", "2025-11-14T15:07:00.000Z"],
      ["2025-11-14", "2025-11-14T00:00:05.000Z"],
      ["2025-11-14", undefined],
    ]);
    expect(problemsOf(records)).toEqual(['5 Date: "Nov 14, 2025, 13:07 PM" is no date that the report has.']);
  });

  it("reads the same where an accent is a separate character", async () => {
    const whole = (await collected(sampleText("sumup/fr-2025.csv"))).join("");
    const [composed, apart] = [await outlinesOf(whole), await outlinesOf(whole.normalize("NFD"))];
    expect(apart).toEqual(composed);
    expect(composed.some((line) => line.includes("cash_payment"))).toBe(true);
  });

  it("refuses an English report whose day and month are ambiguous", async () => {
    const text = "Date,Transaction ID,Transaction type,Status,Total,Fee\n04/05/2025 12:00,T1,Sale,Successful,5.00,0\n";
    await expect(parseText(sumup, text, { currency: "GBP" })).rejects.toMatchObject({ code: "ambiguous_dates" });
  });

  it("is detected by its header alone", async () => {
    for (const sample of [
      "de-early-2025",
      "de-late-2025",
      "de-2026",
      "de-2026-paid",
      "fr-2025",
      "fr-late-2025",
      "it-2025",
      "en-late-2025",
      "en-2026",
    ]) {
      expect(sumup.detect((await collected(sampleText(`sumup/${sample}.csv`))).join("")), sample).toBe(true);
    }
    for (const sample of ["fr-sales-report", "account-statement"]) {
      expect(sumup.detect((await collected(sampleText(`sumup/${sample}.csv`))).join("")), sample).toBe(false);
    }
    expect(sumup.detect("")).toBe(false);
  });

  it("gives the same lines for each division into chunks, and damage throws nothing but a refusal", async () => {
    const text = (await collected(sampleText("sumup/de-early-2025.csv"))).join("");
    const options = { ...NO_OPTIONS, currency: "CHF" };
    const whole = await collected(sumup.parse(oneChunk(text), options));
    const damage = fc.tuple(fc.nat(), fc.constantFrom('"', "\n", ",", ";", "\0", "x", "=", "\ufeff", "9".repeat(30)));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.array(damage, { maxLength: 4 }),
        async (places, hits) => {
          expect(await collected(sumup.parse(dividedAt(text, places), options))).toEqual(whole);
          const damaged = hits.reduce(
            (so, [at, what]) => so.slice(0, at % so.length) + what + so.slice((at % so.length) + 1),
            text,
          );
          const outcome = await collected(sumup.parse(dividedAt(damaged, places), options)).catch(
            (error: unknown) => error,
          );
          if (!Array.isArray(outcome)) expect(outcome).toBeInstanceOf(StatementRefusedError);
        },
      ),
      { numRuns: 40 },
    );
  });
});
