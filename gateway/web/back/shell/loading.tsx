/**
 * Reads of the API for a section: when its key appears or changes, again after a sign-in, and on a timer in a live section.
 * Loaded data stays on the screen during a new read. The data of a list also stays while the page reads with another filter.
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import type { Result } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { FailureNotice, Skeleton } from "../../shared/states.tsx";
import { type Loading, useLoad } from "../../shared/use-load.ts";
import { shellWords } from "./words.ts";

/** Applies `map` to the reply of a successful request. */
export async function mapReply<T, U>(asked: Promise<Result<T>>, map: (reply: T) => U): Promise<Result<U>> {
  const result = await asked;
  return result.ok ? { ...result, reply: map(result.reply) } : result;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page; null at the end. */
  readonly next: string | number | null;
}

interface Pages<T> extends Loading<readonly T[]> {
  readonly hasMore: boolean;
  readonly more: () => Promise<void>;
  /** Repeats the read that has failed. */
  readonly retry: () => Promise<void>;
}

/** A page after `since_id` or before `before_id`. The id of its last entry is the cursor of the next page. */
export const pageOf = <T,>(items: readonly T[], hasMore: boolean, idOf: (item: T) => number): Page<T> => {
  const last = items[items.length - 1];
  return { items, next: hasMore && last !== undefined ? idOf(last) : null };
};

type LoadPage<T> = (cursor: string | number | undefined) => Promise<Result<Page<T>>>;

/** Pages that were read later, and the list that they continue. They do not belong to any other list. */
interface Later<T> extends Page<T> {
  readonly after: Page<T>;
}

/** A list with more pages than this is no longer refreshed on a timer. */
const MAX_REFRESHED_PAGES = 10;

/**
 * A list that is read page by page. A reload reads as many pages as are shown. So no entry disappears while a person reads it,
 * and no entry is missing between two pages.
 */
export function usePages<T>(key: string, load: LoadPage<T>, everyMs?: number): Pages<T> {
  const shown = useRef({ key, pages: 1 });
  if (shown.current.key !== key) shown.current = { key, pages: 1 };
  const later = useSignal<Later<T> | null>(null);
  const laterFailure = useSignal<Failure | null>(null);
  const first = useLoad(key, () => readPages(load, shown.current.pages), {
    everyMs: shown.current.pages > MAX_REFRESHED_PAGES ? undefined : everyMs,
    keepsOld: true,
  });
  const newest = useRef(first.data);
  newest.current = first.data;
  useEffect(() => {
    laterFailure.value = null;
  }, [key]);
  const added = later.value !== null && later.value.after === first.data ? later.value : null;
  const last = added ?? first.data;
  const more = async (): Promise<void> => {
    const { data: after } = first;
    const { current } = shown;
    if (after === null || last === null || last.next === null) return;
    current.pages += 1;
    const result = await load(last.next);
    if (shown.current !== current) return;
    laterFailure.value = result.ok ? null : result;
    if (!result.ok) current.pages -= 1;
    else if (newest.current !== after) await first.reload();
    else later.value = { after, items: [...(added?.items ?? []), ...result.reply.items], next: result.reply.next };
  };
  return {
    data: first.data === null ? null : [...first.data.items, ...(added?.items ?? [])],
    failure: first.failure ?? laterFailure.value,
    isOld: first.isOld,
    reload: first.reload,
    // A cursor of the old list has no meaning in the new one.
    hasMore: last !== null && last.next !== null && !first.isOld,
    more,
    retry: first.failure === null && laterFailure.value !== null ? more : first.reload,
  };
}

async function readPages<T>(load: LoadPage<T>, pages: number): Promise<Result<Page<T>>> {
  const items: T[] = [];
  let cursor: string | number | undefined;
  for (let page = 1; ; page += 1) {
    const result = await load(cursor);
    if (!result.ok) return result;
    const { next } = result.reply;
    items.push(...result.reply.items);
    if (next === null || page >= pages) return { ...result, reply: { items, next } };
    cursor = next;
  }
}

/** Entries of one request for `allPages`: the most that the service sends. */
export const LARGEST_PAGE = 500;
/** How many entries a selection or a name look-up reads: more than a chain has, and a browser can still show them. */
export const MAX_CHOICES = 20_000;
/** Whether `allPages` has left out the newest entries. The section then shows that. */
export const isCut = (items: readonly unknown[]): boolean => items.length > MAX_CHOICES;

/** All pages of a list, for selections. */
export async function allPages<T>(load: LoadPage<T>): Promise<Result<readonly T[]>> {
  const items: T[] = [];
  let cursor: string | number | undefined;
  for (;;) {
    const result = await load(cursor);
    if (!result.ok) return result;
    items.push(...result.reply.items);
    if (result.reply.next === null || isCut(items)) return { ...result, reply: items };
    cursor = result.reply.next;
  }
}

interface LoadedViewProps<T> {
  /** `retry` is for the failure of a later page; without it a new attempt reads the view again. */
  readonly of: Loading<T> & { readonly retry?: () => Promise<void> };
  readonly children: (data: T) => ComponentChildren;
}

/** The loaded data, or a placeholder before the first load; an error is shown above. */
export function LoadedView<T>({ of, children }: LoadedViewProps<T>) {
  const { data, failure, isOld, reload, retry = reload } = of;
  return (
    <div class={isOld ? "stack busy" : "stack"} aria-busy={isOld}>
      {failure !== null && <FailureNotice failure={failure} onRetry={retry} />}
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

/** A list with its empty, loading and error states and a button for the next page. */
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
