import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { MT940 } from "../../../services/reconciliation/formats/mt940.ts";
import { chunked, expectRecordsOrRefusal, expectRefusal, movedBy, read, recordsOf, sample } from "./read-sample.ts";

const TWO = sample("mt940/two-statements.sta");
const PLAIN = sample("mt940/plain.sta");

describe("MT940 in blocks", () => {
  it("reads each statement with its header and its total, which holds", async () => {
    const reading = await read(MT940, TWO);
    const days = { fromDate: "2026-03-02", toDate: "2026-03-02" };
    const header = { account: "12345678/0001234567", currency: "EUR", fromDate: undefined, toDate: undefined };
    expect(reading.headers).toEqual([header, { ...header, ...days }, header, { ...header, ...days }]);
    expect(reading.totals).toEqual([
      { name: "closing balance of STARTUMS 00042/001", currency: "EUR", statedMinor: 103510n, computedMinor: 103510n },
      { name: "closing balance of STARTUMS 00043/001", currency: "EUR", statedMinor: 103510n, computedMinor: 103510n },
    ]);
    expect(movedBy(reading)).toBe(3510n);
    expect(reading.malformed).toEqual([]);
  });

  it("reads a structured :86: that is wrapped anywhere", async () => {
    const { lines } = await read(MT940, TWO);
    expect(lines[0]).toEqual({
      position: 6,
      kind: "bank_credit",
      providerType: "N166",
      amountMinor: 1250n,
      currency: "EUR",
      feeMinor: undefined,
      netMinor: undefined,
      tipMinor: undefined,
      bookedOn: "2026-03-02",
      valueOn: "2026-03-02",
      occurredAt: undefined,
      providerReference: "2603020001",
      paymentReference: "",
      merchantReference: "ORDER-4711",
      payoutReference: "",
      terminal: "",
      account: "12345678/0001234567",
      text: "Table 7 and drinks, thank you",
      details: {
        "funds code": "R",
        "86": "166",
        "?00": "GUTSCHR. UEBERWEISUNG",
        "?10": "9248",
        "?30": "SOGEDEFFXXX",
        "?31": "DE75512108001245126199",
        "?32": "Zoe Guest",
        "?33": "and Partner",
        "?34": "992",
        EREF: "ORDER-4711",
        KREF: "NONREF",
      },
    });
  });

  it("reads NONREF and NOTPROVIDED as no reference, and keeps equal entries apart by their positions", async () => {
    const { lines } = await read(MT940, TWO);
    expect(
      lines.slice(1, 3).map((line) => [line.position, line.providerReference, line.merchantReference, line.text]),
    ).toEqual([
      [10, "", "", "Tip"],
      [13, "", "", "Tip"],
    ]);
    expect(lines[1]?.details).toMatchObject({ "supplementary details": "/OCMT/EUR20,/" });
  });

  it("reads reversals of both signs, and a charge", async () => {
    const { lines } = await read(MT940, TWO);
    expect(
      lines.slice(3).map((line) => [line.kind, line.amountMinor, line.details["mark"], line.providerReference]),
    ).toEqual([
      ["bank_debit", -1500n, "RC", "2603020004"],
      ["bank_credit", 500n, "RD", ""],
      ["fee", -740n, undefined, ""],
    ]);
    expect(lines[3]).toMatchObject({ merchantReference: "ORDER-4600", text: "Returned payment" });
    expect(lines[4]).toMatchObject({ merchantReference: "REF-5", text: "" });
  });
});

describe("MT940 plain", () => {
  it("reads pages, and checks that a page opens with the closing balance of the previous page", async () => {
    const reading = await read(MT940, PLAIN);
    expect(reading.totals.map(({ name, statedMinor, computedMinor }) => [name, statedMinor, computedMinor])).toEqual([
      ["closing balance of ABN AMRO BANK NV 19321/1", 7570n, 7570n],
      ["balance carried to ABN AMRO BANK NV 19321/2", 7570n, 7570n],
      ["closing balance of ABN AMRO BANK NV 19321/2", 7570n, 7570n],
    ]);
    const broken = await read(MT940, PLAIN.replace(":60M:C260101EUR75,7", ":60M:C260101EUR76,7"));
    expect(broken.totals[1]).toMatchObject({ statedMinor: 7670n, computedMinor: 7570n });
  });

  it("finds the year of an entry date on either side of the new year", async () => {
    const { lines } = await read(MT940, PLAIN);
    expect(lines.map(({ valueOn, bookedOn }) => [valueOn, bookedOn])).toEqual([
      ["2026-01-01", "2025-12-31"],
      ["2026-01-01", "2026-01-01"],
      ["2025-12-31", "2026-01-02"],
      ["2026-01-02", "2026-01-02"],
    ]);
  });

  it("reads blanks for an entry date, a whole amount without a comma, and a text whose lines begin like tags", async () => {
    const { lines } = await read(MT940, PLAIN);
    expect(lines[1]).toMatchObject({
      amountMinor: -200n,
      merchantReference: "ORDER 12",
      details: { "funds code": "D" },
    });
    expect(lines[1]?.text).toMatch(/2026-01-01T16\n:26:37 and another one\n:20:15 that is wrapped$/);
    expect(lines[2]).toMatchObject({
      amountMinor: 10000n,
      merchantReference: "ORDER-13",
      providerReference: "BANK-REF-3",
    });
  });

  it("reads an entry with a blank before its type, as German banks write it", async () => {
    const entry = "2603020302D12,35 NRTIKREF+//2016021783252833";
    const { lines, malformed } = await read(
      MT940,
      statementWith(`:61:${entry}\n/OCMT/EUR11,85//CHGS/EUR0,50/\n:86:text\n`),
    );
    expect(malformed).toEqual([]);
    expect(lines).toMatchObject([
      { amountMinor: -1235n, providerType: "NRTI", providerReference: "2016021783252833", merchantReference: "" },
    ]);
  });

  it("reads a zero amount as `not_money`", async () => {
    const { lines } = await read(MT940, PLAIN);
    expect(lines[3]).toMatchObject({
      kind: "not_money",
      text: "/ABC/DEF/C 37897,00",
      details: { not_money_reason: "zero amount" },
    });
  });

  it("removes control characters of a transmission, and joins an entry that is wrapped", async () => {
    const reading = await read(MT940, sample("mt940/controls.sta"));
    expect(reading.totals[0]?.name).toBe("closing balance of STARTUMS 00027/00001");
    expect(reading.lines).toMatchObject([
      { amountMinor: 2700n, merchantReference: "100323-03-100323", providerReference: "32-P1-TCS49518" },
      { amountMinor: 3000n, providerType: "N062", text: "Test?" },
    ]);
    expect(reading.lines[0]?.text).toBe("QQW53T2245ZGY46J ABBUCHUNGVOM PAYPAL-KONTO100318P3TX1433EV");
    expect(reading.totals).toMatchObject([{ statedMinor: 6700n, computedMinor: 6700n }]);
  });

  it("reads what banks write beside the standard: :NS:, types with blanks, other separators", async () => {
    const reading = await read(MT940, sample("mt940/without-references.sta"));
    expect(reading.lines).toMatchObject([
      {
        providerReference: "MB260202323000",
        text: "911 TRANSAKCJA COLLECT; TYT.: FAKTURA  ; TNR: \n179301073837502.000001",
      },
      { providerType: "S", merchantReference: "X", text: "01526715\n02A12596785" },
      { merchantReference: "01916", providerReference: "", text: "ALGEMENE TUSSENREKENING KOSTEN > 5 EUR" },
    ]);
    expect(reading.totals).toMatchObject([{ statedMinor: 244896n, computedMinor: 244896n }]);
  });
});

describe("the days of an MT940", () => {
  const daysOf = async (opening: string, closing: string, entries = "") => {
    const text = `:20:A\n:25:1\n:28C:1/1\n:60F:C${opening}EUR10,00\n${entries}:62F:C${closing}EUR10,00\n-\n`;
    const { fromDate, toDate } = (await read(MT940, text)).headers.at(-1) ?? {};
    return [fromDate, toDate];
  };

  it("are those after the opening balance, up to the closing balance, also without an entry", async () => {
    expect(await daysOf("260228", "260315")).toEqual(["2026-03-01", "2026-03-15"]);
    expect(await daysOf("260315", "260315")).toEqual(["2026-03-15", "2026-03-15"]);
    expect(await daysOf("260314", "260315")).toEqual(["2026-03-15", "2026-03-15"]);
  });

  it("contain those of its entries", async () => {
    const entries = ":61:260302C0,00NTRFNONREF\n:61:260317C0,00NTRFNONREF\n";
    expect(await daysOf("260314", "260315", entries)).toEqual(["2026-03-02", "2026-03-17"]);
  });

  it("are the day of the closing balance where the opening balance is later, years older, or on no day", async () => {
    for (const opening of ["260320", "000101", "260231"])
      expect(await daysOf(opening, "260315")).toEqual(["2026-03-15", "2026-03-15"]);
  });
});

describe("MT940 traps", () => {
  it("reads a line with only a dash in a text as text, and not as the end of the statement", async () => {
    const entries =
      ":61:2603020302C5,NTRFEREF//1\n:86:/MARF/MND\n-\nEV01//REMI/one\n-\n:61:2603020302D5,NTRFNONREF//2\n:86:-\n-\n";
    const reading = await read(MT940, statementWith(entries));
    expect(reading.malformed).toEqual([]);
    expect(reading.lines.map(({ providerReference, text }) => [providerReference, text])).toEqual([
      ["1", "/MARF/MND\n-\nEV01//REMI/one\n-"],
      ["2", "-\n-"],
    ]);
    expect(reading.totals).toMatchObject([{ statedMinor: 1000n, computedMinor: 1000n }]);
  });

  it.each(["", "ABNANL2A\n940\nABNANL2A\n", "{1:F01ABNANL2AXXXX0000000000}{2:I940ABNANL2AXXXXN}{3:}{4:\n"])(
    "ends a statement without a closing balance at its dash, whatever follows: %j",
    async (between) => {
      const entry = ":61:2603020302C5,NTRFNONREF//1\n:86:text\n";
      const cut = statementWith(entry).replace(/:62F:.*\n/, "");
      for (const text of [`${cut}${between}${statementWith("")}`, `${statementWith("")}${cut}${between}`]) {
        const reading = await read(MT940, text);
        expect(reading.lines).toMatchObject([{ providerReference: "1", text: "text" }]);
        expect(reading.malformed).toMatchObject([{ column: ":62F:", reason: "The statement has no closing balance." }]);
        expect(reading.totals).toHaveLength(1);
      }
    },
  );

  it.each([
    ["/TRTP/SEPA OVERBOEKING/REMI/Table 7/EREF/ORDER-7", "ORDER-7"],
    ["/TRTP/SEPA OVERBOEKING/EREF/ORDER\n-8  ", "ORDER-8"],
    ["/EREF/REF17/22/4444/DEC- 16/ORDP//NAME/A", "REF17/22/4444/DEC- 16"],
    ["/EREF/ORDER/9//MARF/M1//REMI/USTD//x/", "ORDER/9"],
    ["/EREF/ORDER-10/", "ORDER-10"],
    ["/EREF//REMI/x/", ""],
    ["/EREF/NOTPROVIDED", ""],
    ["Ordered by a guest: /EREFS/1/", ""],
  ])("reads the EndToEndId of %j", async (text, reference) => {
    const reading = await read(MT940, statementWith(`:61:2603020302C5,NTRFNONREF//1\n:86:${text}\n`));
    expect(reading.lines).toMatchObject([{ merchantReference: reference, text: text.trim() }]);
  });

  it.each(["717.76.000.09 Tips 11,50", "044/12 34 Bar", "100,50 of 200", "123-45"])(
    "keeps a text that begins with numbers: %s",
    async (text) => {
      const reading = await read(MT940, statementWith(`:61:2603020302C5,NTRFNONREF//1\n:86:${text}\n`));
      expect(reading.lines).toMatchObject([{ text, details: {} }]);
    },
  );

  it.each([
    [
      "?20EREF+ORDER-7.40014?2125 KREF+SEPA-DA20?222606-P1 MREF+M1 CRED+DE41ZZ?2300 OAMT+11,85 SV?24WZ+Table 7?25 and drinks",
      { merchantReference: "ORDER-7.4001425", text: "Table 7 and drinks" },
      { EREF: "ORDER-7.4001425", KREF: "SEPA-DA202606-P1", MREF: "M1", CRED: "DE41ZZ00", OAMT: "11,85" },
    ],
    [
      "?20EREF+NOTPROVIDED SVWZ+VERTR?21:KO:NR:1",
      { merchantReference: "", text: "VERTR:KO:NR:1" },
      { EREF: "NOTPROVIDED" },
    ],
    ["?20SVWZ+Bill EREF 7?21EREF+ORDER-8", { merchantReference: "ORDER-8", text: "Bill EREF 7" }, { EREF: "ORDER-8" }],
  ])("reads keywords one after another, cut anywhere: %s", async (purpose, line, details) => {
    const entry = `:61:2603020302C5,NTRFNONREF//1\n:86:166?00GUTSCHRIFT${purpose}?32GUEST\n`;
    const reading = await read(MT940, statementWith(entry));
    expect(reading.lines).toMatchObject([line]);
    const { reference: _, ...shown } = reading.lines[0]?.details ?? {};
    expect(shown).toEqual({ "86": "166", "?00": "GUTSCHRIFT", "?32": "GUEST", ...details });
  });

  it.each(["EREF", "PREF", "MARF", "KREF+", "NOTPROVIDED"])(
    "reads %s as the name of a part, not as a reference",
    async (name) => {
      const entry = `:61:2603020302C5,NTRF${name}//B1\n:86:/MARF/M7//PREF/P7//REMI/USTD//Table 7/\n`;
      const reading = await read(MT940, statementWith(entry));
      expect(reading.lines).toMatchObject([{ merchantReference: "", providerReference: "B1" }]);
    },
  );

  it("reads entries without a type, and their references", async () => {
    const entries = ["C5,NONREF", "C6,00NONREF//B1", "DN7,00//19239782213"].map((entry) => `:61:2603020302${entry}\n`);
    const reading = await read(MT940, statementWith(entries.join("")));
    expect(reading.malformed).toEqual([]);
    expect(
      reading.lines.map((line) => [
        line.providerType,
        line.amountMinor,
        line.providerReference,
        line.merchantReference,
      ]),
    ).toEqual([
      ["", 500n, "", ""],
      ["", 600n, "B1", ""],
      ["", -700n, "19239782213", ""],
    ]);
  });

  it("reads an amount without a zero before its comma", async () => {
    const reading = await read(MT940, statementWith(":61:2603020302C,50NTRFNONREF\n:61:2603020302D,5NTRFNONREF\n"));
    expect(reading.lines.map(({ amountMinor }) => amountMinor)).toEqual([50n, -50n]);
    expect(reading.malformed).toEqual([]);
  });

  it("recognizes a repeated statement by its reference, account, number and opening balance", async () => {
    const entry = ":61:2603020302C5,NTRFNONREF\n:61:2603020302D5,NTRFNONREF\n";
    const first = statementWith(entry);
    const others = [
      first.replace(":28C:1/1", ":28C:1/2"),
      first.replace(":25:1", ":25:2"),
      first.replaceAll("C260302EUR10,00", "C260303EUR10,00"),
    ];
    const records = await recordsOf(MT940, [first, ...others, first].join(""));
    const types = (count: number) =>
      Array.from({ length: count }, () => ["header", "line", "line", "header", "total"]).flat();
    expect(records.map(({ type }) => type)).toEqual([...types(4), "next_file", ...types(1)]);
  });

  it("reads an amount with a point, when the point cannot group thousands", async () => {
    const entries = [
      ":61:2603020302C12.50NTRFNONREF",
      ":61:2603020302D7.5NTRFNONREF",
      ":61:2603020302C000000003.NTRFNONREF",
    ];
    const reading = await read(MT940, statementWith(`${entries.join("\n")}\n`).replaceAll("EUR10,00", "EUR000010.00"));
    expect(reading.lines.map(({ amountMinor }) => amountMinor)).toEqual([1250n, -750n, 300n]);
    expect(reading.totals).toMatchObject([{ statedMinor: 1000n, computedMinor: 1800n }]);
    expect(reading.malformed).toEqual([]);
  });

  it("books an entry with the value date 30 February on its entry date, because banks count 30 days in each month", async () => {
    const reading = await read(MT940, sample("mt940/february-30.sta"));
    expect(reading.lines).toMatchObject([
      { bookedOn: "2016-03-01", valueOn: undefined, amountMinor: -600n, details: { "value date": "160230" } },
      { bookedOn: "2015-12-31", valueOn: undefined, amountMinor: -200n, details: { "value date": "160230" } },
      { bookedOn: "2016-02-29", valueOn: "2016-02-29", amountMinor: 100n },
    ]);
  });

  it("makes 30 February malformed as entry date and as the only date, and the total shows what is missing", async () => {
    const reading = await read(MT940, sample("mt940/february-30.sta"));
    expect(reading.malformed).toEqual([
      {
        position: 10,
        column: ":61:",
        reason: "The entry date 0230 is not in the calendar.",
        raw: "1603010230CR1,00NTRFNONREF",
      },
      {
        position: 11,
        column: ":61:",
        reason: "The value date 160230 is not in the calendar.",
        raw: "160230CR4,00NTRFNONREF",
      },
    ]);
    expect(reading.totals).toMatchObject([{ statedMinor: 119800n, computedMinor: 119300n }]);
  });

  it.each([
    ["2603020302X12,50NTRFNONREF", /not of the form/],
    ["2603020302C1.250NTRFNONREF", /not of the form/],
    ["2602310302C12,50NTRFNONREF", /value date 260231 is not in the calendar/],
    ["2603020302CNTRFNONREF", /not of the form/],
    ["2603020302C12,505NTRFNONREF", /more decimals/],
    ["2603020302C12,50", /not of the form/],
    ["", /not of the form/],
  ])("makes :61:%s malformed", async (entry, reason) => {
    const reading = await read(MT940, statementWith(`:61:${entry}\n:86:text\n`));
    expect(reading.malformed).toMatchObject([{ position: 5, column: ":61:", reason: expect.stringMatching(reason) }]);
    expect(reading.lines).toEqual([]);
  });

  it.each([
    [":60F:C260302EUR10,00", ":60F:C260230EUR10,00", "The date 260230 is not in the calendar.", [1000n, 1000n]],
    [":60F:C260302EUR10,00", ":60F:C260302EUR10,005", "10,005 has more decimals than EUR has (2).", [1000n, 0n]],
    [":60F:C260302EUR10,00", ":60F:C260302EUR10.000", '"10.000" is not a decimal number.', [1000n, 0n]],
    [
      ":62F:C260302EUR10,00",
      ":62F:D260302EUR10,00\n:62F:X",
      "The balance is not of the form mark, date, currency and amount.",
      undefined,
    ],
    [":62F:C260302EUR10,00", ":62F:C260302USD10,00", undefined, [1000n, 0n]],
  ])("reports a balance that cannot be read: %s → %s", async (good, bad, reason, total) => {
    const reading = await read(MT940, statementWith("").replace(good, bad));
    expect(reading.malformed.map((malformed) => malformed.reason)).toEqual(reason === undefined ? [] : [reason]);
    expect(reading.totals.map(({ statedMinor, computedMinor }) => [statedMinor, computedMinor])).toEqual(
      total === undefined ? [] : [total],
    );
  });

  it.each([
    ["after the closing balance", ":62F:C260302EUR10,00\n"],
    ["after the end of its statement", ":62F:C260302EUR10,00\n-\n"],
  ])("reports an entry %s as malformed", async (_where, end) => {
    const text = statementWith("").replace(
      /:62F:C260302EUR10,00\n(?:-\n)?/,
      `${end}:61:2603020302C5,NTRFLOST\n:86:text\n`,
    );
    const { malformed, lines } = await read(MT940, text);
    expect(lines).toEqual([]);
    expect(malformed).toMatchObject([
      { column: ":61:", reason: expect.stringMatching(/^The entry stands after/) as string },
    ]);
  });

  it("reports entries without a currency, and a statement without an end before another one", async () => {
    const text = `:20:A\n:25:1\n:61:2603020302C1,NTRFNONREF\n${statementWith("")}`;
    const { malformed, totals } = await read(MT940, text);
    expect(malformed).toMatchObject([
      { position: 3, reason: "The statement has no opening balance that names the currency." },
      { position: 1, column: ":62F:", reason: "The statement has no closing balance." },
    ]);
    expect(totals).toHaveLength(1);
  });

  it.each([
    ["an interim report", sample("mt940/interim-942.sta"), "not_a_statement", /ask the bank for MT940/],
    ["an interim report in a block", TWO.replaceAll("O940", "O942"), "not_a_statement", /ask the bank for MT940/],
    ["another file", "Datum;Betrag\n1;2\n", "not_this_format", /no field :20:/],
    ["another large file", "Datum;Betrag\n".repeat(10_000), "not_this_format", /no field :20:/],
    ["an empty file", "", "not_this_format", /no field :20:/],
    ["a truncated file", TWO.slice(0, 700), "truncated", /closing balance .* is missing/],
    [
      "a file that ends in its last balance",
      PLAIN.slice(0, PLAIN.lastIndexOf("EUR75")),
      "truncated",
      /closing balance/,
    ],
    ["NUL characters", PLAIN.replace("BEA", "B\0A"), "not_text", /NUL/],
    ["an endless line", `:20:A\n:25:${"x".repeat(FORMAT_LIMITS.lineCharacters + 1)}`, "line_too_long", /1048576/],
    ["an endless field", `:20:A\n:86:${"x\n".repeat(FORMAT_LIMITS.lineCharacters)}`, "line_too_long", /1048576/],
  ] as const)("refuses, in one sentence, %s", async (_what, text, code, sentence) => {
    await expectRefusal(MT940, text, code, sentence);
  });
});

describe("MT940 detection", () => {
  it("requires the reference, the account and the opening balance", () => {
    const heads = [TWO, PLAIN, sample("mt940/controls.sta"), sample("mt940/interim-942.sta"), "a;b\n:20:x\n"];
    expect(heads.map((head) => MT940.detect(head))).toEqual([true, true, true, false, false]);
  });
});

describe("MT940 properties", () => {
  it("gives the same records whatever the chunks and the line ends", async () => {
    const expected = await Promise.all([TWO, PLAIN].map((text) => recordsOf(MT940, text)));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(1),
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1 }),
        async (which, end, lengths) => {
          const text = ([TWO, PLAIN][which] ?? "").replaceAll("\n", end);
          expect(await recordsOf(MT940, chunked(text, lengths))).toEqual(expected[which]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("answers any damage with records or with a refusal", async () => {
    const piece = fc.constantFrom(
      "\n",
      ":",
      ":61:",
      ":20:",
      ":86:",
      "-",
      "-}",
      "?20",
      "\0",
      "\u0001",
      "9",
      ",",
      "C",
      "//",
      "",
    );
    const damage = fc.array(fc.tuple(fc.nat(TWO.length), fc.nat(30), piece), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(damage, async (changes) => {
        let text = TWO;
        for (const [at, length, put] of changes) text = text.slice(0, at) + put + text.slice(at + length);
        await expectRecordsOrRefusal(MT940, text);
      }),
      { numRuns: 200 },
    );
  });

  it("never reports a changed amount or a lost entry as balanced", async () => {
    const amounts = [...TWO.matchAll(/^:61:\d{10}(?:CR|RC|RD|DR)(\d+)/gm)];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...amounts), fc.integer({ min: 1, max: 9_999 }), async (match, put) => {
        const at = match.index + match[0].length - (match[1]?.length ?? 0);
        fc.pre(Number(match[1]) !== put);
        const text = TWO.slice(0, at) + put + TWO.slice(at + (match[1]?.length ?? 0));
        const { totals } = await read(MT940, text);
        expect(totals[0]?.statedMinor).not.toBe(totals[0]?.computedMinor);
      }),
      { numRuns: 30 },
    );
  });
});

function statementWith(entries: string): string {
  return `:20:A\n:25:1\n:28C:1/1\n:60F:C260302EUR10,00\n${entries}:62F:C260302EUR10,00\n-\n`;
}
