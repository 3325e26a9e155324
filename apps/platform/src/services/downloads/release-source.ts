// Where `tunnel-server downloads fetch` reads a release: a folder, or the same files below a URL.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isLoopbackHost, problemOfAddress } from '@tunnel/rules/net';
import { type Clock, createGuardedFetch } from '@tunnel/runtime';

/** Time for one file from a URL, besides the time for its bytes. */
const ANSWER_SECS = 60;
/** The slowest connection on which a file arrives in time: 0.5 Mbit/s. */
const BYTES_PER_SEC = 62_500;
const PIECE_BYTES = 1024 * 1024;

export interface ReleaseSource {
  /** Passes a file in pieces. Rejects with the reason as the message, also for a file of more than `maxBytes`. */
  read(path: string, maxBytes: number, onPiece: (piece: Buffer) => Promise<void>): Promise<void>;
}

/** `from` is a URL or the path of a folder. Throws an Error with the reason if the URL is not allowed. */
export const openSource = (from: string, clock: Clock): ReleaseSource => {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(from)) return urlSource(from, clock);
  const folder = resolve(from);
  return { read: (path, maxBytes, onPiece) => readFile(join(folder, ...path.split('/')), maxBytes, onPiece) };
};

/** A pipe without a writer does not block. Windows has no such flag. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const readFile: ReleaseSource['read'] = async (path, maxBytes, onPiece) => {
  const handle = await open(path, OPEN_FLAGS).catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be opened (${error.code})`);
  });
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw new Error(`${path} is not a file`);
    if (found.size > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    let bytes = 0;
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, piece.length, null);
      if (bytesRead === 0) return;
      bytes += bytesRead;
      if (bytes > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
      await onPiece(piece.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
};

/**
 * The rules for URLs of operators: private addresses are allowed, because releases are often on a server of the same company; addresses of
 * cloud metadata are not. Plain http is for this machine only: elsewhere a stranger on the way could replace the files with their checksums.
 */
const urlSource = (from: string, clock: Clock): ReleaseSource => {
  if (!URL.canParse(from)) throw new Error('the URL is not valid');
  const base = new URL(from);
  const isClear = base.protocol === 'http:';
  if (base.protocol !== 'https:' && !isClear) throw new Error('the URL must begin with https://');
  if (isClear && !isLoopbackHost(base.hostname.replace(/^\[|\]$/g, ''))) {
    throw new Error('plain http is only possible for this machine; use an https URL');
  }
  if (base.search !== '' || base.hash !== '') throw new Error('the URL must have no query and no fragment');
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  const fetch = createGuardedFetch({
    clock,
    problemOfAddress: (address) =>
      isClear && !isLoopbackHost(address) ? 'not an address of this machine' : problemOfAddress(address, true),
  });
  return {
    read: async (path, maxBytes, onPiece) => {
      const timeoutMs = (ANSWER_SECS + Math.ceil(maxBytes / BYTES_PER_SEC)) * 1000;
      const answer = await fetch(new URL(path, base).href, { maxBytes, timeoutMs, onPiece });
      if (answer.kind !== 'answer') throw new Error(answer.reason);
      const { status } = answer;
      if (status >= 300 && status < 400) throw new Error('the server responds with a redirect; use the final URL');
      if (status !== 200) throw new Error(`the server responds with status ${status}`);
    },
  };
};
