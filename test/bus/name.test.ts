/** What a name may be: one line of text, in the same Unicode form for texts that look the same. */
import { describe, expect, it } from "vitest";
import { createFilialBodySchema } from "../../gateway/api/backoffice/filials.ts";
import { orderLinesBodySchema } from "../../gateway/api/cashier/orders.ts";
import { registerDevice } from "../../services/bus/messages/devices.ts";
import { nameSchema } from "../../services/bus/messages/name.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import { changeProviderConfig } from "../../services/bus/messages/provider-configs.ts";
import { renameStation } from "../../services/bus/messages/stations.ts";
import { createUser } from "../../services/bus/messages/users.ts";

const caller = { userId: 1, name: "Ada", organizationId: 1, role: "owner" as const, permissions: [] };

/** Every request field that contains a name. */
const NAME_FIELDS: Readonly<Record<string, (name: string) => boolean>> = {
  "the owner's API": (name) => createFilialBodySchema.safeParse({ name }).success,
  "an order's line": (name) =>
    orderLinesBodySchema.safeParse({ lines: [{ name, quantity: 1, unit_amount: "1.00" }] }).success,
  "a station on the bus": (name) => renameStation.request.safeParse({ caller, stationId: 1, name }).success,
  "a device on the bus": (name) =>
    registerDevice.request.safeParse({ caller, stationId: 1, kind: "customer_display", name }).success,
  "a person on the bus": (name) =>
    createUser.request.safeParse({ caller, email: "a@b.example", role: "cashier", password: "p".repeat(12), name })
      .success,
  "a provider's config on the bus": (name) =>
    changeProviderConfig.request.safeParse({ caller, configId: 1, name }).success,
  "a line on the bus": (name) =>
    openOrder.request.safeParse({ caller, stationId: 1, lines: [{ name, quantity: 1, unitAmountMinor: "100" }] })
      .success,
};

describe("a name", () => {
  it.each([
    ["a line feed", "Bar\nfree"],
    ["a carriage return", "Bar\rfree"],
    ["a tab", "Bar\tfree"],
    ["NUL", "Bar\0"],
    ["an escape", "\u001b[2JBar"],
    ["a C1 control", "Bar\u0085free"],
    ["a line separator", "Bar\u2028free"],
    ["a paragraph separator", "Bar\u2029free"],
    ["a right-to-left override", "Bar\u202etsaF"],
    ["an embedding", "Bar\u202atsaF"],
    ["an isolate", "Bar\u2066tsaF"],
    ["half a surrogate pair", "Bar\ud800"],
    ["nothing but what cannot be seen", "\u200b\u00ad\u2060"],
    ["nothing but white space", " \t\n "],
  ])("with %s: refused in every field", (_what, name) => {
    const accepting = Object.entries(NAME_FIELDS).filter(([, accepts]) => accepts(name));
    expect(accepting.map(([field]) => field)).toEqual([]);
  });

  it.each(["Café ☕", "مقهى البحر", "קפה‎ 1", "喫茶店", "👩‍🍳 Chef's", "O’Neill & Søn <2>"])(
    "%s: accepted unchanged",
    (name) => {
      expect(nameSchema.parse(name)).toBe(name);
      expect(Object.entries(NAME_FIELDS).filter(([, accepts]) => !accepts(name))).toEqual([]);
    },
  );

  it("with white space at its ends, or in another Unicode form: stored without the spaces, in one form", () => {
    expect(nameSchema.parse("  Bar \n")).toBe("Bar");
    expect(nameSchema.parse("Cafe\u0301")).toBe("Caf\u00e9");
  });
});
