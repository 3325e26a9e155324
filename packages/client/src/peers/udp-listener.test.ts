import { createSocket } from 'node:dgram';
import type { DatagramStream } from '@tunnel/mux';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { CLIENT_LIMITS } from '../limits.ts';
import { Traffic } from '../local/traffic.ts';
import type { StreamOpener } from './tcp-listener.ts';
import { openUdpListener, PEER_FLOW_IDLE_MS } from './udp-listener.ts';

it('the stream of a sender that is silent for a minute is closed', async () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const stream = {
    state: 'open',
    isRetiring: false,
    read: () => {},
    send: () => seen.push('sent') && 'sent',
    reset: ({ text }: { text: string }) => seen.push(text),
  } as unknown as DatagramStream;
  const opener = { openDatagrams: () => stream } as unknown as StreamOpener;
  const deps = { clock, report: rethrow, traffic: new Traffic(), beginServing: () => () => {} };
  const listener = await openUdpListener({ host: '127.0.0.1', port: 0 }, opener, deps);
  const sender = createSocket('udp4');
  sender.send('hello', listener.address.port, '127.0.0.1');
  await eventually(() => expect(seen).toEqual(['sent']));
  await clock.advance(PEER_FLOW_IDLE_MS - CLIENT_LIMITS.CLIENT_TICK_MS);
  expect(seen).toEqual(['sent']);
  await clock.advance(2 * CLIENT_LIMITS.CLIENT_TICK_MS);
  expect(seen).toEqual(['sent', 'the flow has ended']);
  sender.close();
  listener.close();
});
