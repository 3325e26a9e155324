// Places where Node.js or the multiplexer calls a UDP port, with a fault raised below the call. The fault ends a single flow, and other
// flows continue.
import type { DatagramStream } from '@tunnel/mux';
import { eventually } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { allowFaults, hasThrown, throwAt } from '../../whole-edge/throw-at.fixture.ts';
import { echoing, refusing, UdpStage, type UdpStand, type Visitor } from './udp.fixture.ts';
import { UdpSocket } from './udp-socket.ts';

let forbidFaults: () => void;
beforeAll(() => {
  forbidFaults = allowFaults();
});
afterAll(() => {
  forbidFaults();
  binds.mockRestore();
});

const stage = new UdpStage();
afterEach(() => stage.clear());

let stand: UdpStand;
let port: number;
let bystander: Visitor;
let victim: Visitor;
let verdict: 'allow' | Promise<'allow'>;
const streams: DatagramStream[] = [];
const binds = vi.spyOn(UdpSocket, 'bind');
let isRefused = false;

beforeEach(async () => {
  binds.mockClear();
  streams.length = 0;
  isRefused = false;
  verdict = 'allow';
  stand = await stage.start({
    decide: () => verdict,
    onFlow: (stream, head) => {
      streams.push(stream);
      (isRefused ? refusing : echoing)(stream, head);
    },
  });
  port = await stand.open();
  [bystander, victim] = [await stand.visitor(port), await stand.visitor(port)];
  await bystander.echo('here');
});

const CALLS: readonly (readonly [where: string, act: () => Promise<void> | void])[] = [
  ['udp.message', () => victim.say('hello')],
  ['datagrams.opened', () => victim.say('hello')],
  ['datagrams.datagram', () => victim.say('hello')],
  [
    'datagrams.refused',
    () => {
      isRefused = true;
      victim.say('hello');
    },
  ],
  [
    'udp.decided',
    () => {
      verdict = Promise.resolve('allow');
      victim.say('hello');
    },
  ],
];

describe('a fault at', () => {
  it.each(CALLS)('%s ends its flow, which can start again, and no other flow', async (where, act) => {
    throwAt(where);
    await act();
    await eventually(() => expect(hasThrown()).toBe(true));
    await eventually(() => expect(stand.reported).toEqual([where]));
    await eventually(() => expect([stand.totals.flows, stand.counts.total]).toEqual([1, 1]));
    await bystander.echo('still');
    isRefused = false;
    verdict = 'allow';
    await victim.echo('again');
    expect(stand.reported).toEqual([where]);
  });

  it("'datagrams.reset' ends only the flow that the client closed", async () => {
    const where = 'datagrams.reset';
    await victim.echo('hello');
    throwAt(where);
    streams[1]?.reset({ code: 'cancelled', text: 'enough' });
    await eventually(() => expect(stand.reported).toEqual([where]));
    await eventually(() => expect(stand.totals.flows).toBe(1));
    await bystander.echo('still');
    await victim.echo('again');
  });

  it("'udp.tick' ends no flow", async () => {
    throwAt('udp.tick');
    await stand.clock.advance(1000);
    expect(stand.reported).toEqual(['udp.tick']);
    await bystander.echo('still');
    await stand.clock.advance(61_000);
    expect(stand.totals.flows).toBe(0);
  });

  it("'udp.error' ends no flow", async () => {
    throwAt('udp.error');
    const bound = (await binds.mock.results[0]?.value) as UdpSocket | undefined;
    bound?.socket.emit('error', new Error('no buffer space'));
    expect(stand.reported).toEqual(['udp.error']);
    await bystander.echo('still');
  });
});
