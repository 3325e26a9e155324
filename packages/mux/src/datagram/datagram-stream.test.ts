// Datagram flows between two sessions over real sockets: delivery, drops, and cleanup at the end.

import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import {
  deterministicBytes,
  eventually,
  RecordingDatagrams,
  rethrow,
  type SessionPair,
  sessionPair,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { CARRIER_ROTATE_AFTER_MS } from '../session/carrier-liveness.ts';
import type { MuxStream } from '../stream/mux-stream.ts';
import type { DatagramAnswer, DatagramStream } from './datagram-stream.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' };
const UNWANTED: StreamReason = { code: 'cancelled', text: 'not wanted any more' };

class Answer implements DatagramAnswer {
  readonly opened: DatagramStream[] = [];
  readonly refused: StreamReason[] = [];
  abandoned = 0;

  onOpened(stream: DatagramStream): void {
    this.opened.push(stream);
  }

  onRefused(reason: StreamReason): void {
    this.refused.push(reason);
  }

  abandon(): void {
    this.abandoned += 1;
  }
}

describe.each(['plain', 'tls'] as const)('flows over %s carriers', (kind) => {
  let pair: SessionPair;
  let flows: DatagramStream[];
  let readers: RecordingDatagrams[];
  let byteStreams: MuxStream[];
  let reported: string[];
  let onFlow: (stream: DatagramStream) => void;
  let passedMs: number;

  const connect = async (carriers: number): Promise<void> => {
    pair = await sessionPair({
      kind,
      carriers,
      capabilities: ['datagram'],
      clock: { ...systemClock, monotonic: () => performance.now() + passedMs },
      client: {
        onStream: (stream) => {
          byteStreams.push(stream);
          stream.accept();
        },
        onDatagramStream: (stream) => {
          flows.push(stream);
          onFlow(stream);
        },
        report: (error, where) => reported.push(`${where}: ${String(error)}`),
      },
    });
  };

  beforeEach(async () => {
    [flows, readers, byteStreams, reported, passedMs] = [[], [], [], [], 0];
    onFlow = (stream) => {
      stream.accept();
      readers.push(new RecordingDatagrams(stream));
    };
    await connect(1);
  });

  afterEach(() => pair.close());

  const open = (answer = new Answer()): { stream: DatagramStream; answer: Answer } => {
    const stream = pair.edge.openDatagrams(HEAD, answer);
    if (stream === null) throw new Error('no carrier');
    return { stream, answer };
  };

  const opened = async (): Promise<{ stream: DatagramStream; reader: RecordingDatagrams; far: DatagramStream }> => {
    const count = flows.length;
    const { stream, answer } = open();
    await eventually(() => expect([answer.opened, flows.length]).toEqual([[stream], count + 1]));
    return { stream, reader: new RecordingDatagrams(stream), far: flows[count] as DatagramStream };
  };

  const sendText = (stream: DatagramStream, text: string): string =>
    stream.send(Buffer.from(text), 0, Buffer.byteLength(text));

  /** Checks that the session still works by opening another flow. */
  const anotherWorks = async (): Promise<void> => {
    onFlow = (stream) => {
      stream.accept();
      readers.push(new RecordingDatagrams(stream));
    };
    const { stream } = open();
    sendText(stream, 'well');
    await eventually(() => expect(readers.at(-1)?.texts).toEqual(['well']));
  };

  it('carry whole datagrams in order in both directions, even before the response to OPEN', async () => {
    const { stream, answer } = open();
    const back = new RecordingDatagrams(stream);
    expect(['one', '', 'three'].map((text) => sendText(stream, text))).toEqual(['sent', 'sent', 'sent']);
    expect(stream.state).toBe('opening');
    await eventually(() => expect(readers[0]?.texts).toEqual(['one', '', 'three']));
    await eventually(() => expect([stream.flow, flows[0]?.flow, answer.opened]).toEqual([2, 2, [stream]]));
    sendText(flows[0] as DatagramStream, 'back');
    await eventually(() => expect(back.texts).toEqual(['back']));
  });

  it('carry datagrams of 0 to 65,507 bytes, never joined or split', async () => {
    const { stream } = await opened();
    const sizes = [0, 1, 63, 1472, 16_384, WIRE_LIMITS.DATAGRAM_MAX_BYTES, 0, 30_000, 65_000, 7];
    const sent = sizes.map((size, index) => deterministicBytes(size, index));
    for (const bytes of sent) {
      expect(stream.send(bytes, 0, bytes.length)).toBe('sent');
      // Frames cross the 64 KiB blocks and TLS records at different places. Only one datagram at a time is in flight, to stay within the
      // first window.
      await eventually(() => expect(readers[0]?.datagrams.length).toBe(sent.indexOf(bytes) + 1));
    }
    expect(readers[0]?.datagrams.every((bytes, index) => bytes.equals(sent[index] as Buffer))).toBe(true);
    const large = Buffer.alloc(WIRE_LIMITS.DATAGRAM_MAX_BYTES + 1);
    expect(stream.send(large, 0, large.length)).toBe('too-large');
    expect(stream.send(large, 1, large.length)).toBe('sent');
  });

  it('keep up to 8 datagrams or 16 KiB until there is a reader', async () => {
    onFlow = (stream) => stream.accept();
    const { stream } = open();
    for (let i = 0; i < 12; i++) sendText(stream, `${i}`);
    await eventually(() => expect(flows[0]?.droppedBeforeRead).toBe(4));
    expect(new RecordingDatagrams(flows[0] as DatagramStream).texts).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
    const second = open().stream;
    const large = Buffer.alloc(10 * 1024);
    for (const size of [large.length, large.length, 100]) second.send(large, 0, size);
    await eventually(() => expect(flows[1]?.droppedBeforeRead).toBe(1));
    await eventually(() =>
      expect(new RecordingDatagrams(flows[1] as DatagramStream).datagrams.map(({ length }) => length)).toEqual([
        10_240, 100,
      ]),
    );
  });

  it('report the reason of a refusal once, and carry nothing afterwards', async () => {
    onFlow = (stream) => stream.refuse({ code: 'dial-refused', text: 'no socket' });
    const { stream, answer } = open();
    sendText(stream, 'early');
    await eventually(() => expect(answer.refused).toEqual([{ code: 'dial-refused', text: 'no socket' }]));
    expect([stream.state, sendText(stream, 'late'), pair.edge.liveStreams]).toEqual(['closed', 'away', 0]);
    stream.reset(UNWANTED);
    await anotherWorks();
  });

  it('end with a reset from either side, and ignore datagrams still in flight', async () => {
    const { stream, far } = await opened();
    far.reset(UNWANTED);
    for (let i = 0; i < 20; i++) sendText(stream, 'into the void');
    await eventually(() => expect([stream.state, sendText(stream, 'late')]).toEqual(['closed', 'away']));
    const second = await opened();
    second.stream.reset(UNWANTED);
    await eventually(() => expect(readers[1]?.reset).toEqual(UNWANTED));
    await anotherWorks();
    expect([pair.edge.liveStreams, pair.client.liveStreams, reported]).toEqual([1, 1, []]);
  });

  it('reset only their own stream when a reader throws', async () => {
    const first = await opened();
    const second = await opened();
    (readers[0] as RecordingDatagrams).onEach = () => {
      throw new Error('mine');
    };
    sendText(first.stream, 'one');
    sendText(second.stream, 'two');
    await eventually(() => expect(first.reader.reset).toEqual({ code: 'cancelled', text: 'an internal error' }));
    await eventually(() => expect(readers[1]?.texts).toEqual(['two']));
    expect([readers[0]?.abandoned, pair.edge.liveStreams]).toEqual([['datagrams.datagram: Error: mine'], 1]);
  });

  it('reset only their own stream when the handler of new flows throws', async () => {
    onFlow = () => {
      throw new Error('not today');
    };
    const { answer } = open();
    await eventually(() => expect(answer.refused).toEqual([{ code: 'cancelled', text: 'an internal error' }]));
    expect(reported).toEqual(['stream.offered: Error: not today']);
    await anotherWorks();
  });

  it('time out when the peer does not respond to OPEN', async () => {
    onFlow = () => {};
    const { answer } = open();
    passedMs += MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS;
    pair.edge.tick(performance.now() + passedMs);
    expect(answer.refused).toEqual([{ code: 'timeout', text: 'no answer to OPEN' }]);
    await eventually(() => expect(flows.map(({ state }) => state)).toEqual(['closed']));
  });

  it('use the UDP path while it is up, for opened flows and datagrams that fit', async () => {
    const taken: [number, string][] = [];
    const path = {
      isUp: true,
      maxPayloadBytes: 4,
      takes: true,
      send: (flow: number, bytes: Buffer, start: number, end: number) => {
        taken.push([flow, bytes.toString('latin1', start, end)]);
        return path.takes;
      },
    };
    pair.edge.datagramPath = path;
    const { stream, answer } = open();
    expect(sendText(stream, 'a')).toBe('sent');
    await eventually(() => expect(answer.opened).toHaveLength(1));
    expect([sendText(stream, 'four'), sendText(stream, 'large')]).toEqual(['sent', 'sent']);
    path.takes = false;
    expect(sendText(stream, 'lost')).toBe('path');
    path.isUp = false;
    expect(sendText(stream, 'down')).toBe('sent');
    await eventually(() => expect(readers[0]?.texts).toEqual(['a', 'large', 'down']));
    expect(taken).toEqual([
      [2, 'four'],
      [2, 'lost'],
    ]);
  });

  it('accept datagrams from the UDP path before the response to OPEN, but not before accept()', async () => {
    const accepts: (() => void)[] = [];
    onFlow = (stream) => void accepts.push(() => stream.accept());
    const { stream } = open();
    const bytes = Buffer.from('-by the path-');
    expect(pair.edge.deliverDatagram(stream.flow, bytes, 1, 12)).toBe(true);
    await eventually(() => expect(flows).toHaveLength(1));
    expect(pair.client.deliverDatagram(stream.flow, bytes, 1, 12)).toBe(false);
    accepts[0]?.();
    expect(pair.client.deliverDatagram(stream.flow, bytes, 1, 12)).toBe(true);
    expect(pair.client.deliverDatagram(stream.flow + 2, bytes, 1, 12)).toBe(false);
    expect(new RecordingDatagrams(stream).texts).toEqual(['by the path']);
    expect(new RecordingDatagrams(flows[0] as DatagramStream).texts).toEqual(['by the path']);
    stream.reset(UNWANTED);
    expect(pair.edge.deliverDatagram(stream.flow, bytes, 1, 12)).toBe(false);
  });

  it('have a separate carrier while another carrier takes byte streams', async () => {
    pair.close();
    await connect(3);
    pair.edge.reserveForDatagrams();
    const first = await opened();
    const answer = { onOpened: () => {}, onRefused: () => {}, abandon: rethrow };
    for (let i = 0; i < 6; i++) pair.edge.open(HEAD, answer);
    await eventually(() => expect(byteStreams).toHaveLength(6));
    const second = await opened();
    // Stream ids count per carrier: consecutive ids show that the two flows share a carrier with no byte stream in between.
    expect([first.stream.id, second.stream.id]).toEqual([2, 4]);
    // The client does not open byte streams on the carrier reserved by the edge either.
    const own = pair.client.open(HEAD, answer);
    await eventually(() => expect((own as MuxStream).state).toBe('closed'));
    expect([(own as MuxStream).id, pair.edge.liveStreams]).toEqual([1, 8]);
  });

  it('are reset with their carrier, and new flows use the next carrier', async () => {
    pair.close();
    await connect(2);
    const { reader, stream } = await opened();
    // The flow uses the first of two idle carriers.
    pair.carriers[0]?.destroy('cut');
    expect([reader.reset?.code, stream.state, sendText(stream, 'late')]).toEqual(['carrier-lost', 'closed', 'away']);
    await eventually(() => expect(readers[0]?.reset?.code).toBe('carrier-lost'));
    const again = await opened();
    expect([again.stream.flow, again.stream.id]).toEqual([4, 2]);
    pair.carriers[1]?.destroy('cut');
    expect(pair.edge.openDatagrams(HEAD, new Answer())).toBeNull();
    expect([pair.edge.liveStreams, pair.edge.flows?.size]).toEqual([0, 0]);
  });

  it('are reset when their carrier is replaced, but continue while a session drains', async () => {
    const first = await opened();
    passedMs += CARRIER_ROTATE_AFTER_MS;
    pair.client.tick(performance.now() + passedMs);
    await eventually(() =>
      expect([first.reader.reset?.code, readers[0]?.reset?.code]).toEqual(['carrier-lost', 'carrier-lost']),
    );
    await eventually(() => expect([pair.edge.openCarriers, pair.client.openCarriers]).toEqual([0, 0]));
    pair.close();
    await connect(1);
    const second = await opened();
    pair.edge.drain('ending');
    await eventually(() => expect(second.far.isRetiring).toBe(true));
    expect([second.stream.isRetiring, pair.edge.openDatagrams(HEAD, new Answer())]).toEqual([true, null]);
    sendText(second.stream, 'still');
    await eventually(() => expect(readers[1]?.texts).toEqual(['still']));
    second.far.send(Buffer.from('answered'), 0, 8);
    await eventually(() => expect(second.reader.texts).toEqual(['answered']));
    second.stream.reset(UNWANTED);
    await eventually(() => expect([pair.edge.liveStreams, pair.client.liveStreams]).toEqual([0, 0]));
  });

  it('use none of the memory budget of byte streams', async () => {
    const streams = Array.from({ length: 2000 }, () => open().stream);
    await eventually(() => expect(flows).toHaveLength(2000));
    expect([pair.edge.liveStreams, pair.edge.byteStreams, pair.edge.budget.committedBytes]).toEqual([2000, 0, 0]);
    for (const stream of streams) stream.reset(UNWANTED);
    await eventually(() => expect([pair.client.liveStreams, pair.client.flows?.size]).toEqual([0, 0]));
  });
});

describe('a session without the datagram capability', () => {
  it('opens no flows', async () => {
    const pair = await sessionPair({ kind: 'plain', capabilities: ['p2p'] });
    pair.edge.reserveForDatagrams();
    pair.edge.datagramPath = { isUp: true, maxPayloadBytes: 1000, send: () => true };
    expect([pair.edge.openDatagrams(HEAD, new Answer()), pair.edge.datagramPath]).toEqual([null, null]);
    expect(pair.edge.deliverDatagram(2, Buffer.alloc(1), 0, 1)).toBe(false);
    pair.close();
  });
});
