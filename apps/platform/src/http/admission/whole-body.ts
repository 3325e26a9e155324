// The body of a call, read before the call's turn: a caller that sends it a byte at a time, or never, holds no place that others wait for.
import type { IncomingMessage } from 'node:http';
import { LIMITS } from '../../limits.ts';

/** Where the listener of hono looks for a body that was read already. */
type Read = IncomingMessage & { rawBody?: Buffer };

/** false: it broke off. Of a body that is too long no more is read than shows it; the app refuses it. */
export const wholeBody = (request: Read): boolean | Promise<boolean> => {
  if (!isReadHere(request)) return true;
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (isThere: boolean): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      if (isThere) request.rawBody = Buffer.concat(chunks);
      resolve(isThere);
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes <= LIMITS.BODY_MAX_BYTES) return;
      request.pause();
      settle(true);
    };
    const onEnd = (): void => settle(true);
    const onClose = (): void => settle(false);
    request.on('data', onData).on('end', onEnd).on('close', onClose);
    if (request.destroyed) settle(request.readableEnded);
  });
};

/** The app reads no body of GET and HEAD, and refuses one that is too long by its length alone. */
const isReadHere = ({ method, headers }: IncomingMessage): boolean => {
  if (method === 'GET' || method === 'HEAD') return false;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = Number(headers['content-length'] ?? 0);
  return length > 0 && length <= LIMITS.BODY_MAX_BYTES;
};
