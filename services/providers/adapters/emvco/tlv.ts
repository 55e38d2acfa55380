/** The data objects of an EMVCo QR code: two digits of id, two of length, the value. */

/** The longest value: its length has two digits. */
export const TLV_VALUE_CHARACTERS = 99;

const ID = /^\d{2}$/;
/** Printable ASCII: there a character is a byte, so every reader counts the same length. */
const VALUE = /^[\x20-\x7e]*$/;

/** One data object. Throws `RangeError` for what cannot be written. */
export function tlv(id: string, value: string): string {
  if (!ID.test(id)) throw new RangeError(`"${id}" is no id of a data object.`);
  if (value.length === 0 || value.length > TLV_VALUE_CHARACTERS) {
    throw new RangeError(
      `The data object ${id} has ${value.length} characters; it may have 1 to ${TLV_VALUE_CHARACTERS}.`,
    );
  }
  if (!VALUE.test(value)) throw new RangeError(`The data object ${id} holds a character that is not printable ASCII.`);
  return `${id}${String(value.length).padStart(2, "0")}${value}`;
}

/** A data object that consists of data objects. */
export function template(id: string, objects: readonly string[]): string {
  return tlv(id, objects.join(""));
}
