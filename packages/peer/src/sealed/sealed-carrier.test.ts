import { randomBytes } from 'node:crypto';
import { type ByteDuplex, MUX_LIMITS, type MuxStream } from '@tunnel/mux';
import {
  deterministicBytes,
  type EndKind,
  endPair,
  eventually,
  FakeClock,
  hashOf,
  RecordingReader,
  rethrow,
} from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { derivePsk } from './noise.ts';
import { PEER_HANDSHAKE_TIMEOUT_MS } from './sealed-carrier.ts';
import { RecordingOwner, type SealedSessions, sealedEnd, sealedSessions } from './sealed-pair.fixture.ts';
import { PEER_SEND_QUEUE_BYTES } from './sealed-writer.ts';

const MiB = 1024 * 1024;
const HEAD = { tunnelId: 'peer', visitor: '127.0.0.1:1' };

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const sessions = async (
  kind: EndKind,
  onStream: (stream: MuxStream) => void,
  wrap?: (duplex: ByteDuplex) => ByteDuplex,
): Promise<SealedSessions> => {
  const pair = await sealedSessions(kind, { onStream }, wrap);
  closing.push(pair.close);
  return pair;
};

const open = ({ subscriber }: SealedSessions): Promise<MuxStream> =>
  new Promise((resolve, reject) => {
    const answer = {
      onOpened: resolve,
      onRefused: (reason: { text: string }) => reject(new Error(reason.text)),
      abandon: rethrow,
    };
    if (subscriber.open(HEAD, answer) === null) reject(new Error('no carrier'));
  });

const ends = async (): Promise<{ a: ByteDuplex; b: ByteDuplex; close(): void }> => {
  const pair = await endPair('stream-plain');
  closing.push(pair.close);
  return pair;
};

describe.each<EndKind>(['stream-plain', 'stream-tls', 'socket'])('a sealed carrier over a %s', (kind) => {
  it('carries streams both ways unchanged, with half-close', async () => {
    const bytes = Buffer.from(deterministicBytes(5 * MiB, 3));
    let accepted: MuxStream | null = null;
    let atPublisher: RecordingReader | null = null;
    const pair = await sessions(kind, (stream) => {
      stream.accept();
      accepted = stream;
      atPublisher = new RecordingReader(stream);
    });
    const stream = await open(pair);
    const atSubscriber = new RecordingReader(stream);
    stream.write(bytes, 0, bytes.length, false);
    stream.end();
    await eventually(() => expect(atPublisher?.ended).toBe(true));
    expect(atPublisher!.digest()).toBe(hashOf(bytes));
    accepted!.write(bytes, 100, 1 * MiB, false);
    accepted!.end();
    await eventually(() => expect(atSubscriber.ended).toBe(true));
    expect(atSubscriber.digest()).toBe(hashOf(bytes.subarray(100, 1 * MiB)));
  });

  it('carries small and large frames in the order of sending', async () => {
    const bytes = Buffer.from(deterministicBytes(3 * MiB, 4));
    let atPublisher: RecordingReader | null = null;
    const pair = await sessions(kind, (stream) => {
      stream.accept();
      atPublisher = new RecordingReader(stream);
    });
    const stream = await open(pair);
    new RecordingReader(stream);
    let at = 0;
    for (let piece = 1; at < bytes.length; piece = (piece * 7) % 300_007) {
      const end = Math.min(bytes.length, at + piece);
      stream.write(bytes, at, end, false);
      at = end;
    }
    stream.end();
    await eventually(() => expect(atPublisher?.ended).toBe(true));
    expect(atPublisher!.digest()).toBe(hashOf(bytes));
  });

  it('stops only the stream of a stalled reader, within bounded memory', async () => {
    const readers: RecordingReader[] = [];
    const pair = await sessions(kind, (stream) => {
      stream.accept();
      const reader = new RecordingReader(stream);
      reader.stalled = readers.length === 0;
      readers.push(reader);
    });
    const stalled = await open(pair);
    const moving = await open(pair);
    new RecordingReader(stalled);
    const bytes = Buffer.alloc(64 * 1024);
    let written = 0;
    while (written < 64 * MiB && stalled.write(bytes, 0, bytes.length, false)) {
      written += bytes.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(written).toBeLessThan(64 * MiB);
    expect(pair.carriers[0].queuedBytes).toBeLessThan(PEER_SEND_QUEUE_BYTES);
    new RecordingReader(moving);
    moving.write(Buffer.from('well'), 0, 4, false);
    await eventually(() => expect(readers[1]?.bytes).toBe(4));
  });
});

describe('the handshake of a sealed carrier', () => {
  it('passes a hello to each side, and messages can follow between frames', async () => {
    const pair = await sessions('stream-plain', () => {});
    await eventually(() => expect(pair.owners[1].proven).toBe('hello of the initiator'));
    expect(pair.owners[0].proven).toBe('hello of the responder');
    expect(pair.carriers[0].handshakeHash).toEqual(pair.carriers[1].handshakeHash);
    pair.carriers[0].sendMessage(Buffer.from('a word'));
    pair.carriers[1].sendMessage(Buffer.from('another'));
    await eventually(() => expect(pair.owners.map(({ messages }) => messages)).toEqual([['another'], ['a word']]));
  });

  it('fails at both ends when the secrets differ, and reveals nothing else', async () => {
    const { a, b } = await ends();
    const one = new RecordingOwner();
    const two = new RecordingOwner();
    sealedEnd(b, 'responder', two);
    sealedEnd(a, 'initiator', one, { psk: derivePsk('another secret of tests', 'office-db') });
    await eventually(() => expect([one.failed, two.failed]).toEqual(['proof', 'proof']));
    expect([one.proven, two.proven]).toEqual([null, null]);
  });

  it('fails at both ends when the response was altered', async () => {
    const { a, b } = await ends();
    const one = new RecordingOwner();
    const two = new RecordingOwner();
    sealedEnd(b, 'responder', two);
    sealedEnd(altering(a, 40), 'initiator', one);
    await eventually(() => expect([one.failed, two.failed]).toEqual(['proof', 'proof']));
    expect(two.proven).toBeNull();
  });

  it('cannot be completed by replaying a recorded first message', async () => {
    const first = await ends();
    const recorded: Buffer[] = [];
    first.b.read({
      onData: (bytes, start, end) => {
        recorded.push(Buffer.from(bytes.subarray(start, end)));
        return true;
      },
      onDrain: () => {},
      onEnd: () => {},
      onReset: () => {},
      abandon: rethrow,
    });
    sealedEnd(first.a, 'initiator', new RecordingOwner());
    await eventually(() => expect(recorded.length).toBeGreaterThan(0));
    const { a, b } = await ends();
    const owner = new RecordingOwner();
    sealedEnd(b, 'responder', owner);
    const atThief = new RecordingReader(a);
    const message = Buffer.concat([...recorded, Buffer.from('0020', 'hex'), randomBytes(32)]);
    a.write(message, 0, message.length, false);
    await eventually(() => expect(owner.failed).toBe('proof'));
    expect(owner.proven).toBeNull();
    await eventually(() => expect(atThief.ended || atThief.reset !== null).toBe(true));
  });

  it.each([
    ['garbage', randomBytes(300)],
    ['a length over the bound of a handshake', Buffer.from([0xff, 0xff, 1, 2, 3])],
    ['a message that is too short', Buffer.from([0, 3, 1, 2, 3])],
    ['a refusal', Buffer.from([0, 0])],
  ])('fails on %s', async (_what, bytes) => {
    const { a, b } = await ends();
    const owner = new RecordingOwner();
    sealedEnd(b, 'responder', owner);
    new RecordingReader(a);
    a.write(bytes, 0, bytes.length, false);
    // Ends the connection, because the responder would wait for the rest of a long message.
    a.end();
    await eventually(() => expect(owner.failed).not.toBeNull());
  });

  it('times out when the peer is silent, and leaves no timer behind', async () => {
    const clock = new FakeClock();
    const { a } = await ends();
    const owner = new RecordingOwner();
    sealedEnd(a, 'initiator', owner, { clock });
    await clock.advance(PEER_HANDSHAKE_TIMEOUT_MS - 1);
    expect(owner.failed).toBeNull();
    await clock.advance(1);
    expect([owner.failed, clock.pendingTimers]).toEqual(['lost', 0]);
  });
});

describe('a relay that tampers with a sealed carrier', () => {
  it.each([0, 1, 5_000])('and alters byte %i ends the carrier, and no altered byte is passed on', async (offset) => {
    let atPublisher: RecordingReader | null = null;
    // The altered byte lies behind the two handshake messages.
    const pair = await sessions(
      'stream-plain',
      (stream) => {
        stream.accept();
        atPublisher = new RecordingReader(stream);
        const bytes = Buffer.alloc(100_000, 'x');
        stream.write(bytes, 0, bytes.length, false);
      },
      (duplex) => altering(duplex, 2 + 48 + 'hello of the responder'.length + 200 + offset),
    );
    const stream = await open(pair).catch(() => null);
    const reader = stream === null ? null : new RecordingReader(stream);
    await eventually(() => expect([pair.subscriber.openCarriers, pair.publisher.openCarriers]).toEqual([0, 0]));
    if (reader !== null) expect(reader.digest()).toBe(hashOf(Buffer.alloc(reader.bytes, 'x')));
    expect(atPublisher === null || (atPublisher as RecordingReader).reset !== null).toBe(true);
  });

  it('and cuts the connection causes resets, not ends', async () => {
    let atPublisher: RecordingReader | null = null;
    const pair = await sessions('stream-plain', (stream) => {
      stream.accept();
      atPublisher = new RecordingReader(stream);
    });
    const stream = await open(pair);
    const atSubscriber = new RecordingReader(stream);
    pair.carriers[0].destroy('cut');
    await eventually(() =>
      expect([atSubscriber.reset?.code, atPublisher?.reset?.code]).toEqual(['carrier-lost', 'carrier-lost']),
    );
    expect([atSubscriber.ended, atPublisher!.ended]).toEqual([false, false]);
    expect(MUX_LIMITS.CARRIER_LINGER_MS).toBeGreaterThan(0);
  });
});

/** Wraps a duplex and flips one bit of the received byte with the index `at`. */
const altering = (duplex: ByteDuplex, at: number): ByteDuplex => {
  let seen = 0;
  return {
    read: (reader) =>
      duplex.read({
        onData: (bytes, start, end, borrowed) => {
          if (at >= seen && at < seen + end - start) bytes[start + at - seen] = (bytes[start + at - seen] ?? 0) ^ 4;
          seen += end - start;
          return reader.onData(bytes, start, end, borrowed);
        },
        onDrain: () => reader.onDrain(),
        onEnd: () => reader.onEnd(),
        onReset: (reason) => reader.onReset(reason),
        abandon: (error, where) => reader.abandon(error, where),
      }),
    write: (bytes, start, end, borrowed) => duplex.write(bytes, start, end, borrowed),
    resume: () => duplex.resume(),
    end: (onFlushed) => duplex.end(onFlushed),
    reset: (reason) => duplex.reset(reason),
  };
};
