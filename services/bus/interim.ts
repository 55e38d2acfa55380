/**
 * What a caller and the processes of a service say to each other beside the request and its answer, all of it to the
 * inbox of the request.
 *
 *   caller ── request, to one process of the queue group
 *          ◄── {working}                 after 150 ms, and again and again until the answer
 *          ◄── {reply} or {refusal}
 *   nothing for 400 ms:
 *   caller ── probe, to every process of the service
 *          ◄── {working}                 from the process that has the request
 *          ◄── {offer: subject}          from each other one that has room
 *          ── the same request, to the first that offers
 *          ◄── {claimed}                 another process carries it out, and may carry it out only once
 *
 * The queue group alone would not do: a server prefers the process that is connected to it, also one that is stalled.
 */
import type { BusRefusal } from "./refusals.ts";

export type Interim = { readonly working: true } | { readonly offer: string } | { readonly claimed: true };
export type Answer = { readonly reply: unknown } | { readonly refusal: BusRefusal };

/** Where the processes that serve an operation receive probes. */
export const probeSubject = (subject: string): string => `again.${subject}`;
