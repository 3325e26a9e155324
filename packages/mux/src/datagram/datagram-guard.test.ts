// Faults below every guard of the datagram code: a fault costs a single flow or carrier, and is reported once.

import { FRAME } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, type SessionPair, sessionPair, socketPair } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Carrier, createCarrier } from '../carrier/carrier.ts';
import type { DatagramAnswer, DatagramReader, DatagramStream } from './datagram-stream.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' };
const FAULT = new Error('raised on purpose');
const raise = (): never => {
  throw FAULT;
};
const BYE = { code: 'cancelled', text: '' } as const;

let pair: SessionPair;
let told: string[];
let reports: string[];
let accepted: DatagramStream[];
let onFlow: (stream: DatagramStream) => void;

const tell =
  (list: string[]) =>
  (error: unknown, where: string): void =>
    void list.push(error === FAULT ? where : String(error));

const reader = (method: keyof DatagramReader | null): DatagramReader => ({
  onDatagram: () => {},
  onReset: () => {},
  abandon: tell(told),
  ...(method === null ? {} : { [method]: raise }),
});

const answer = (method: keyof DatagramAnswer | null): DatagramAnswer => ({
  onOpened: () => {},
  onRefused: () => {},
  abandon: tell(told),
  ...(method === null ? {} : { [method]: raise }),
});

beforeEach(async () => {
  [told, reports, accepted] = [[], [], []];
  onFlow = (stream) => stream.accept();
  pair = await sessionPair({
    kind: 'plain',
    carriers: 2,
    capabilities: ['datagram'],
    clock: { ...systemClock, monotonic: () => 1000 },
    edge: { report: tell(reports) },
    client: {
      report: tell(reports),
      onDatagramStream: (stream) => {
        accepted.push(stream);
        onFlow(stream);
      },
    },
  });
});

afterEach(() => pair.close());

const open = async (): Promise<DatagramStream> => {
  const stream = pair.edge.openDatagrams(HEAD, answer(null)) as DatagramStream;
  await eventually(() => expect(stream.state).toBe('open'));
  return stream;
};

describe('a datagram flow', () => {
  it.each([
    ['onDatagram', 'datagrams.datagram', (far: DatagramStream) => far.send(Buffer.from('x'), 0, 1)],
    ['onReset', 'datagrams.reset', (far: DatagramStream) => far.reset(BYE)],
  ] as const)(
    'is reset when %s of its reader throws, while other flows and the carrier stay open',
    async (method, where, act) => {
      const neighbour = await open();
      neighbour.read(reader(null));
      const stream = await open();
      stream.read(reader(method));
      act(accepted[1] as DatagramStream);
      await eventually(() => expect(told).toEqual([where]));
      await eventually(() => expect([stream.state, accepted[1]?.state]).toEqual(['closed', 'closed']));
      expect([neighbour.state, pair.edge.liveCarriers, pair.edge.liveStreams, reports]).toEqual(['open', 2, 1, []]);
    },
  );

  it.each([
    ['onOpened', 'datagrams.opened'],
    ['onRefused', 'datagrams.refused'],
  ] as const)('affects no other flow when %s throws', async (method, where) => {
    if (method === 'onRefused') onFlow = (stream) => stream.refuse(BYE);
    pair.edge.openDatagrams(HEAD, answer(method));
    await eventually(() => expect(told).toEqual([where]));
    await eventually(() => expect([pair.edge.liveStreams, pair.client.liveStreams]).toEqual([0, 0]));
    expect([pair.edge.liveCarriers, pair.edge.flows?.size, reports]).toEqual([2, 0, []]);
  });

  it('is reported through its session when abandon() throws', async () => {
    const stream = await open();
    stream.read({ ...reader('onDatagram'), abandon: raise });
    accepted[0]?.send(Buffer.from('x'), 0, 1);
    await eventually(() => expect(reports).toEqual(['datagrams.datagram']));
    expect([stream.state, pair.edge.liveCarriers]).toEqual(['closed', 2]);
  });

  it('is reset when its reader throws for a datagram from the UDP path', async () => {
    const stream = await open();
    stream.read(reader('onDatagram'));
    expect(pair.edge.deliverDatagram(stream.flow, Buffer.from('x'), 0, 1)).toBe(true);
    expect([told, stream.state]).toEqual([['datagrams.datagram'], 'closed']);
  });
});

describe('a datagram carrier', () => {
  it('that throws while sending SEEN is closed alone, and the error is reported once', async () => {
    const [edge, client] = await socketPair('plain');
    const faulty: Carrier = createCarrier(client);
    const before = pair.client.openCarriers;
    pair.edge.addCarrier(createCarrier(edge));
    pair.client.addCarrier(faulty);
    // Closes the older carriers first, so that new flows use the faulty carrier; all carriers are equally empty.
    for (const carrier of pair.carriers) carrier.destroy('cut');
    await eventually(() => expect([pair.client.openCarriers, pair.edge.openCarriers]).toEqual([1, 1]));
    const stream = await open();
    const send = faulty.send.bind(faulty);
    let answers = 0;
    faulty.send = (frame) => {
      if (frame[0] === FRAME.SEEN) answers += 1;
      // The first SEEN frame is sent during the read, below the guard of reads. Later SEEN frames are sent by a timer, because the clock
      // stands still.
      if (answers > 1) raise();
      send(frame);
    };
    stream.send(Buffer.from('x'), 0, 1);
    await eventually(() => expect(answers).toBe(1));
    stream.send(Buffer.from('x'), 0, 1);
    await eventually(() => expect(reports).toEqual(['carrier.seen']));
    await eventually(() => expect([pair.client.openCarriers, pair.client.state, before]).toEqual([0, 'live', 2]));
  });
});
