/**
 * The right path for a request whose path lacks its trailing slash. It is named in an error and never redirected to: a
 * client that follows a redirect may turn a POST into a GET. Only paths of the route table are named, with ids as digits,
 * so that nothing else of a request comes back in its answer.
 */

import { isPathId } from "./pipeline.ts";
import type { Route } from "./route.ts";

const ID = "{}";

export class MissingSlashes {
  readonly #shapes: ReadonlySet<string>;

  /** `hasKey`: without a platform key the platform's paths do not exist. */
  constructor(routes: readonly Route[], { hasKey }: { readonly hasKey: boolean }) {
    const served = routes.filter(({ path, who }) => path.endsWith("/") && (hasKey || who.kind !== "platform"));
    this.#shapes = new Set(served.map(({ path }) => path.replaceAll(/\{\w+\}/g, ID)));
  }

  /** Undefined when the path with a slash at its end is not in the route table either. */
  rightPath(path: string): string | undefined {
    if (path.includes(ID)) return undefined;
    const segments = path.split("/").map((segment) => (isPathId(segment) ? ID : segment));
    return this.#shapes.has(`${segments.join("/")}/`) ? `${path}/` : undefined;
  }
}
