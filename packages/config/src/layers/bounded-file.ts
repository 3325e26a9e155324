// Reads a file named by a user, up to a maximum size. A device has neither a size nor an end. A named pipe without a writer would block
// the whole process, and with it every tunnel of a client that reloads its files.
import { closeSync, openSync, readSync, statSync } from 'node:fs';

const PART_BYTES = 64 * 1024;

/**
 * Reads a file of at most `mostBytes` bytes. Throws the error of Node.js, or an Error with a readable reason. Rejects named pipes except
 * below /dev and /proc, where the pipes of shells are (`<(command)`).
 */
export const readBounded = (file: string, mostBytes: number): Buffer => {
  const tooLarge = (): Error => new Error(`it is larger than ${mostBytes} bytes`);
  const stats = statSync(file);
  if (stats.size > mostBytes) throw tooLarge();
  if (stats.isFIFO() && !/^\/(dev|proc)\//.test(file)) throw new Error('it is a pipe');
  const handle = openSync(file, 'r');
  try {
    const parts: Buffer[] = [];
    for (let bytes = 0; bytes <= mostBytes; ) {
      const part = Buffer.alloc(PART_BYTES);
      const read = readSync(handle, part);
      if (read === 0) return Buffer.concat(parts);
      parts.push(part.subarray(0, read));
      bytes += read;
    }
    throw tooLarge();
  } finally {
    closeSync(handle);
  }
};
