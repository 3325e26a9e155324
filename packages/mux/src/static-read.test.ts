// Which read path is active on the Node in use: a change inside Node must show here, not in a bill for CPU.
import { carrierPair, endPair, socketPair } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { adoptSocket, type SocketDuplex } from './socket-duplex.ts';
import { allowStaticReads } from './static-read.ts';

afterEach(() => allowStaticReads(true));

describe('static reads', () => {
  it('are active for accepted and for dialled sockets', async () => {
    const { a, b, close } = await endPair('socket');
    expect([(a as SocketDuplex).readPath, (b as SocketDuplex).readPath]).toEqual(['static', 'static']);
    close();
  });

  it.each(['plain', 'tls'] as const)('are active on both ends of a %s carrier', async (kind) => {
    const [accepted, dialled] = await carrierPair(kind);
    expect([accepted.readPath, dialled.readPath]).toEqual(['static', 'static']);
    accepted.destroy('');
    dialled.destroy('');
  });

  it('give way to ordinary reads where they are not to be had', async () => {
    allowStaticReads(false);
    const [accepted, dialled] = await socketPair('plain');
    expect(adoptSocket(accepted).readPath).toBe('fallback');
    dialled.destroy();
    accepted.destroy();
  });
});
