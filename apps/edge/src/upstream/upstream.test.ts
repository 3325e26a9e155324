import { createCarrier } from '@tunnel/mux';
import { CAPABILITIES } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, sessionPair, socketPair } from '@tunnel/testkit';
import { expect } from 'vitest';
import { type ClientUpstreamUnderTest, clientUpstreamConformance } from './upstream.conformance.ts';
import { MuxUpstream } from './upstream.ts';

for (const kind of ['plain', 'tls'] as const) {
  clientUpstreamConformance(`of a session, ${kind}`, async () => {
    let passedMs = 0;
    const now = (): number => performance.now() + passedMs;
    const set: Pick<ClientUpstreamUnderTest, 'onStream' | 'onFlow'> = { onStream: () => {}, onFlow: () => {} };
    const pair = await sessionPair({
      kind,
      carriers: 1,
      clock: { ...systemClock, monotonic: now },
      capabilities: CAPABILITIES,
      client: {
        onStream: (stream, head) => set.onStream(stream, head),
        onDatagramStream: (stream, head) => set.onFlow(stream, head),
      },
    });
    const upstream = new MuxUpstream(pair.edge);
    const own = {
      upstream,
      get liveStreams() {
        return pair.edge.liveStreams;
      },
      loseCarriers: async () => {
        for (const carrier of pair.carriers) carrier.destroy('cut');
        await eventually(() => expect([pair.edge.liveCarriers, pair.client.liveCarriers]).toEqual([0, 0]));
      },
      addCarrier: async () => {
        const [edge, client] = await socketPair(kind);
        pair.client.addCarrier(createCarrier(client));
        pair.edge.addCarrier(createCarrier(edge));
      },
      goAway: async () => {
        upstream.mux = null;
        pair.edge.drain('control connection lost');
      },
      pass: async (ms: number) => {
        passedMs += ms;
        pair.edge.tick(now());
      },
      cleanUp: async () => pair.close(),
    };
    return Object.defineProperties(set, Object.getOwnPropertyDescriptors(own)) as ClientUpstreamUnderTest;
  });
}
