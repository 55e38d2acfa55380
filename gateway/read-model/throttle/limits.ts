/** Who may ask how often (design §4, "throttle"); the same in a sandbox as in production. */
import type { BucketRate } from "./token-bucket.ts";

/** Of one device credential: one request a second sustained, ten at once. */
export const CREDENTIAL_RATE: BucketRate = { intervalMs: 1_000, burst: 10 };
/** Of one client address at enroll: ten a minute. */
export const ENROLL_RATE: BucketRate = { intervalMs: 6_000, burst: 10 };
/**
 * Of one client address at the providers' callbacks. It protects the bus and nothing else: the signature is looked at
 * behind it, so whoever sends more than this from a provider's own address keeps its good callbacks waiting as well, and a
 * provider repeats what got 429. So it is a multiple of what a provider at its busiest sends for all its merchants here.
 * Wrong signatures have a throttle of their own, which never counts a good one (`CALLBACK_REFUSAL_RATE`).
 */
export const CALLBACK_RATE: BucketRate = { intervalMs: 0.5, burst: 20_000 };
/** Wrong platform keys of one client address: a person who mistypes, or a program that guesses. The right key is not counted. */
export const PLATFORM_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Of one robotics consumer: a fleet polls each second or two, and accepts and completes several tasks at once. */
export const CONSUMER_RATE: BucketRate = { intervalMs: 200, burst: 30 };
/** Of one client address with consumers' credentials that are not known to be good: each is a question to a service. */
export const UNKNOWN_CONSUMER_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Consumers' credentials remembered at once; the one that was heard of longest ago is forgotten first. About 2 MB. */
export const MAX_CONSUMERS = 10_000;
/** Addresses remembered at once; the one that was heard of longest ago is forgotten first. About 10 MB. */
export const MAX_ADDRESSES = 50_000;
