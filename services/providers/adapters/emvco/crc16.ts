/** CRC-16/CCITT-FALSE as EMVCo asks for it: polynomial 0x1021, start 0xFFFF, nothing reflected. */
const POLYNOMIAL = 0x1021;

/** Four upper-case hexadecimal digits over a text of ASCII characters. */
export function crc16(text: string): string {
  let crc = 0xffff;
  for (const byte of Buffer.from(text, "latin1")) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
    }
    crc &= 0xffff;
  }
  return crc.toString(16).toUpperCase().padStart(4, "0");
}
