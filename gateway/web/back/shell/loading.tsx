/**
 * Reads of the API for a section: loaded when its key appears or changes, again after a sign-in, and on a timer where the
 * section is live. What was loaded stays on the screen while it is read again, and that of a list also while another filter is read.
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import type { Result } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { FailureNotice, Skeleton } from "../../shared/states.tsx";
import { sessionNumber } from "./session.ts";
import { shellWords } from "./words.ts";

export interface Loading<T> {
  /** Null until it was read once. */
  readonly data: T | null;
  readonly failure: Failure | null;
  /** `data` is that of the key before: what is wanted is on its way. */
  readonly isOld: boolean;
  readonly reload: () => Promise<void>;
}

interface Loaded<T> {
  readonly key: string;
  readonly data: T | null;
  readonly failure: Failure | null;
}

interface LoadOptions {
  readonly everyMs?: number | undefined;
  /** Another key is another view of the same: the old one is shown, marked busy, until the new one is there. */
  readonly keepsOld?: boolean;
}

/** `key` names what is read: another key is another thing. */
export function useLoad<T>(key: string, load: () => Promise<Result<T>>, options: LoadOptions = {}): Loading<T> {
  const { everyMs, keepsOld = false } = options;
  const loaded = useSignal<Loaded<T>>({ key, data: null, failure: null });
  const current = useRef({ key, load });
  current.current = { key, load };
  const reload = async (): Promise<void> => {
    const asked = current.current;
    const result = await asked.load();
    // Another thing is wanted meanwhile, or the section is gone.
    if (current.current.key !== asked.key) return;
    const before = loaded.peek();
    const kept = before.key === asked.key ? before.data : null;
    loaded.value = result.ok
      ? { key: asked.key, data: result.reply, failure: null }
      : { key: asked.key, data: kept, failure: result };
  };
  const session = sessionNumber.value;
  useEffect(() => {
    void reload();
  }, [key, session]);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [key, everyMs]);
  const { data, failure, key: loadedKey } = loaded.value;
  if (loadedKey === key) return { data, failure, isOld: false, reload };
  return { data: keepsOld ? data : null, failure: null, isOld: keepsOld && data !== null, reload };
}

/** The part of an answer that is wanted. */
export async function mapReply<T, U>(asked: Promise<Result<T>>, map: (reply: T) => U): Promise<Result<U>> {
  const result = await asked;
  return result.ok ? { ...result, reply: map(result.reply) } : result;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page; null at the end. */
  readonly next: string | number | null;
}

export interface Pages<T> extends Loading<readonly T[]> {
  readonly hasMore: boolean;
  readonly more: () => Promise<void>;
}

/** The page after `since_id`, or before `before_id`: the id of its last entry is the cursor of the next. */
export const pageOf = <T,>(items: readonly T[], hasMore: boolean, idOf: (item: T) => number): Page<T> => {
  const last = items[items.length - 1];
  return { items, next: hasMore && last !== undefined ? idOf(last) : null };
};

type LoadPage<T> = (cursor: string | number | undefined) => Promise<Result<Page<T>>>;

/** A list that is read page by page; `reload` begins again with the first page. */
export function usePages<T>(key: string, load: LoadPage<T>, everyMs?: number): Pages<T> {
  const later = useSignal<Page<T> | null>(null);
  const laterFailure = useSignal<Failure | null>(null);
  const first = useLoad(
    key,
    async () => {
      const result = await load(undefined);
      if (result.ok) later.value = null;
      return result;
    },
    { everyMs, keepsOld: true },
  );
  useEffect(() => {
    later.value = null;
    laterFailure.value = null;
  }, [key]);
  const last = later.value ?? first.data;
  const more = async (): Promise<void> => {
    const cursor = last?.next;
    if (cursor === null || cursor === undefined) return;
    const result = await load(cursor);
    laterFailure.value = result.ok ? null : result;
    if (!result.ok) return;
    later.value = { items: [...(later.peek()?.items ?? []), ...result.reply.items], next: result.reply.next };
  };
  return {
    data: first.data === null ? null : [...first.data.items, ...(later.value?.items ?? [])],
    failure: first.failure ?? laterFailure.value,
    isOld: first.isOld,
    reload: first.reload,
    // A cursor of the old list says nothing in the new one.
    hasMore: last !== null && last.next !== null && !first.isOld,
    more,
  };
}

/** How many things a selection or a name look-up reads at most: more would not be chosen from by hand. */
const MOST_CHOICES = 1_000;

/** All pages of a short list, for selections. */
export async function allPages<T>(load: LoadPage<T>): Promise<Result<readonly T[]>> {
  const items: T[] = [];
  let cursor: string | number | undefined;
  for (;;) {
    const result = await load(cursor);
    if (!result.ok) return result;
    items.push(...result.reply.items);
    if (result.reply.next === null || items.length >= MOST_CHOICES) return { ...result, reply: items };
    cursor = result.reply.next;
  }
}

interface LoadedViewProps<T> {
  readonly of: Loading<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** What was loaded, or what is there instead of it. */
export function LoadedView<T>({ of, children }: LoadedViewProps<T>) {
  const { data, failure, isOld, reload } = of;
  return (
    <div class={isOld ? "stack busy" : "stack"} aria-busy={isOld}>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {data !== null && children(data)}
      {data === null && failure === null && <Skeleton blocks={1} />}
    </div>
  );
}

interface ListedProps<T> {
  readonly of: Pages<T>;
  readonly empty: ComponentChildren;
  readonly children: (items: readonly T[]) => ComponentChildren;
}

/** A list with its empty, loading and error states and the way to its next page. */
export function Listed<T>({ of, empty, children }: ListedProps<T>) {
  return (
    <LoadedView of={of}>
      {(items) => (
        <>
          {items.length === 0 ? empty : children(items)}
          {of.hasMore && (
            <p class="more">
              <Button onClick={of.more}>{shellWords().more}</Button>
            </p>
          )}
        </>
      )}
    </LoadedView>
  );
}
