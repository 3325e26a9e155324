import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readUpgradeHead, type UpgradeHead } from './upgrade-head.ts';

const ANSWER = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade:  tunnel-carrier/1 \r\n\r\n';

const read = (chunks: readonly string[], end = false): Promise<UpgradeHead> => {
  const socket = new PassThrough();
  const head = readUpgradeHead(socket as unknown as Socket, new AbortController().signal);
  for (const chunk of chunks) socket.write(chunk, 'latin1');
  if (end) socket.end();
  return head;
};

describe('readUpgradeHead', () => {
  it('reads the response head and leaves the bytes behind it to the carrier', async () => {
    const head = await read([`${ANSWER}\u0000\u0001rest`]);
    expect(head.status).toBe(101);
    expect(head.headers.get('upgrade')).toBe('tunnel-carrier/1');
    expect(head.rest.toString('latin1')).toBe('\u0000\u0001rest');
  });

  it('reads the same head when it arrives byte by byte', async () => {
    const head = await read([...ANSWER, 'x']);
    expect(head.headers.get('upgrade')).toBe('tunnel-carrier/1');
    expect(head.rest.length).toBeLessThanOrEqual(1);
  });

  it.each([
    ['SSH-2.0-OpenSSH\r\n\r\n', 'not HTTP'],
    ['HTTP/1.0 101 OK\r\n\r\n', 'not HTTP'],
    ['HTTP/1.1 101 OK\nUpgrade: x\r\n\r\n', 'not HTTP'],
    ['HTTP/1.1 101 OK\r\nUpgrade : x\r\n\r\n', 'not HTTP'],
    ['HTTP/1.1 101 OK\r\nUpgrade: x\r\n folded\r\n\r\n', 'not HTTP'],
    [`HTTP/1.1 101 OK\r\nX: ${'a'.repeat(9000)}`, 'too long'],
    [`HTTP/1.1 101 OK\r\nX: ${'a'.repeat(9000)}\r\n\r\n`, 'too long'],
  ])('refuses %j', async (text, reason) => {
    await expect(read([text])).rejects.toThrow(reason);
  });

  it('fails when the connection ends before the head does', async () => {
    await expect(read(['HTTP/1.1 101'], true)).rejects.toThrow('closed during the upgrade');
  });

  it('fails with the reason of the abort signal', async () => {
    const abort = new AbortController();
    const head = readUpgradeHead(new PassThrough() as unknown as Socket, abort.signal);
    abort.abort(new Error('too late'));
    await expect(head).rejects.toThrow('too late');
  });
});
