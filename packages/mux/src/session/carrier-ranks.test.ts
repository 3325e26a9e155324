import { FRAME, type StreamReason } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { carrierPair, eventually, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Carrier } from '../carrier/carrier.ts';
import type { DatagramStream } from '../datagram/datagram-stream.ts';
import { MemoryBudget } from '../stream/flow-control.ts';
import type { MuxStream } from '../stream/mux-stream.ts';
import { MuxSession } from './mux-session.ts';

const HEAD = { tunnelId: 'peer', visitor: '127.0.0.1:1' };
const BYE = { code: 'cancelled', text: 'test is over' } as const;

let one: MuxSession;
let other: MuxSession;

beforeEach(() => {
  const common = { budget: new MemoryBudget(1 << 30), clock: systemClock, capabilities: ['datagram'] };
  const handlers = {
    onStream: (stream: MuxStream) => stream.accept(),
    onDatagramStream: (stream: DatagramStream) => stream.accept(),
    onCarrierLost: () => {},
    report: rethrow,
  };
  one = new MuxSession({ role: 'client', ...common, handlers });
  other = new MuxSession({ role: 'edge', ...common, handlers });
});

afterEach(() => {
  one.close(BYE);
  other.close(BYE);
});

let opens: Carrier[] = [];
let isOpened = false;

const add = async (rank: number): Promise<Carrier> => {
  const [accepted, dialled] = await carrierPair('plain');
  const send = dialled.send.bind(dialled);
  dialled.send = (frame, length) => {
    if (frame[0] === FRAME.OPEN) opens.push(dialled);
    send(frame, length);
  };
  other.addCarrier(accepted, rank);
  one.addCarrier(dialled, rank);
  return dialled;
};

/** Returns the index of the carrier with the OPEN frame. Byte counts would not tell, because pings pass on every carrier. */
const opensOn = async (carriers: readonly Carrier[], open: () => unknown): Promise<number> => {
  [opens, isOpened] = [[], false];
  expect(open()).not.toBeNull();
  expect(opens).toHaveLength(1);
  await eventually(() => expect(isOpened).toBe(true));
  return carriers.indexOf(opens[0]!);
};

const answer = {
  onOpened: () => {
    isOpened = true;
  },
  onRefused: (reason: StreamReason) => rethrow(reason),
  abandon: rethrow,
};
const openStream = (): unknown => one.open(HEAD, answer);
const openFlow = (): unknown => one.openDatagrams(HEAD, { ...answer, onRefused: () => {} });

describe('carriers of two ranks', () => {
  it('new streams use the higher carrier, however busy, and the lower one when it is lost', async () => {
    const carriers = [await add(0), await add(1)] as const;
    for (let i = 0; i < 5; i += 1) expect(await opensOn(carriers, openStream)).toBe(1);
    carriers[1].destroy('cut');
    expect(await opensOn(carriers, openStream)).toBe(0);
  });

  it('a stream opened on the lower carrier stays there', async () => {
    const lower = await add(0);
    let opened: MuxStream | null = null;
    one.open(HEAD, { onOpened: (stream) => (opened = stream), onRefused: () => {}, abandon: rethrow });
    await eventually(() => expect(opened).not.toBeNull());
    const higher = await add(1);
    await eventually(() => expect(higher.queuedBytes).toBe(0));
    const before = lower.bytesSent;
    (opened as MuxStream | null)?.write(Buffer.alloc(1000), 0, 1000, false);
    await eventually(() => expect(lower.bytesSent).toBeGreaterThan(before + 1000));
  });

  it('new flows use the higher carrier as soon as it exists', async () => {
    const lower = await add(0);
    expect(await opensOn([lower], openFlow)).toBe(0);
    const carriers = [lower, await add(1)] as const;
    expect(await opensOn(carriers, openFlow)).toBe(1);
    carriers[1].destroy('cut');
    expect(await opensOn(carriers, openFlow)).toBe(0);
  });
});
