import { MemoryNetwork } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { peerTransportConformance } from './peer-transport.conformance.ts';
import { loadUdxTransport } from './udx-transport.ts';

describe('the udx transport', () => {
  peerTransportConformance(async () => {
    const transport = await loadUdxTransport();
    if (transport === null) throw new Error('udx-native has a build for every machine that runs these tests');
    const machine = { transport, host: '127.0.0.1' };
    return { machines: [machine, machine] };
  });

  it('is loaded once', async () => {
    expect(await loadUdxTransport()).toBe(await loadUdxTransport());
  });
});

describe('the in-memory transport', () => {
  peerTransportConformance(async () => {
    const network = new MemoryNetwork();
    return {
      machines: [
        { transport: network.transport('10.0.0.1'), host: '10.0.0.1' },
        { transport: network.transport('10.0.0.2'), host: '10.0.0.2' },
      ],
    };
  });
});
