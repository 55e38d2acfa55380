/** A person at the device: the suite prints an instruction, and continues when the person presses Enter. */
import { createInterface, type Interface } from "node:readline/promises";
import type { DeviceUnderTest, PaymentAct, Shown } from "./device.ts";

/** A person reads, walks to the device, and acts. */
const STEP_MS = 90_000;
const PAYMENTS: Readonly<Record<PaymentAct, string>> = {
  approve: "Approve the next payment in the payment application.",
  approve_twice: "Approve the next payment, and have the payment application give its answer twice if it can.",
  decline: "Have the next payment declined.",
  cancel: "Cancel the next payment in the payment application.",
  hold: "Leave the next payment open in the payment application, until you are asked to approve it.",
};
const SHOWN = /^(?<state>idle|total|qr|paid|nothing)(?:\s+(?<amount>\d+\.\d\d))?$/;

export class PersonAtDevice implements DeviceUnderTest {
  readonly stepMs = STEP_MS;
  readonly #lines: Interface;
  readonly #signal: AbortSignal;
  readonly #endRun: () => void;

  /** `endRun` aborts the signal: while readline reads a terminal, Ctrl-C and Ctrl-D send no signal to the process. */
  constructor(
    streams: { readonly input: NodeJS.ReadableStream; readonly output: NodeJS.WritableStream },
    signal: AbortSignal,
    endRun: () => void,
  ) {
    this.#lines = createInterface(streams);
    this.#signal = signal;
    this.#endRun = endRun;
    this.#lines.once("close", endRun);
  }

  async enroll({ baseUrl, code }: { readonly baseUrl: string; readonly code: string }): Promise<void> {
    await this.#ask(`Give the device the address ${baseUrl} and the enrollment code ${code}.`);
  }

  async payments(act: PaymentAct): Promise<void> {
    await this.#ask(PAYMENTS[act]);
  }

  async finish(): Promise<void> {
    await this.#ask("Approve the payment that is open.");
  }

  async restart(): Promise<void> {
    await this.#ask("Cut the power of the device, and start it again.");
  }

  async shown(): Promise<Shown> {
    for (;;) {
      const question =
        "What does the display show? Type idle or nothing, or total, qr or paid with the amount: total 25.50";
      const answer = await this.#lines.question(`→ ${question}\n  `, { signal: this.#signal });
      const { state, amount = "" } = SHOWN.exec(answer.trim().toLowerCase())?.groups ?? {};
      if (state !== undefined) return { state, amount };
    }
  }

  async stop(): Promise<void> {
    this.#lines.off("close", this.#endRun);
    this.#lines.close();
  }

  async #ask(sentence: string): Promise<void> {
    await this.#lines.question(`→ ${sentence} Then press Enter. `, { signal: this.#signal });
  }
}
