// Reads the response to an upgrade request from a socket: bounded, strict, and without consuming bytes after the head.
import type { Socket } from 'node:net';

/** Maximum size of the edge's response head when a connection is upgraded to a carrier. */
const CARRIER_UPGRADE_HEAD_MAX_BYTES = 8 * 1024;

export interface UpgradeHead {
  readonly status: number;
  /** Header fields of the upgrade response. Names are in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Bytes after the response head. They belong to the upgraded protocol. */
  readonly rest: Buffer;
}

const END = Buffer.from('\r\n\r\n', 'latin1');
const STATUS_LINE = /^HTTP\/1\.1 (\d{3})(?: [\x20-\x7e]*)?$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t]*?)[ \t]*$/;

/**
 * Reads the response head and leaves the socket paused. Rejects if the socket ends early, the head is too long, or the data is not HTTP.
 */
export const readUpgradeHead = (socket: Socket, signal: AbortSignal): Promise<UpgradeHead> =>
  new Promise((resolve, reject) => {
    let seen: Buffer = Buffer.alloc(0);
    const settle = (): void => {
      socket.pause();
      socket.off('data', onData).off('error', fail).off('close', onClose).off('end', onClose);
      signal.removeEventListener('abort', onAbort);
    };
    const fail = (error: Error): void => {
      settle();
      socket.on('error', () => {});
      socket.destroy();
      reject(error);
    };
    const onClose = (): void => fail(new Error('the connection was closed during the upgrade'));
    const onAbort = (): void => fail(signal.reason as Error);
    const onData = (chunk: Buffer): void => {
      const searchFrom = Math.max(0, seen.length - END.length + 1);
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const end = seen.indexOf(END, searchFrom);
      if (end < 0 ? seen.length > CARRIER_UPGRADE_HEAD_MAX_BYTES : end > CARRIER_UPGRADE_HEAD_MAX_BYTES) {
        return fail(new Error('the upgrade response is too long'));
      }
      if (end < 0) return;
      const head = parseHead(seen.toString('latin1', 0, end));
      if (head === null) return fail(new Error('the upgrade response is not HTTP'));
      settle();
      resolve({ ...head, rest: seen.subarray(end + END.length) });
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('data', onData).on('error', fail).on('close', onClose).on('end', onClose);
  });

const parseHead = (text: string): { status: number; headers: Map<string, string> } | null => {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = STATUS_LINE.exec(statusLine)?.[1];
  if (status === undefined) return null;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    headers.set(name.toLowerCase(), value);
  }
  return { status: Number(status), headers };
};
