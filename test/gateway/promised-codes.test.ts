/** The documented refusals, compared with the refusing code. */
import { describe, expect, it } from "vitest";
import { errorCodesOf } from "../../gateway/http/documents/error-replies.ts";
import type { ErrorCode } from "../../gateway/http/errors.ts";
import { routes } from "../../gateway/routes.ts";
import { aServedCounter, ORDER } from "../machines/scenario.ts";

const promisedBy = (operationId: string): readonly ErrorCode[] =>
  routes.filter((route) => route.operationId === operationId).flatMap(errorCodesOf);
const whoPromises = (code: ErrorCode): readonly string[] =>
  routes.filter((route) => errorCodesOf(route).includes(code)).map(({ operationId }) => operationId);

describe("a documented error code is answered", () => {
  it("already_exists: for an e-mail address, because names need not be unique", () => {
    expect(whoPromises("already_exists")).toEqual([
      "backoffice_create_user",
      "backoffice_change_user",
      "platform_create_organization",
    ]);
  });

  it("device_limit_reached: by the registration of a device", () => {
    expect(whoPromises("device_limit_reached")).toEqual(["backoffice_register_device"]);
  });

  it("order_changed: also by a collection that begins with an order that was changed meanwhile", () => {
    const counter = aServedCounter().order({ revision: 3 });
    expect(counter.picks("cash", { order: { ...ORDER, revision: 2 } }).reply).toEqual({
      ok: false,
      code: "order_changed",
    });
    expect(promisedBy("cashier_create_intent")).toContain("order_changed");
  });
});
