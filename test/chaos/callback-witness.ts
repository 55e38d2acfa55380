/**
 * Acts as a bad network between the provider and the gateway. It forwards each callback, sometimes twice at once, and
 * sometimes it loses the answer. It records every answer, because a duplicate must get the same bytes.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { signature as signatureOf } from "../support/emvco-settings.ts";
import type { Random } from "./random.ts";

/** The probabilities that a callback is sent twice, and that its answer is lost. */
const DOUBLED_PROBABILITY = 0.25;
const LOST_PROBABILITY = 0.15;
/** Longer than the gateway waits for a service before it answers without one. */
const ANSWER_MS = 20_000;
const SIGNATURE = "x-provider-signature";

export interface WitnessedAnswer {
  readonly status: number;
  readonly text: string;
}

interface WitnessedCallback {
  readonly path: string;
  readonly body: string;
  /** The provider's first signature of the callback. */
  readonly signature: string;
  readonly answers: WitnessedAnswer[];
}

export class CallbackWitness {
  /** The callbacks by the provider's event id. */
  readonly callbacks = new Map<string, WitnessedCallback>();
  readonly #gatewayUrl: string;
  readonly #random: Random;
  readonly #server = createServer((request, response) => void this.#pass(request, response));
  #isCalm = false;

  constructor(gatewayUrl: string, random: Random) {
    this.#gatewayUrl = gatewayUrl;
    this.#random = random;
  }

  /** Resolves with the address to which the provider sends its callbacks. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends the faults of the network. */
  calm(): void {
    this.#isCalm = true;
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /**
   * Sends every callback again, with its first signature and with a new one. Returns a sentence for each callback whose
   * answers, during the kills and now, were not all the same bytes, and for each refusal.
   */
  async replay(secret: string): Promise<string[]> {
    const complaints: string[] = [];
    for (const [eventId, { path, body, signature, answers }] of this.callbacks) {
      const headers = [signature, signatureOf(body, secret)];
      const now = await Promise.all(headers.map((header) => this.#send(path, body, header)));
      const texts = new Set([...answers, ...now].filter(({ status }) => status === 200).map(({ text }) => text));
      if (texts.size !== 1)
        complaints.push(`Event ${eventId} was answered in ${texts.size} ways: ${[...texts].join(" ")}.`);
      const refused = [
        ...answers.filter(({ status }) => status !== 200 && status !== 503),
        ...now.filter(({ status }) => status !== 200),
      ];
      for (const { status, text } of refused) complaints.push(`Event ${eventId} was refused with ${status}: ${text}`);
    }
    return complaints;
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString("utf8");
      const path = request.url ?? "";
      const signature = String(request.headers[SIGNATURE]);
      const copies = !this.#isCalm && this.#random.chance(DOUBLED_PROBABILITY) ? 2 : 1;
      const isLost = !this.#isCalm && this.#random.chance(LOST_PROBABILITY);
      const { event_id: eventId } = JSON.parse(body) as { readonly event_id: string };
      const known = this.callbacks.get(eventId) ?? { path, body, signature, answers: [] };
      this.callbacks.set(eventId, known);
      const sent = await Promise.allSettled(Array.from({ length: copies }, () => this.#send(path, body, signature)));
      const answers = sent.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      known.answers.push(...answers);
      const [answer] = answers;
      if (answer === undefined || isLost) response.destroy();
      else response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.text);
    } catch {
      // The sender was killed while sending.
      response.destroy();
    }
  }

  async #send(path: string, body: string, signature: string): Promise<WitnessedAnswer> {
    const answer = await fetch(this.#gatewayUrl + path, {
      method: "POST",
      headers: { "content-type": "application/json", [SIGNATURE]: signature },
      body,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return { status: answer.status, text: await answer.text() };
  }
}
