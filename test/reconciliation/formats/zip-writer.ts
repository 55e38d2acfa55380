/** Writes zip archives for the tests, also invalid ones. */
import { crc32, deflateRawSync } from "node:zlib";

export interface ZippedFile {
  readonly name: string;
  readonly content: Buffer | string;
  /** Stored instead of deflated. */
  readonly isStored?: boolean;
  readonly isEncrypted?: boolean;
  /** Sizes and checksum are written after the data, as programs that stream do; the local header has zeros. */
  readonly hasDescriptor?: boolean;
  /** False values for the directory. */
  readonly claimedSize?: number;
  readonly claimedChecksum?: number;
  readonly method?: number;
  /** The entry points at the data of the file with this index. */
  readonly sameDataAs?: number;
}

export function zipOf(files: readonly ZippedFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  const offsets: number[] = [];
  let offset = 0;
  for (const file of files) {
    const content = Buffer.from(file.content);
    const data = file.isStored ? content : deflateRawSync(content);
    const name = Buffer.from(file.name);
    const fields = fieldsOf(file, content, data, name);
    const at = file.sameDataAs === undefined ? offset : (offsets[file.sameDataAs] ?? 0);
    offsets.push(at);
    directory.push(Buffer.concat([signature(0x02014b50), u16(20), fields, Buffer.alloc(10), u32(at), name]));
    if (file.sameDataAs !== undefined) continue;
    const local = file.hasDescriptor
      ? Buffer.concat([fields.subarray(0, 10), Buffer.alloc(12), fields.subarray(22)])
      : fields;
    const descriptor = file.hasDescriptor
      ? Buffer.concat([signature(0x08074b50), fields.subarray(10, 22)])
      : Buffer.alloc(0);
    const whole = Buffer.concat([signature(0x04034b50), local, name, data, descriptor]);
    parts.push(whole);
    offset += whole.length;
  }
  const central = Buffer.concat(directory);
  const end = [
    signature(0x06054b50),
    u32(0),
    u16(files.length),
    u16(files.length),
    u32(central.length),
    u32(offset),
    u16(0),
  ];
  return Buffer.concat([...parts, central, ...end]);
}

/** The fields that the local header and the directory both have, from "version needed" to the length of the extra field. */
function fieldsOf(file: ZippedFile, content: Buffer, data: Buffer, name: Buffer): Buffer {
  const flags = (file.isEncrypted ? 1 : 0) | (file.hasDescriptor ? 8 : 0) | 0x800;
  const method = file.method ?? (file.isStored ? 0 : 8);
  const size = file.claimedSize ?? content.length;
  const checksum = file.claimedChecksum ?? crc32(content);
  return Buffer.concat([
    u16(20),
    u16(flags),
    u16(method),
    u32(0),
    u32(checksum),
    u32(data.length),
    u32(size),
    u16(name.length),
    u16(0),
  ]);
}

const signature = u32;

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
