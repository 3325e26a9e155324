// Opens files whose folder may contain anything: a pipe in place of a file must not make this process wait forever, and a link must not
// lead it to another file.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

export interface OpenOptions {
  /** Follows a symbolic link to a file. Without it, a link is an error. */
  readonly follows?: boolean;
  /** Largest size of the file. */
  readonly maxBytes?: number;
}

/** Opens a regular file for reading. Rejects for anything else, and for a file that is too large. */
export const openRegular = async (
  path: string,
  { follows = false, maxBytes = Number.POSITIVE_INFINITY }: OpenOptions = {},
): Promise<FileHandle> => {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | (follows ? 0 : constants.O_NOFOLLOW));
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    if (found.size > maxBytes) throw new Error(`${path} has ${found.size} bytes, more than the possible ${maxBytes}`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
};
