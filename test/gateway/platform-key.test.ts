/** The platform key: which values are valid, and how guesses are throttled. */
import { describe, expect, it } from "vitest";
import { PlatformCheck } from "../../gateway/http/caller-checks.ts";
import { ApiError } from "../../gateway/http/handler-context.ts";
import { AddressThrottle, PLATFORM_RATE } from "../../gateway/read-model/throttles.ts";
import { gatewaySettingsSchema } from "../../gateway/settings.ts";

const KEY = "a-platform-key-of-32-characters!";
const facts = (authorization: string, address = "192.0.2.1") => ({
  requestId: "r",
  method: "POST",
  url: "/api/platform/v1/freeze/",
  query: "",
  headers: authorization === "" ? {} : { authorization },
  parameters: [],
  address,
  secure: true,
  peer: address,
});

function codeOf(check: PlatformCheck, authorization: string, address?: string): string {
  try {
    check.check(facts(authorization, address));
    return "";
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

describe("the setting PLATFORM_KEY and its check", () => {
  it("32 to 256 characters of ASCII without spaces, or no key: valid; other values: invalid", () => {
    const keyOf = (key?: string) => gatewaySettingsSchema.safeParse({ PLATFORM_KEY: key });
    expect(keyOf(KEY).data?.platformKey).toBe(KEY);
    expect(keyOf("").data?.platformKey).toBeUndefined();
    expect(keyOf().data?.platformKey).toBeUndefined();
    for (const bad of [KEY.slice(1), `${KEY} ${KEY}`, "ü".repeat(40), "x".repeat(257)]) {
      expect([bad, keyOf(bad).success]).toEqual([bad, false]);
    }
  });

  it("the key: accepted, and no other value is; no key: the platform's paths do not exist", () => {
    const check = new PlatformCheck(KEY, new AddressThrottle(PLATFORM_RATE));
    expect(codeOf(check, `Bearer ${KEY}`)).toBe("");
    expect(codeOf(check, "")).toBe("platform_key_missing");
    for (const wrong of [KEY.slice(1), `${KEY}x`, KEY.toUpperCase(), "x"]) {
      expect(codeOf(check, `Bearer ${wrong}`)).toBe("platform_key_invalid");
    }
    const none = new PlatformCheck(undefined, new AddressThrottle(PLATFORM_RATE));
    for (const authorization of ["", "Bearer undefined", `Bearer ${KEY}`]) {
      expect(codeOf(none, authorization)).toBe("path_not_found");
    }
  });

  it("guesses: throttled by address; the right key: never throttled", () => {
    const check = new PlatformCheck(KEY, new AddressThrottle(PLATFORM_RATE));
    const codes = Array.from({ length: PLATFORM_RATE.burst + 1 }, () => codeOf(check, "Bearer guess"));
    expect(codes.slice(0, -1).every((code) => code === "platform_key_invalid")).toBe(true);
    expect(codes.at(-1)).toBe("throttled");
    expect(codeOf(check, "Bearer guess", "192.0.2.2")).toBe("platform_key_invalid");
    const opened = Array.from({ length: 2 * PLATFORM_RATE.burst }, () => codeOf(check, `Bearer ${KEY}`));
    expect(new Set(opened)).toEqual(new Set([""]));
    expect(codeOf(check, "Bearer guess")).toBe("throttled");
  });
});
