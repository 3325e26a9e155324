// The ad-hoc signature of a Mach-O file: hashes of the file's pages, which name no person or company. macOS starts no unsigned file on an Apple
// processor. The layout is that of the linker: a load command in the header, and the signature at the end of the segment __LINKEDIT.
import { createHash } from 'node:crypto';

const HEADER_BYTES = 32;
const LC_SEGMENT_64 = 0x19;
const LC_CODE_SIGNATURE = 0x1d;
const COMMAND_BYTES = 16;
const SIGNATURE_MAGIC = 0xfade0cc0;
const DIRECTORY_MAGIC = 0xfade0c02;
/** The index of the signature, with a single entry. */
const INDEX_BYTES = 20;
const DIRECTORY_BYTES = 88;
const PAGE_BYTES = 4096;
const HASH_BYTES = 32;
/** Ad hoc, and made without the program codesign, so that codesign replaces the signature without being told to. */
const FLAGS = 0x20002;
const MAIN_EXECUTABLE = 1n;
/** Segments of a process begin at pages of 16 KiB on Apple processors. */
const SEGMENT_ALIGNMENT = 0x4000n;

/** The load commands of a 64-bit Mach-O file: { command, at, size }. */
export function machOCommands(bytes) {
  const commands = [];
  let at = HEADER_BYTES;
  for (let left = bytes.readUInt32LE(16); left > 0; left -= 1) {
    const size = bytes.readUInt32LE(at + 4);
    commands.push({ command: bytes.readUInt32LE(at), at, size });
    at += size;
  }
  return commands;
}

const segmentNamed = (bytes, commands, name) =>
  commands.find(
    ({ command, at }) =>
      command === LC_SEGMENT_64 && bytes.toString('latin1', at + 8, at + 24).replace(/\0+$/, '') === name,
  );

/** Returns the signed file. `bytes` is an unsigned file. */
export function signAdHoc(bytes, identifier) {
  const codeBytes = Math.ceil(bytes.length / 16) * 16;
  const pages = Math.ceil(codeBytes / PAGE_BYTES);
  const hashesAt = DIRECTORY_BYTES + identifier.length + 1;
  const directoryBytes = hashesAt + pages * HASH_BYTES;
  const signed = Buffer.alloc(codeBytes + INDEX_BYTES + directoryBytes);
  bytes.copy(signed);
  const text = addCommand(signed, codeBytes);
  const write32 = (values, at) => values.forEach((value, index) => signed.writeUInt32BE(value, at + index * 4));
  write32([SIGNATURE_MAGIC, INDEX_BYTES + directoryBytes, 1, 0, INDEX_BYTES], codeBytes);
  const at = codeBytes + INDEX_BYTES;
  const version = 0x20400;
  write32([DIRECTORY_MAGIC, directoryBytes, version, FLAGS, hashesAt, DIRECTORY_BYTES, 0, pages, codeBytes], at);
  // Size and type of a hash (SHA-256), an unused byte, and the binary logarithm of the size of a page.
  signed.set([HASH_BYTES, 2, 0, 12], at + 36);
  signed.writeBigUInt64BE(text.offset, at + 64);
  signed.writeBigUInt64BE(text.size, at + 72);
  signed.writeBigUInt64BE(MAIN_EXECUTABLE, at + 80);
  signed.write(identifier, at + DIRECTORY_BYTES, 'latin1');
  pageHashes(signed, codeBytes).forEach((hash, index) => hash.copy(signed, at + hashesAt + index * HASH_BYTES));
  return signed;
}

/** Adds the load command of the signature, and makes the segment __LINKEDIT longer. Returns offset and size of the segment __TEXT. */
function addCommand(signed, codeBytes) {
  const commands = machOCommands(signed);
  if (commands.some(({ command }) => command === LC_CODE_SIGNATURE))
    throw new Error('the file has a signature already');
  const last = commands.at(-1);
  const free = last.at + last.size;
  if (!signed.subarray(free, free + COMMAND_BYTES).equals(Buffer.alloc(COMMAND_BYTES)))
    throw new Error('the header has no space for a signature');
  const linkEdit = segmentNamed(signed, commands, '__LINKEDIT');
  const text = segmentNamed(signed, commands, '__TEXT');
  [LC_CODE_SIGNATURE, COMMAND_BYTES, codeBytes, signed.length - codeBytes].forEach((value, index) =>
    signed.writeUInt32LE(value, free + index * 4),
  );
  signed.writeUInt32LE(commands.length + 1, 16);
  signed.writeUInt32LE(signed.readUInt32LE(20) + COMMAND_BYTES, 20);
  const size = BigInt(signed.length) - signed.readBigUInt64LE(linkEdit.at + 40);
  signed.writeBigUInt64LE(((size + SEGMENT_ALIGNMENT - 1n) / SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT, linkEdit.at + 32);
  signed.writeBigUInt64LE(size, linkEdit.at + 48);
  return { offset: signed.readBigUInt64LE(text.at + 40), size: signed.readBigUInt64LE(text.at + 48) };
}

const pageHashes = (bytes, codeBytes) =>
  Array.from({ length: Math.ceil(codeBytes / PAGE_BYTES) }, (_, index) => {
    const page = bytes.subarray(index * PAGE_BYTES, Math.min((index + 1) * PAGE_BYTES, codeBytes));
    return createHash('sha256').update(page).digest();
  });

/** Complaints about the signature of a Mach-O file; an empty list if the file has an ad-hoc signature that fits every page. */
export function signatureComplaints(bytes) {
  const command = machOCommands(bytes).find((one) => one.command === LC_CODE_SIGNATURE);
  if (command === undefined) return ['no signature'];
  const start = bytes.readUInt32LE(command.at + 8);
  if (start + bytes.readUInt32LE(command.at + 12) !== bytes.length) return ['the signature does not end the file'];
  const index = Array.from({ length: bytes.readUInt32BE(start + 8) }, (_, at) =>
    bytes.readUInt32BE(start + 16 + at * 8),
  );
  const at = index.map((offset) => start + offset).find((one) => bytes.readUInt32BE(one) === DIRECTORY_MAGIC);
  if (at === undefined || (bytes.readUInt32BE(at + 12) & 2) === 0) return ['no ad-hoc signature'];
  if (bytes.readUInt32BE(at + 32) !== start) return ['the signature covers a part of the file only'];
  const hashesAt = at + bytes.readUInt32BE(at + 16);
  const wrong = pageHashes(bytes, start).findIndex(
    (hash, page) => !hash.equals(bytes.subarray(hashesAt + page * HASH_BYTES, hashesAt + (page + 1) * HASH_BYTES)),
  );
  return wrong === -1 ? [] : [`the signature does not fit page ${wrong}`];
}
