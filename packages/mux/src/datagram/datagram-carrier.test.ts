// A carrier with a scripted peer: violations of the datagram rules, SEEN frames for sent datagrams, and the memory of a stalled carrier.

import type * as net from 'node:net';
import {
  encodeCredit,
  encodeFin,
  encodeOpen,
  encodePing,
  encodeSeen,
  FRAME,
  FrameParser,
  frameTable,
  WIRE_LIMITS,
  writeFrameHeader,
} from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, rethrow, socketPair } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCarrier } from '../carrier/carrier.ts';
import { type CarrierLoss, MuxSession } from '../session/mux-session.ts';
import { MemoryBudget } from '../stream/flow-control.ts';
import type { MuxStream } from '../stream/mux-stream.ts';
import { DATAGRAM_SEEN_INTERVAL_MS } from './datagram-lane.ts';
import { DATAGRAM_BEHIND_MS, DATAGRAM_UNSEEN_FIRST_BYTES } from './datagram-pace.ts';
import type { DatagramStream } from './datagram-stream.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '1.2.3.4:5' };
const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
const ANSWER = { onOpened: () => {}, onRefused: () => {}, abandon: rethrow };

const frame = (type: typeof FRAME.DATA | typeof FRAME.DATAGRAM, streamId: number, payload: string | Buffer): Buffer => {
  const bytes = Buffer.concat([Buffer.alloc(HEADER), Buffer.from(payload as string)]);
  writeFrameHeader(bytes, 0, type, bytes.length - HEADER, streamId);
  return bytes;
};
const datagram = (streamId: number, payload: string | Buffer): Buffer => frame(FRAME.DATAGRAM, streamId, payload);

let peer: net.Socket;
let session: MuxSession;
let losses: CarrierLoss[];
let flows: DatagramStream[];
let streams: MuxStream[];
let received: Buffer;
let now: number;

const start = async (role: 'edge' | 'client', capabilities: string[]): Promise<void> => {
  const [accepted, dialled] = await socketPair('plain');
  [losses, flows, streams, received, now] = [[], [], [], Buffer.alloc(0), 1000];
  peer = accepted;
  peer.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  peer.on('error', () => {});
  peer.resume();
  session = new MuxSession({
    role,
    budget: new MemoryBudget(1024 * 1024 * 1024),
    clock: { ...systemClock, monotonic: () => now },
    capabilities,
    handlers: {
      onStream: (stream) => {
        streams.push(stream);
        stream.accept();
      },
      onDatagramStream: (stream) => {
        flows.push(stream);
        stream.accept();
      },
      onCarrierLost: (loss) => losses.push(loss),
      report: rethrow,
    },
  });
  session.addCarrier(createCarrier(dialled));
};

afterEach(() => {
  session.close({ code: 'cancelled', text: '' });
  peer.destroy();
});

/** Returns the frames sent by the session under test: datagrams as text, and the counts of SEEN frames. */
const heard = (): { datagrams: string[]; seen: number[] } => {
  const datagrams: string[] = [];
  const seen: number[] = [];
  const parser = new FrameParser(
    {
      onData: () => {},
      onDatagram: (_, bytes, from, to) => datagrams.push(Buffer.from(bytes.subarray(from, to)).toString()),
      onFrame: (type, _, payload) => {
        if (type === FRAME.SEEN) seen.push(Number(Buffer.from(payload).readBigUInt64BE()));
      },
    },
    frameTable(['datagram']),
  );
  parser.push(received, 0, received.length);
  return { datagrams, seen };
};

/** Waits until the session has handled all frames written so far, by a PING with the eight characters of `mark`. */
const answered = async (mark: string): Promise<void> => {
  peer.write(encodePing(FRAME.PING, Buffer.from(mark)));
  await eventually(() => expect(received.includes(mark.slice(0, 8))).toBe(true));
};

describe('a peer that violates the datagram rules', () => {
  beforeEach(() => start('client', ['datagram']));

  const OPEN_2 = encodeOpen(2, { ...HEAD, flow: 2 }, 0);

  it.each([
    ['DATA on a flow', [OPEN_2, frame(FRAME.DATA, 2, 'x')], /1 bytes on stream 2/],
    ['FIN on a flow', [OPEN_2, encodeFin(2)], /does not fit/],
    ['WINDOW on a flow', [OPEN_2, encodeCredit(FRAME.WINDOW, 2, 1)], /does not fit/],
    ['a datagram on a stream of bytes', [encodeOpen(2, HEAD, 0), datagram(2, 'x')], /datagram does not fit stream 2/],
    ['a datagram on a stream that never was', [datagram(2, 'x')], /never open/],
    ['a number that a living flow has', [OPEN_2, encodeOpen(4, { ...HEAD, flow: 2 }, 0)], /flow 2 was opened before/],
    ['a number that is ours to choose', [encodeOpen(2, { ...HEAD, flow: 3 }, 0)], /flow 3 was opened before/],
    ['SEEN of what was never sent', [encodeSeen(1)], /SEEN/],
    ['SEEN of more than a carrier moves', [Buffer.from('0c000008000000000020000000000000', 'hex')], /SEEN/],
    ['a datagram of 65,508 bytes', [OPEN_2, Buffer.from('0b00ffe400000002', 'hex')], /payload of 65508 bytes/],
  ])('%s closes the session with a reason', async (_, frames, reason) => {
    peer.write(Buffer.concat(frames));
    await eventually(() => expect(losses).toHaveLength(1));
    expect(losses[0]).toMatchObject({ protocolViolation: true, reason: expect.stringMatching(reason) });
    expect([session.state, session.liveStreams, session.flows?.size]).toEqual(['closed', 0, 0]);
  });

  it('may still send late datagrams of a closed flow, and its flow number can be used again', async () => {
    peer.write(Buffer.concat([OPEN_2, datagram(2, 'one')]));
    await eventually(() => expect(flows).toHaveLength(1));
    flows[0]?.reset({ code: 'cancelled', text: 'no more' });
    peer.write(Buffer.concat([datagram(2, 'late'), datagram(2, ''), encodeOpen(4, { ...HEAD, flow: 2 }, 0)]));
    await eventually(() => expect(flows).toHaveLength(2));
    expect(losses).toEqual([]);
    // SEEN also counts late datagrams, including their frame headers, because the sender has counted them.
    now += DATAGRAM_SEEN_INTERVAL_MS;
    peer.write(datagram(4, ''));
    await eventually(() => expect(heard().seen.at(-1)).toBe(11 + 12 + 8 + 8));
  });
});

describe('a peer without the datagram capability', () => {
  beforeEach(() => start('client', []));

  it.each([
    ['OPEN in datagram mode', encodeOpen(2, { ...HEAD, flow: 2 }, 0), /datagrams were not agreed on/],
    ['a datagram', datagram(2, 'x'), /unknown frame type 11/],
    ['SEEN', encodeSeen(0), /unknown frame type 12/],
  ])('%s is a protocol violation', async (_, bytes, reason) => {
    peer.write(bytes);
    await eventually(() =>
      expect(losses).toMatchObject([{ protocolViolation: true, reason: expect.stringMatching(reason) }]),
    );
  });
});

describe('the session that opens a flow', () => {
  beforeEach(() => start('edge', ['datagram']));

  it.each([
    ['a datagram before OPENED', datagram(2, 'x'), /datagram does not fit/],
    ['OPENED with credit', encodeCredit(FRAME.OPENED, 2, 1), /does not fit/],
  ])('refuses %s', async (_, bytes, reason) => {
    session.openDatagrams(HEAD, ANSWER);
    peer.write(bytes);
    await eventually(() =>
      expect(losses).toMatchObject([{ protocolViolation: true, reason: expect.stringMatching(reason) }]),
    );
  });
});

describe('the SEEN frame', () => {
  beforeEach(() => start('client', ['datagram']));

  it('is sent at once, then at most every 10 ms, and only after new datagrams', async () => {
    peer.write(Buffer.concat([encodeOpen(2, { ...HEAD, flow: 2 }, 0), datagram(2, 'one'), datagram(2, 'two')]));
    await eventually(() => expect(heard().seen).toEqual([22]));
    const startedMs = performance.now();
    for (let i = 1; i <= 500; i++) {
      peer.write(datagram(2, 'more'));
      await new Promise(setImmediate);
    }
    // The session's clock stands still, so a timer sends the SEEN frames.
    await eventually(() => expect(heard().seen.at(-1)).toBe(22 + 500 * 12));
    const told = heard().seen.length;
    expect(told).toBeLessThanOrEqual(2 + (performance.now() - startedMs) / DATAGRAM_SEEN_INTERVAL_MS);
    now += 1000;
    await answered('no news');
    expect(heard().seen).toHaveLength(told);
  });

  it('is not sent after its carrier has ended', async () => {
    peer.write(Buffer.concat([encodeOpen(2, { ...HEAD, flow: 2 }, 0), datagram(2, 'one')]));
    await eventually(() => expect(heard().seen).toEqual([11]));
    peer.write(datagram(2, 'two'));
    await answered('both are');
    session.close({ code: 'cancelled', text: 'that is all' });
    await eventually(() => expect(received.includes('that is all')).toBe(true));
    expect(losses).toEqual([]);
  });
});

describe('a stalled carrier', () => {
  beforeEach(() => start('edge', ['datagram']));

  const flood = (stream: DatagramStream, count: number): { sent: number; behind: number } => {
    const bytes = Buffer.alloc(1200);
    const outcome = { sent: 0, behind: 0 };
    for (let i = 0; i < count; i++) {
      const said = stream.send(bytes, 0, bytes.length);
      if (said === 'sent') outcome.sent += 1;
      else if (said === 'behind') outcome.behind += 1;
    }
    return outcome;
  };

  it('accepts only its first window of datagrams, however long the flood', async () => {
    peer.pause();
    const stream = session.openDatagrams(HEAD, ANSWER) as DatagramStream;
    const before = process.memoryUsage().arrayBuffers;
    let sent = 0;
    for (let turn = 0; turn < 100; turn++) {
      sent += flood(stream, 1000).sent;
      now += 1;
      await new Promise(setImmediate);
    }
    expect(sent).toBe(Math.floor(DATAGRAM_UNSEEN_FIRST_BYTES / 1208));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * 1024 * 1024);
    expect(losses).toEqual([]);
  });

  it('drops datagrams once it is 100 ms and a round trip behind, until the peer reads again', async () => {
    const stream = session.openDatagrams(HEAD, ANSWER) as DatagramStream;
    const send = (text: string): string => stream.send(Buffer.from(text), 0, text.length);
    const sentBytes = (texts: string[]): number => texts.reduce((sum, text) => sum + HEADER + text.length, 0);
    send('first');
    await eventually(() => expect(heard().datagrams).toEqual(['first']));
    now += 20;
    peer.write(encodeSeen(sentBytes(['first'])));
    await answered('20 ms it took');
    expect(send('probe')).toBe('sent');
    now += 120;
    expect(send('just in time')).toBe('sent');
    await new Promise(setImmediate);
    now += 1;
    expect([send('late'), send('later')]).toEqual(['behind', 'behind']);
    now += 2000;
    expect(send('much later')).toBe('behind');
    await eventually(() => expect(heard().datagrams).toEqual(['first', 'probe', 'just in time']));
    peer.write(encodeSeen(sentBytes(['first', 'probe', 'just in time'])));
    await answered('moves on');
    expect(send('well')).toBe('sent');
    await eventually(() => expect(heard().datagrams.at(-1)).toBe('well'));
  });

  it('is not considered late before queued SEEN frames are read, for at most one turn', async () => {
    const stream = session.openDatagrams(HEAD, ANSWER) as DatagramStream;
    const send = (text: string): string => stream.send(Buffer.from(text), 0, text.length);
    send('first');
    await eventually(() => expect(heard().datagrams).toEqual(['first']));
    now += 20;
    peer.write(encodeSeen(HEADER + 5));
    await answered('20 ms it took');
    for (const turn of [1, 2]) {
      expect(send('probe')).toBe('sent');
      // Writes a SEEN frame before the session reads again, as happens when a busy machine delays the process.
      peer.write(encodeSeen(HEADER + 5 + (HEADER + 5) * (2 * turn - 1)));
      now += 500;
      expect([send('after'), session.takesFlows]).toEqual(['sent', false]);
      await answered(`${turn} is read`);
      peer.write(encodeSeen(HEADER + 5 + (HEADER + 5) * 2 * turn));
      await answered(`${turn} seen it all`);
    }
    expect(send('probe')).toBe('sent');
    now += 500;
    expect(send('after')).toBe('sent');
    await new Promise(setImmediate);
    expect([send('late'), send('later')]).toEqual(['behind', 'behind']);
  });

  it('takes no new flows at half of its allowed delay, while existing flows continue', async () => {
    const stream = session.openDatagrams(HEAD, ANSWER) as DatagramStream;
    stream.send(Buffer.from('first'), 0, 5);
    await eventually(() => expect(heard().datagrams).toEqual(['first']));
    now += 20;
    peer.write(encodeSeen(HEADER + 5));
    await answered('20 ms it took');
    expect(session.takesFlows).toBe(true);
    expect(flood(stream, 1)).toEqual({ sent: 1, behind: 0 });
    now += 20 + DATAGRAM_BEHIND_MS / 2 + 1;
    // A few waiting datagrams do not count as a flood.
    expect(session.takesFlows).toBe(true);
    expect(flood(stream, 1)).toEqual({ sent: 1, behind: 0 });
    expect([session.takesFlows, flood(stream, 1)]).toEqual([false, { sent: 1, behind: 0 }]);
    peer.write(encodeSeen(HEADER + 5 + 3 * 1208));
    await answered('moves on');
    expect(session.takesFlows).toBe(true);
    flood(stream, Math.floor(DATAGRAM_UNSEEN_FIRST_BYTES / 2 / 1208) + 1);
    expect([session.takesFlows, flood(stream, 1)]).toEqual([false, { sent: 1, behind: 0 }]);
  });

  it('does not delay other carriers', async () => {
    peer.pause();
    const stream = session.openDatagrams(HEAD, ANSWER) as DatagramStream;
    const [accepted, dialled] = await socketPair('plain');
    session.addCarrier(createCarrier(dialled));
    flood(stream, 10_000);
    let opened = '';
    accepted.on('data', (chunk: Buffer) => {
      opened += chunk.toString('latin1');
    });
    accepted.resume();
    session.open({ ...HEAD, visitor: 'bytes' }, ANSWER);
    await eventually(() => expect(opened).toContain('bytes'));
    accepted.destroy();
  });
});
