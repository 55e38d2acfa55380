/** A customer display for tests. */
import type { Shown } from "../../../clients/conformance/devices/device.ts";
import { type Answer, TestDevice } from "./test-device.ts";

export type DisplayFlaw =
  | "shows nothing while idle"
  | "rounds the amount"
  | "shows nothing for an unchanged total"
  | "keeps showing paid without answers"
  | "polls rarely"
  | "shows no state with fields that it does not know"
  | "shows nothing by another clock"
  | "shows no state with a strong ETag"
  | "shows nothing of a slow body"
  | "never shows paid"
  | "shows paid with 0.00"
  | "shows a QR code with 0.00"
  | "shows another QR code"
  | "keeps showing a total"
  | "keeps showing a QR code"
  | "keeps showing a QR code without answers";

const NOTHING: Shown = { state: "nothing", amount: "", qr_payload: "" };
const FIELDS = 7;
const CLOCK_MS = 60_000;
const STALE_POLLS = 3;

export class TestDisplay extends TestDevice<DisplayFlaw> {
  #etag = "";
  #shown = NOTHING;
  #misses = 0;

  async finish(): Promise<void> {
    throw new Error("A display takes no payment.");
  }

  async shown(): Promise<Shown> {
    return this.#shown;
  }

  protected async started(): Promise<void> {
    this.#etag = "";
    this.#shown = NOTHING;
  }

  protected override pollMs(usualMs: number): number {
    return this.flaw === "polls rarely" ? 6_000 : usualMs;
  }

  protected override answerMs(operation: string): number {
    return this.flaw === "shows nothing of a slow body" && operation === "display/" ? 1_000 : super.answerMs(operation);
  }

  protected async poll(): Promise<number | undefined> {
    const answer = await this.send("GET", "display/", { etag: this.#etag });
    if (answer === undefined) this.#missed();
    if (answer?.status === 304) {
      this.#misses = 0;
      const isTotal = this.#shown.state === "total";
      if (isTotal && this.flaw === "shows nothing for an unchanged total") this.#shown = NOTHING;
    }
    if (answer?.status === 200) this.#show(answer);
    return answer?.status;
  }

  #show(answer: Answer): void {
    this.#misses = 0;
    this.#etag = answer.etag;
    const { state, amount, qr_payload: payload, server_time: serverTime } = answer.json as Record<string, string>;
    if (this.flaw === "shows no state with fields that it does not know" && Object.keys(answer.json).length > FIELDS)
      return;
    const isOld = Math.abs(Date.parse(serverTime ?? "") - Date.now()) > CLOCK_MS;
    if (this.flaw === "shows nothing by another clock" && isOld) return;
    if (this.flaw === "shows no state with a strong ETag" && !answer.etag.startsWith("W/")) return;
    if (this.flaw === "shows nothing while idle" && state === "idle") return void (this.#shown = NOTHING);
    if (this.flaw === "never shows paid" && state === "paid") return;
    if (this.flaw === "keeps showing a total" && this.#shown.state === "total" && state === "idle") return;
    if (this.flaw === "keeps showing a QR code" && this.#shown.state === "qr") return;
    this.#shown = {
      state: state ?? "",
      amount: this.#amountOf(state, amount ?? ""),
      qr_payload: this.flaw === "shows another QR code" && payload !== "" ? "https://pay.example/1" : payload,
    };
  }

  #amountOf(state: string | undefined, amount: string): string {
    if (state === "paid" && this.flaw === "shows paid with 0.00") return "0.00";
    if (state === "qr" && this.flaw === "shows a QR code with 0.00") return "0.00";
    return this.flaw === "rounds the amount" ? String(Math.round(Number(amount))) : amount;
  }

  #missed(): void {
    this.#misses += 1;
    const { state } = this.#shown;
    const isHidden =
      (state === "paid" && this.flaw !== "keeps showing paid without answers") ||
      (state === "qr" && this.flaw !== "keeps showing a QR code without answers");
    if (this.#misses < STALE_POLLS || !isHidden) return;
    this.#shown = NOTHING;
    // Without an entity tag in the request, the next answer has the whole state again.
    this.#etag = "";
  }
}
