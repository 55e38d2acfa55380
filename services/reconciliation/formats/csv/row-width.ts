/**
 * How many fields the rows of a file have. Some exporters end only the header with a delimiter, others only the rows: the
 * first row decides it for all other rows.
 */
export class RowWidth {
  readonly #columns: readonly string[];
  readonly #delimiter: string;
  #count: number | undefined;

  constructor(columns: readonly string[], delimiter: string) {
    this.#columns = columns;
    this.#delimiter = delimiter;
  }

  fits(fields: readonly string[]): boolean {
    this.#count ??= this.#counted(fields);
    if (fields.length !== (this.#count ?? this.#columns.length)) return false;
    return fields.length <= this.#columns.length || fields.at(-1)?.trim() === "";
  }

  /** Undefined when this row has another count for another reason. */
  #counted(fields: readonly string[]): number | undefined {
    const columns = this.#columns.length;
    if (fields.length === columns) return columns;
    if (fields.length === columns - 1 && this.#columns.at(-1)?.trim() === "") return fields.length;
    // An extra comma can also be a decimal comma, which would move all later fields to other columns.
    const isOneMore = fields.length === columns + 1 && this.#delimiter !== ",";
    return isOneMore && fields.at(-1)?.trim() === "" ? fields.length : undefined;
  }
}
