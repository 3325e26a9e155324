// Protocol violations of a peer, frame by frame: the session closes with a clear reason and the process keeps running.

import type * as net from 'node:net';
import {
  encodeCredit,
  encodeFin,
  encodeOpen,
  encodePing,
  encodeReason,
  FRAME,
  WIRE_LIMITS,
  writeFrameHeader,
  writeUint32,
} from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, rethrow, socketPair } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ByteReader } from '../bytes/byte-duplex.ts';
import { createCarrier } from '../carrier/carrier.ts';
import { MUX_LIMITS } from '../limits.ts';
import { CARRIER_FIRST_PINGS, MemoryBudget, STREAM_WINDOW_GROWS_AFTER_BYTES } from '../stream/flow-control.ts';
import type { MuxStream, OpenAnswer } from '../stream/mux-stream.ts';
import { CARRIER_DEAD_AFTER_MS, CARRIER_PING_INTERVAL_MS, CARRIER_ROTATE_AFTER_MS } from './carrier-liveness.ts';
import { type CarrierLoss, MuxSession } from './mux-session.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '1.2.3.4:5' };

/** Payload of the client's ping behind its GO_AWAY: the mark, and the time when the carrier is retired. */
const leavingAt = (now: number): Uint8Array => {
  const payload = new Uint8Array(8);
  writeUint32(payload, 0, 1);
  writeUint32(payload, 4, now);
  return payload;
};

const data = (streamId: number, bytes: number): Buffer => {
  const frame = Buffer.alloc(WIRE_LIMITS.FRAME_HEADER_BYTES + bytes, 'x');
  writeFrameHeader(frame, 0, FRAME.DATA, bytes, streamId);
  return frame;
};

describe('a client session with a scripted peer', () => {
  let peer: net.Socket;
  let received: Buffer;
  let session: MuxSession;
  let losses: CarrierLoss[];
  let streams: MuxStream[];
  let now = 1000;

  beforeEach(async () => {
    now = 1000;
    losses = [];
    streams = [];
    received = Buffer.alloc(0);
    const [accepted, dialled] = await socketPair('plain');
    peer = accepted;
    peer.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    peer.on('error', () => {});
    peer.resume();
    session = new MuxSession({
      role: 'client',
      budget: new MemoryBudget(1024 * 1024 * 1024),
      clock: { ...systemClock, monotonic: () => now },
      handlers: {
        onStream: (stream) => {
          streams.push(stream);
          stream.accept();
        },
        onCarrierLost: (loss) => losses.push(loss),
        report: rethrow,
      },
    });
    session.addCarrier(createCarrier(dialled));
  });
  afterEach(() => {
    session.close({ code: 'cancelled', text: '' });
    peer.destroy();
  });

  const reason = async (): Promise<string> => {
    await eventually(() => expect(losses).toHaveLength(1));
    expect(losses[0]?.protocolViolation).toBe(true);
    expect(session.state).toBe('closed');
    expect(session.liveStreams).toBe(0);
    expect(session.budget.committedBytes).toBe(0);
    await eventually(() => expect(received.includes(losses[0]?.reason ?? '?')).toBe(true));
    return losses[0]?.reason ?? '';
  };

  it('closes on data beyond the granted credit', async () => {
    peer.write(encodeOpen(2, HEAD, 1000));
    await eventually(() => expect(streams).toHaveLength(1));
    for (let i = 0; i < 5; i++) peer.write(data(2, 64 * 1024));
    expect(await reason()).toMatch(/without credit/);
  });

  it('closes on data for a stream that was never opened', async () => {
    peer.write(data(4, 10));
    expect(await reason()).toMatch(/never open/);
  });

  it('closes on a stream id that was opened before', async () => {
    peer.write(Buffer.concat([encodeOpen(6, HEAD, 0), encodeOpen(6, HEAD, 0)]));
    expect(await reason()).toMatch(/opened before/);
  });

  it('closes on an odd stream id from the edge', async () => {
    peer.write(encodeOpen(7, HEAD, 0));
    expect(await reason()).toMatch(/opened before/);
  });

  it('closes on an unknown frame type', async () => {
    peer.write(Buffer.from('ff00000000000002', 'hex'));
    expect(await reason()).toMatch(/unknown frame type/);
  });

  it('closes on credit beyond the largest window', async () => {
    peer.write(
      Buffer.concat([encodeOpen(2, HEAD, WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES), encodeCredit(FRAME.WINDOW, 2, 1)]),
    );
    expect(await reason()).toMatch(/does not fit/);
  });

  it('closes on a second FIN', async () => {
    peer.write(Buffer.concat([encodeOpen(2, HEAD, 0), encodeFin(2), encodeFin(2)]));
    expect(await reason()).toMatch(/does not fit/);
  });

  it('closes on data behind a FIN', async () => {
    peer.write(Buffer.concat([encodeOpen(2, HEAD, 1000), encodeFin(2), data(2, 10)]));
    expect(await reason()).toMatch(/without credit/);
  });

  it('ignores late frames of a closed stream', async () => {
    peer.write(encodeOpen(2, HEAD, 0));
    await eventually(() => expect(streams).toHaveLength(1));
    streams[0]?.reset({ code: 'cancelled', text: 'no more' });
    peer.write(Buffer.concat([data(2, 100), encodeCredit(FRAME.WINDOW, 2, 5), encodeFin(2)]));
    peer.write(encodePing(FRAME.PING, Buffer.from('12345678')));
    await eventually(() => expect(received.includes('12345678')).toBe(true));
    expect(losses).toEqual([]);
  });

  it('measures the round trip with several pings at the start, then with one ping per interval', async () => {
    let answered = 0;
    const answerAll = (): void => {
      for (; received.length >= 16 * (answered + 1); answered++) {
        expect(received[16 * answered]).toBe(FRAME.PING);
        peer.write(encodePing(FRAME.PONG, received.subarray(16 * answered + 8, 16 * (answered + 1))));
      }
    };
    await eventually(() => {
      answerAll();
      expect(answered).toBe(CARRIER_FIRST_PINGS);
    });
    now += CARRIER_PING_INTERVAL_MS;
    peer.write(encodePing(FRAME.PONG, new Uint8Array(8)));
    peer.write(encodePing(FRAME.PING, Buffer.from('12345678')));
    await eventually(() => expect(received.includes('12345678')).toBe(true));
    expect(received.length).toBe(16 * (CARRIER_FIRST_PINGS + 1));
    session.tick(now);
    await eventually(() => expect(received.length).toBe(16 * (CARRIER_FIRST_PINGS + 2)));
  });

  it('does not enlarge the window of a new reader because of data read by the previous reader', async () => {
    const reading = (): { bytes: number } & ByteReader => ({
      bytes: 0,
      onData(_bytes, start, end) {
        this.bytes += end - start;
        return true;
      },
      onDrain: () => {},
      onEnd: () => {},
      onReset: () => {},
      abandon: rethrow,
    });
    const first = reading();
    const second = reading();
    const half = MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES / 2;
    const frames = half / (64 * 1024);
    const send = (): void => {
      for (let at = 0; at < frames; at++) peer.write(data(2, 64 * 1024));
    };
    peer.write(encodeOpen(2, HEAD, 0));
    await eventually(() => expect(streams).toHaveLength(1));
    const [stream] = streams;
    stream?.read(first);
    while (first.bytes < STREAM_WINDOW_GROWS_AFTER_BYTES) {
      const bytes = first.bytes + half;
      send();
      await eventually(() => expect(first.bytes).toBe(bytes), { intervalMs: 1 });
    }
    stream?.read(second);
    send();
    await eventually(() => expect(second.bytes).toBe(half));
    expect([stream?.hasGrown, losses]).toEqual([false, []]);
  });

  it('pings a silent carrier, and drops the carrier after 25 s', async () => {
    now += CARRIER_PING_INTERVAL_MS;
    session.tick(now);
    await eventually(() => expect(received.length).toBe(32));
    now += CARRIER_DEAD_AFTER_MS - CARRIER_PING_INTERVAL_MS;
    session.tick(now);
    expect(losses).toMatchObject([{ reason: 'nothing heard for 25 s', protocolViolation: false, liveCarriers: 0 }]);
  });

  it('retires a carrier after a day without cutting its streams', async () => {
    peer.write(encodeOpen(2, HEAD, 0));
    await eventually(() => expect(streams).toHaveLength(1));
    now += CARRIER_ROTATE_AFTER_MS;
    peer.write(encodePing(FRAME.PING, Buffer.from('stillhere'.slice(0, 8))));
    await eventually(() => expect(received.includes('stillher')).toBe(true));
    session.tick(now);
    expect(losses).toMatchObject([{ reason: 'rotated', liveCarriers: 0 }]);
    expect([session.liveStreams, session.openCarriers]).toEqual([1, 1]);
    streams[0]?.reset({ code: 'cancelled', text: '' });
    peer.write(encodePing(FRAME.PONG, leavingAt(now)));
    await eventually(() => expect(session.openCarriers).toBe(0));
  });

  it('serves a stream that crossed the GO_AWAY, and closes a retired carrier only after the peer has seen the GO_AWAY', async () => {
    session.retireCarrier(session.spareCarrier ?? 0, { code: 'cancelled', text: 'not needed' });
    expect(session.spareCarrier).toBeNull();
    await eventually(() => expect(received.includes(Buffer.from(leavingAt(now)))).toBe(true));
    peer.write(encodePing(FRAME.PONG, new Uint8Array(8)));
    peer.write(encodeOpen(2, HEAD, 0));
    await eventually(() => expect(streams).toHaveLength(1));
    expect(session.openCarriers).toBe(1);
    streams[0]?.reset({ code: 'cancelled', text: '' });
    peer.write(encodePing(FRAME.PONG, leavingAt(now)));
    await eventually(() => expect(session.openCarriers).toBe(0));
  });

  it('retires a carrier after GO_AWAY and reports the reason to the owner', async () => {
    peer.write(encodeReason(FRAME.GO_AWAY, 0, { code: 'cancelled', text: 'rotated' }));
    await eventually(() => expect(losses).toMatchObject([{ reason: 'rotated', liveCarriers: 0 }]));
  });
});

describe('an edge session that opens a stream', () => {
  it('times out after 15 s and notifies the peer', async () => {
    const [accepted, dialled] = await socketPair('plain');
    let now = 0;
    const handlers = { onCarrierLost: () => {}, report: rethrow };
    const session = new MuxSession({
      role: 'edge',
      budget: new MemoryBudget(1e9),
      clock: { ...systemClock, monotonic: () => now },
      handlers,
    });
    session.addCarrier(createCarrier(accepted));
    const seen: Buffer[] = [];
    dialled.on('data', (chunk: Buffer) => seen.push(chunk));
    dialled.resume();
    const refused: string[] = [];
    session.open(HEAD, {
      onOpened: () => {},
      onRefused: ({ code, text }) => refused.push(`${code}: ${text}`),
      abandon: rethrow,
    });
    now = MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS;
    session.tick(now);
    expect(refused).toEqual(['timeout: no answer to OPEN']);
    await eventually(() => expect(Buffer.concat(seen).includes('no answer to OPEN')).toBe(true));
    expect(session.liveStreams).toBe(0);
    session.close({ code: 'cancelled', text: '' });
    dialled.destroy();
  });

  it.each([
    ['data', (streamId: number) => data(streamId, 10)],
    ['credit', (streamId: number) => encodeCredit(FRAME.WINDOW, streamId, 10)],
  ])('refuses %s that arrives before the response to OPEN', async (_, frame) => {
    const [accepted, dialled] = await socketPair('plain');
    dialled.on('error', () => {});
    const losses: CarrierLoss[] = [];
    const handlers = { onCarrierLost: (loss: CarrierLoss) => losses.push(loss), report: rethrow };
    const session = new MuxSession({ role: 'edge', budget: new MemoryBudget(1e9), clock: systemClock, handlers });
    session.addCarrier(createCarrier(accepted));
    const ended: string[] = [];
    const answer = { onOpened: rethrow, onRefused: ({ code }: { code: string }) => ended.push(code), abandon: rethrow };
    session.open(HEAD, answer);
    dialled.write(frame(2));
    await eventually(() => expect(losses).toMatchObject([{ protocolViolation: true }]));
    expect(ended).toHaveLength(1);
    session.close({ code: 'cancelled', text: '' });
    dialled.destroy();
  });

  it('waits briefly for a carrier, then fails', async () => {
    let now = 0;
    const handlers = { onCarrierLost: () => {}, report: rethrow };
    const session = new MuxSession({
      role: 'edge',
      budget: new MemoryBudget(1e9),
      clock: { ...systemClock, monotonic: () => now },
      handlers,
    });
    const seen: string[] = [];
    const answer = (name: string): OpenAnswer => ({
      onOpened: () => seen.push(`${name} opened`),
      onRefused: ({ code }) => seen.push(`${name} ${code}`),
      abandon: rethrow,
    });
    session.open(HEAD, answer('early'));
    session.open(HEAD, answer('called off'))?.reset({ code: 'cancelled', text: '' });
    now = MUX_LIMITS.CARRIER_WAIT_MS - 1;
    session.open(HEAD, answer('late'));
    session.tick(now);
    expect(seen).toEqual([]);
    now += 1;
    session.tick(now);
    expect(seen).toEqual(['early carrier-lost']);
    const [accepted, dialled] = await socketPair('plain');
    session.addCarrier(createCarrier(accepted));
    dialled.write(encodeCredit(FRAME.OPENED, 2, 1000));
    await eventually(() => expect(seen).toEqual(['early carrier-lost', 'late opened']));
    session.close({ code: 'cancelled', text: '' });
    expect(session.open(HEAD, answer('after the end'))).toBeNull();
    dialled.destroy();
  });
});
