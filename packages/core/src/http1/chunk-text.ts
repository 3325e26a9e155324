// Writes the lines around chunks, for a body that came without them (HTTP/2, a replay).
import { isFieldValue, isToken } from './char-classes.ts';

/** Before `bytes` bytes of data; `CHUNK_END` follows them. Never for an empty piece: a chunk of size 0 ends the body. */
export const chunkLine = (bytes: number): string => `${bytes.toString(16)}\r\n`;

export const CHUNK_END = '\r\n';

/** The end of the body. A field that cannot be written without breaking the line is left out. */
export const lastChunk = (trailers: Iterable<readonly [name: string, value: string]> = []): string => {
  let text = '0\r\n';
  for (const [name, value] of trailers) {
    if (isToken(name) && isFieldValue(value)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
};
