/** A table. On a phone each row is a block with its titles beside its values, so that nothing is outside the screen. */
import type { ComponentChildren } from "preact";

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface TableProps<T> {
  /** Screen readers read it. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string | number;
}

const isEmpty = (content: ComponentChildren): boolean =>
  content === "" || content === false || content === null || content === undefined;

export function Table<T>({ caption, columns, rows, keyOf }: TableProps<T>) {
  const classOf = ({ isNumber }: Column<T>): string => (isNumber === true ? "cell-number" : "");
  return (
    // Focusable, so that it scrolls by keyboard too.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div class="table-frame" role="region" aria-label={caption} tabIndex={0}>
      <table class="table table-rows">
        <caption class="for-readers">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => {
                const content = column.cell(row);
                const className = `${classOf(column)} ${isEmpty(content) ? "cell-empty" : ""}`;
                return (
                  <td key={column.title} class={className} data-title={column.title}>
                    <div class="cell">{content}</div>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
