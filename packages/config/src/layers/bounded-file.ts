// The bytes of a file that somebody named, and no more of them than it may have: a device has no size and no end, and a pipe that nobody writes to
// would be waited for without one, and with it every tunnel of a client that reads its files again.
import { closeSync, openSync, readSync, statSync } from 'node:fs';

const PART_BYTES = 64 * 1024;

/** Throws what Node throws, and an Error in words. What a shell hands over (`<(command)`) is a pipe, and is read. */
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
