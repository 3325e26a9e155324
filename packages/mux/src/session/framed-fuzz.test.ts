// Random frames of a peer in any order: nothing throws, a violation ends the session, and no stream or memory is left.

import {
  CAPABILITIES,
  encodeCredit,
  encodeFin,
  encodeOpen,
  encodePing,
  encodeReason,
  encodeSeen,
  FRAME,
  WIRE_LIMITS,
  writeFrameHeader,
} from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Carrier, CarrierReceiver } from '../carrier/carrier.ts';
import type { DatagramStream } from '../datagram/datagram-stream.ts';
import { MemoryBudget } from '../stream/flow-control.ts';
import type { MuxStream } from '../stream/mux-stream.ts';
import { MuxSession } from './mux-session.ts';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
const HEAD = { tunnelId: 't', visitor: 'v' };
const REASON = { code: 'cancelled', text: '' } as const;

/** A test carrier that accepts every frame, and counts the bytes as a peer would. */
class CountingCarrier implements Carrier {
  readonly kind = 'plain';
  readonly readPath = 'chunk' as Carrier['readPath'];
  readonly queuedBytes = 0;
  bytesSent = 0;
  datagramBytes = 0;
  receiver: CarrierReceiver | null = null;
  isOpen = true;

  start(receiver: CarrierReceiver): void {
    this.receiver = receiver;
  }

  send(frame: Uint8Array, length = frame.length): void {
    this.bytesSent += length;
  }

  sendData(): boolean {
    return true;
  }

  sendDatagram(_streamId: number, _bytes: Buffer, start: number, end: number): boolean {
    this.datagramBytes += HEADER + end - start;
    return true;
  }

  isFull(): boolean {
    return false;
  }

  end(): void {
    this.isOpen = false;
  }

  destroy(): void {
    this.isOpen = false;
  }
}

const withPayload = (type: typeof FRAME.DATA | typeof FRAME.DATAGRAM, id: number, size: number): Uint8Array => {
  const frame = new Uint8Array(HEADER + size);
  writeFrameHeader(frame, 0, type, size, id);
  return frame;
};

/** Only a few stream ids and numbers, so that collisions are frequent. */
const id = fc.integer({ min: 1, max: 9 });
const frame: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.tuple(id, fc.nat(8)).map(([streamId, flow]) => encodeOpen(streamId, { ...HEAD, flow }, 0)),
  id.map((streamId) => encodeOpen(streamId, HEAD, 1000)),
  fc.tuple(id, fc.nat(2000)).map(([streamId, size]) => withPayload(FRAME.DATAGRAM, streamId, size)),
  fc.tuple(id, fc.nat(50)).map(([streamId, size]) => withPayload(FRAME.DATA, streamId, size)),
  fc.tuple(id, fc.constantFrom(0, 1000)).map(([streamId, bytes]) => encodeCredit(FRAME.OPENED, streamId, bytes)),
  fc.tuple(id, fc.constantFrom(0, 1000)).map(([streamId, bytes]) => encodeCredit(FRAME.WINDOW, streamId, bytes)),
  id.map(encodeFin),
  id.map((streamId) => encodeReason(FRAME.RESET, streamId, REASON)),
  id.map((streamId) => encodeReason(FRAME.REFUSED, streamId, REASON)),
  fc.nat(200).map(encodeSeen),
  fc.constant(encodePing(FRAME.PING, new Uint8Array(8))),
  fc.constant(encodeReason(FRAME.GO_AWAY, 0, REASON)),
);

/** Actions of our own side between frames, and valid actions of a peer, without which most frames would be rejected early. */
const act = fc.constantFrom(
  ...['open', 'open-flow', 'send', 'reset', 'refuse-next', 'throw-next', 'tick'],
  ...['peer-opens', 'peer-opens-flow', 'peer-sends', 'peer-resets'],
);

const run = (
  role: 'edge' | 'client',
  capabilities: readonly string[],
  events: readonly (Uint8Array | string)[],
): void => {
  const reported: unknown[] = [];
  const streams: (MuxStream | DatagramStream)[] = [];
  let next = 'accept';
  let now = 0;
  const take = (stream: MuxStream | DatagramStream): void => {
    const how = next;
    next = 'accept';
    streams.push(stream);
    if (how === 'throw-next') throw new Error('on purpose');
    if (how === 'refuse-next') stream.refuse(REASON);
    else stream.accept();
  };
  const session = new MuxSession({
    role,
    budget: new MemoryBudget(1e9),
    clock: { ...systemClock, monotonic: () => now },
    capabilities,
    handlers: {
      onStream: take,
      onDatagramStream: take,
      onCarrierLost: () => {},
      report: (error) => reported.push(error),
    },
  });
  const carrier = new CountingCarrier();
  session.addCarrier(carrier);
  const quiet = { onOpened: () => {}, onRefused: () => {}, abandon: (error: unknown) => reported.push(error) };
  const hear = (bytes: Uint8Array): unknown => carrier.receiver?.onBytes(Buffer.from(bytes), 0, bytes.length, false);
  let peerId = role === 'edge' ? -1 : 0;
  const acts: Readonly<Record<string, () => unknown>> = {
    open: () => session.open(HEAD, quiet),
    'open-flow': () => {
      const flow = session.openDatagrams(HEAD, quiet);
      if (flow !== null) streams.push(flow);
    },
    send: () => {
      for (const stream of streams) if ('flow' in stream) stream.send(Buffer.alloc(20), 0, 20);
    },
    'peer-opens': () => hear(encodeOpen((peerId += 2), HEAD, 1000)),
    'peer-opens-flow': () => hear(encodeOpen((peerId += 2), { ...HEAD, flow: peerId }, 0)),
    'peer-sends': () => hear(withPayload(FRAME.DATAGRAM, Math.max(peerId, 1), 30)),
    'peer-resets': () => hear(encodeReason(FRAME.RESET, Math.max(peerId, 1), REASON)),
    reset: () => streams.at(-1)?.reset(REASON),
    tick: () => session.tick((now += 500)),
  };
  for (const event of events) {
    if (typeof event !== 'string') hear(event);
    else if (acts[event] === undefined) next = event;
    else acts[event]();
  }
  expect(reported.filter((error) => String(error) !== 'Error: on purpose')).toEqual([]);
  expect(session.byteStreams).toBeGreaterThanOrEqual(0);
  session.close(REASON);
  expect([session.liveStreams, session.flows?.size ?? 0, session.budget.committedBytes]).toEqual([0, 0, 0]);
  expect(carrier.isOpen).toBe(false);
};

it.each([
  ['edge', CAPABILITIES],
  ['client', CAPABILITIES],
  ['client', []],
] as const)('the %s session with capabilities %j survives random frames in any order', (role, capabilities) => {
  const events = fc.array(fc.oneof({ weight: 1, arbitrary: frame }, { weight: 6, arbitrary: act }), { maxLength: 40 });
  fc.assert(
    fc.property(events, (list) => run(role, capabilities, list)),
    { numRuns: 400 },
  );
});
