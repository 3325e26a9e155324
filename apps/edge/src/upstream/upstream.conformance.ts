// Guarantees of every upstream for callers. Used by tests only: an implementation runs the suite with a separate setup.
import type { ByteDuplex, DatagramStream, PendingStream } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import { eventually, RecordingDatagrams, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Upstream, UpstreamStream } from './upstream.ts';

/** The service's end of a stream, where the stream is accepted or refused. */
export interface OfferedStream extends ByteDuplex {
  readonly state: UpstreamStream['state'];
  accept(): void;
  refuse(reason: StreamReason): void;
}

export interface UpstreamUnderTest {
  readonly upstream: Upstream;
  /** Handles the streams offered to the service. By default, a stream is neither accepted nor refused. */
  onStream: (stream: OfferedStream, head: StreamHead) => void;
  /** Lets the given time pass for time limits of the upstream. */
  pass(ms: number): Promise<void>;
  /** Number of streams of the edge that have not ended. */
  readonly liveStreams: number;
  cleanUp(): Promise<void>;
}

/** An upstream to a service behind a client, with the carriers, absences and flows of the client. */
export interface ClientUpstreamUnderTest extends UpstreamUnderTest {
  /** Handles the flows offered to the client. By default, a flow is neither accepted nor refused. */
  onFlow: (stream: DatagramStream, head: StreamHead) => void;
  /** Cuts the carriers of the client. The session continues. */
  loseCarriers(): Promise<void>;
  /** Adds a new carrier of the client. */
  addCarrier(): Promise<void>;
  /** Ends the connection of the client's session. Streams in progress can finish. */
  goAway(): Promise<void>;
}

const HEAD: StreamHead = { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' };
const UNWANTED: StreamReason = { code: 'cancelled', text: 'not wanted any more' };
/** Longer than the time limit of any opening. */
const LONG_MS = 60_000;

class Answer<T = UpstreamStream> {
  readonly opened: T[] = [];
  readonly refused: StreamReason[] = [];

  onOpened(stream: T): void {
    this.opened.push(stream);
  }

  onRefused(reason: StreamReason): void {
    this.refused.push(reason);
  }

  abandon(error: unknown): void {
    rethrow(error);
  }

  get count(): number {
    return this.opened.length + this.refused.length;
  }
}

const echo = (stream: OfferedStream): void => {
  stream.accept();
  stream.read({
    onData: (bytes, start, end) => {
      stream.write(Buffer.from(bytes.subarray(start, end)), 0, end - start, false);
      return true;
    },
    onDrain: () => {},
    onEnd: () => stream.end(),
    onReset: () => {},
    abandon: rethrow,
  });
};

const echoDatagrams = (stream: DatagramStream): void => {
  stream.accept();
  const reader = new RecordingDatagrams(stream);
  const send = (bytes: Buffer): unknown => stream.send(bytes, 0, bytes.length);
  for (const bytes of reader.datagrams) send(bytes);
  reader.onEach = send;
};

/** Reads a stream to its end and returns the text. */
const readAll = (stream: UpstreamStream): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    stream.read({
      onData: (bytes, start, end) => {
        text += bytes.toString('latin1', start, end);
        return true;
      },
      onDrain: () => {},
      onEnd: () => resolve(text),
      onReset: (reason) => reject(new Error(reason.text)),
      abandon: rethrow,
    });
  });

const openOn = (upstream: Upstream): { answer: Answer; pending: PendingStream | null } => {
  const answer = new Answer();
  return { answer, pending: upstream.open(HEAD, answer) };
};

/** Defines the tests for every upstream. */
export const upstreamConformance = (name: string, create: () => Promise<UpstreamUnderTest>): void => {
  describe(`upstream ${name}`, () => {
    let set: UpstreamUnderTest;

    beforeEach(async () => {
      set = await create();
    });

    afterEach(() => set.cleanUp());

    const open = () => openOn(set.upstream);

    it('offers the service a stream with its head, and connects both ends when the service accepts', async () => {
      const heads: StreamHead[] = [];
      set.onStream = (stream, head) => {
        heads.push(head);
        echo(stream);
      };
      const { answer, pending } = open();
      expect([set.upstream.isConnected, pending === null]).toEqual([true, false]);
      await eventually(() => expect(answer.opened).toHaveLength(1));
      const stream = answer.opened[0] as UpstreamStream;
      const all = readAll(stream);
      stream.write(Buffer.from('to and fro'), 0, 10, false);
      stream.end();
      expect([await all, heads, answer.refused, stream.isRetiring]).toEqual(['to and fro', [HEAD], [], false]);
      await eventually(() => expect(set.liveStreams).toBe(0));
    });

    it('reports the reason of a refusal once', async () => {
      set.onStream = (stream) => stream.refuse({ code: 'dial-refused', text: 'ECONNREFUSED' });
      const { answer } = open();
      await eventually(() => expect(answer.refused).toEqual([{ code: 'dial-refused', text: 'ECONNREFUSED' }]));
      await set.pass(LONG_MS);
      expect([answer.count, set.liveStreams]).toEqual([1, 0]);
    });

    it('reports nothing for a stream that was reset before its answer, and closes it at the service', async () => {
      let offered: OfferedStream | undefined;
      set.onStream = (stream) => {
        offered = stream;
      };
      const { answer, pending } = open();
      await eventually(() => expect(offered).toBeDefined());
      pending?.reset(UNWANTED);
      await eventually(() => expect([offered?.state, set.liveStreams]).toEqual(['closed', 0]));
      await set.pass(LONG_MS);
      expect(answer.count).toBe(0);
    });

    it('gives up on a service that never answers', async () => {
      const { answer } = open();
      await set.pass(LONG_MS);
      await eventually(() => expect([answer.count, answer.refused.length, set.liveStreams]).toEqual([1, 1, 0]));
    });
  });
};

/** Defines the tests for upstreams with a client, in addition to the tests for every upstream. */
export const clientUpstreamConformance = (name: string, create: () => Promise<ClientUpstreamUnderTest>): void => {
  upstreamConformance(name, create);

  describe(`upstream ${name}, with its client`, () => {
    let set: ClientUpstreamUnderTest;

    beforeEach(async () => {
      set = await create();
    });

    afterEach(() => set.cleanUp());

    const open = () => openOn(set.upstream);

    it('holds a stream while the client has no carrier, and opens it over the next carrier', async () => {
      set.onStream = echo;
      await set.loseCarriers();
      const { answer, pending } = open();
      expect([set.upstream.isConnected, pending === null, answer.count]).toEqual([false, false, 0]);
      await set.addCarrier();
      await eventually(() => expect([answer.opened.length, set.upstream.isConnected]).toEqual([1, true]));
    });

    it('gives up waiting for a carrier after a while, and at once for a stream that was reset', async () => {
      await set.loseCarriers();
      const waited = open();
      const left = open();
      left.pending?.reset(UNWANTED);
      await set.pass(LONG_MS);
      await eventually(() => expect(waited.answer.refused.map(({ code }) => code)).toEqual(['carrier-lost']));
      expect(left.answer.count).toBe(0);
    });

    it('resets open streams and refuses pending streams when their carrier is lost', async () => {
      let offers = 0;
      set.onStream = (stream) => {
        offers += 1;
        if (offers === 1) stream.accept();
      };
      const first = open();
      const second = open();
      await eventually(() => expect([first.answer.count + second.answer.count, offers]).toEqual([1, 2]));
      const joined = first.answer.opened[0] ?? second.answer.opened[0];
      const outcome = readAll(joined as UpstreamStream).then(
        () => 'whole',
        () => 'reset',
      );
      await set.loseCarriers();
      expect(await outcome).toBe('reset');
      await eventually(() => expect([first.answer.count, second.answer.count, set.liveStreams]).toEqual([1, 1, 0]));
    });

    it('opens no stream while the client is away; open streams finish and count as retiring', async () => {
      set.onStream = echo;
      const { answer } = open();
      await eventually(() => expect(answer.opened).toHaveLength(1));
      const stream = answer.opened[0] as UpstreamStream;
      expect(set.upstream.connection).not.toBeNull();
      await set.goAway();
      const late = open();
      expect([set.upstream.isConnected, late.pending, late.answer.count]).toEqual([false, null, 0]);
      expect(set.upstream.connection).toBeNull();
      expect(stream.isRetiring).toBe(true);
      const all = readAll(stream);
      stream.write(Buffer.from('still'), 0, 5, false);
      stream.end();
      expect(await all).toBe('still');
    });

    const openFlow = (): { answer: Answer<DatagramStream>; stream: DatagramStream | null } => {
      const answer = new Answer<DatagramStream>();
      return { answer, stream: set.upstream.openDatagrams(HEAD, answer) };
    };

    const sendText = (stream: DatagramStream | null, text: string): unknown =>
      stream?.send(Buffer.from(text), 0, text.length);

    it('offers the client a flow with its head and first datagrams, and returns the answers', async () => {
      const heads: StreamHead[] = [];
      set.onFlow = (stream, head) => {
        heads.push(head);
        echoDatagrams(stream);
      };
      const { answer, stream } = openFlow();
      const reader = new RecordingDatagrams(stream as DatagramStream);
      expect(['first', '', 'third'].map((text) => sendText(stream, text))).toEqual(['sent', 'sent', 'sent']);
      await eventually(() => expect(reader.texts).toEqual(['first', '', 'third']));
      expect([heads, answer.opened, answer.refused]).toEqual([[{ ...HEAD, flow: stream?.flow }], [stream], []]);
      stream?.reset(UNWANTED);
      await eventually(() => expect(set.liveStreams).toBe(0));
    });

    it('gives each flow a separate number and separate answers', async () => {
      set.onFlow = echoDatagrams;
      const flows = Array.from({ length: 50 }, () => openFlow().stream as DatagramStream);
      const readers = flows.map((stream) => new RecordingDatagrams(stream));
      for (const [index, stream] of flows.entries()) sendText(stream, `${index}`);
      await eventually(() => expect(readers.map(({ texts }) => texts)).toEqual(flows.map((_, index) => [`${index}`])));
      expect(new Set(flows.map(({ flow }) => flow)).size).toBe(50);
    });

    it('reports the reason of a refused flow once, and accepts no more datagrams for it', async () => {
      set.onFlow = (stream) => stream.refuse({ code: 'dial-refused', text: 'EMFILE' });
      const { answer, stream } = openFlow();
      await eventually(() => expect(answer.refused).toEqual([{ code: 'dial-refused', text: 'EMFILE' }]));
      await set.pass(LONG_MS);
      expect([answer.count, set.liveStreams, sendText(stream, 'late')]).toEqual([1, 0, 'away']);
    });

    it('gives up on a client that never answers a flow, and reports nothing for a flow reset before', async () => {
      const waited = openFlow();
      const left = openFlow();
      left.stream?.reset(UNWANTED);
      await set.pass(LONG_MS);
      await eventually(() => expect([waited.answer.refused.length, set.liveStreams]).toEqual([1, 0]));
      expect([waited.answer.count, left.answer.count]).toEqual([1, 0]);
    });

    it('resets flows when their carrier is lost, opens none without a carrier, and continues with the next', async () => {
      set.onFlow = echoDatagrams;
      const { answer, stream } = openFlow();
      await eventually(() => expect(answer.opened).toHaveLength(1));
      const reader = new RecordingDatagrams(stream as DatagramStream);
      await set.loseCarriers();
      expect([reader.reset?.code, sendText(stream, 'late')]).toEqual(['carrier-lost', 'away']);
      expect([openFlow().stream, set.liveStreams]).toEqual([null, 0]);
      await set.addCarrier();
      const again = openFlow();
      const next = new RecordingDatagrams(again.stream as DatagramStream);
      sendText(again.stream, 'again');
      await eventually(() => expect(next.texts).toEqual(['again']));
    });

    it('opens no flow while the client is away; open flows continue and count as retiring', async () => {
      set.onFlow = echoDatagrams;
      const { answer, stream } = openFlow();
      const reader = new RecordingDatagrams(stream as DatagramStream);
      await eventually(() => expect(answer.opened).toHaveLength(1));
      await set.goAway();
      expect([openFlow().stream, stream?.isRetiring]).toEqual([null, true]);
      sendText(stream, 'still');
      await eventually(() => expect(reader.texts).toEqual(['still']));
    });
  });
};
