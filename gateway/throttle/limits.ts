/** Who may ask how often (design §4, "throttle"); the same in a sandbox as in production. */
import type { BucketRate } from "./token-bucket.ts";

/** Of one device credential: one request a second sustained, ten at once. */
export const CREDENTIAL_RATE: BucketRate = { intervalMs: 1_000, burst: 10 };
/** Of one client address at enroll: ten a minute. */
export const ENROLL_RATE: BucketRate = { intervalMs: 6_000, burst: 10 };
/** Of one client address at the providers' callbacks: a provider at its busiest, for all its merchants here. */
export const CALLBACK_RATE: BucketRate = { intervalMs: 5, burst: 1_000 };
/** Of one client address at the platform's endpoints: a person with the key, or a program that guesses it. */
export const PLATFORM_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Of one robotics consumer: a fleet polls each second or two, and accepts and completes several tasks at once. */
export const CONSUMER_RATE: BucketRate = { intervalMs: 200, burst: 30 };
/** Of one client address with consumers' credentials that are not known to be good: each is a question to a service. */
export const UNKNOWN_CONSUMER_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Consumers' credentials remembered at once; the one that was heard of longest ago is forgotten first. About 2 MB. */
export const MAX_CONSUMERS = 10_000;
/** Addresses remembered at once; the one that was heard of longest ago is forgotten first. About 10 MB. */
export const MAX_ADDRESSES = 50_000;
