/**
 * The reads that are answered from memory, at once: no promise, no context object, no closure per request (design §8).
 * The table says which route is which; `gateway/read-model/polls/` says how each is answered.
 */
export type PollName = "display" | "self" | "assignment";
