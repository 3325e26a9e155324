// Memory and credit of a stream when its reader changes during a delivery, as at the end of a response.
import { rethrow } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { ByteReader } from '../bytes/byte-duplex.ts';
import { type ReadBlock, readBuffers } from '../bytes/read-buffers.ts';
import { MemoryBudget, ReceiveWindow } from './flow-control.ts';
import { MuxStream, type StreamConnection } from './mux-stream.ts';

const WINDOW_BYTES = 1000;
const REASON = { code: 'cancelled', text: 'not needed any more' } as const;

const openedStream = () => {
  const seen = { keptReferences: 0, pins: 0, grantedBytes: 0 };
  const sent = { resets: 0 };
  const path = { roundTripMs: 1, shortestMs: 1, liveStreams: 1, isShared: false, nowMs: 0 };
  const connection: Partial<StreamConnection> = {
    retiring: false,
    sendReset: () => void (sent.resets += 1),
    sendWindow: (_stream, given) => {
      seen.grantedBytes += given.grant(path);
    },
    pinned: (delta) => {
      seen.pins += delta;
    },
    keptReference: () => {
      seen.keptReferences += 1;
    },
    forget: () => {},
    report: rethrow,
  };
  const answer = { onOpened: () => {}, onRefused: () => {}, abandon: rethrow };
  const window = new ReceiveWindow(new MemoryBudget(1 << 20), WINDOW_BYTES, 0);
  const stream = new MuxStream(connection as StreamConnection, 2, 0, { kind: 'opener', answer, window });
  stream.handleOpened(WINDOW_BYTES);
  return { stream, seen, sent };
};

/** Creates a reader: onData calls `act`, and returns false to keep the bytes. */
const keeping = (act: () => void): ByteReader => ({
  onData: () => {
    act();
    return false;
  },
  onDrain: () => {},
  onEnd: () => {},
  onReset: () => {},
  abandon: rethrow,
});

const deliver = (stream: MuxStream, bytes: number): boolean => stream.handleData(Buffer.alloc(bytes), 0, bytes, true);

it('memory kept by a reader stays kept when the stream ends in the meantime', () => {
  const { stream, seen } = openedStream();
  stream.read(keeping(() => stream.reset(REASON)));
  expect(deliver(stream, 10)).toBe(true);
  expect([stream.state, seen]).toEqual(['closed', { keptReferences: 1, pins: 0, grantedBytes: 0 }]);
});

it('a reader that replaces another during a read gets the full credit', () => {
  const { stream, seen } = openedStream();
  let isLast = false;
  stream.read(
    keeping(() => {
      if (isLast) stream.read(keeping(() => {}));
    }),
  );
  deliver(stream, 400);
  expect(seen).toEqual({ keptReferences: 1, pins: 1, grantedBytes: 0 });
  isLast = true;
  deliver(stream, WINDOW_BYTES - 400);
  expect(seen).toEqual({ keptReferences: 1, pins: 0, grantedBytes: WINDOW_BYTES });
});

/** Delivers a pooled block to a stream as a carrier does: the block returns to the pool unless a reader keeps a part. */
const handOn = (stream: MuxStream): ReadBlock => {
  const block = readBuffers.borrow() as ReadBlock;
  readBuffers.handing = block;
  stream.handleData(block.view, 0, 10, true);
  readBuffers.handing = null;
  readBuffers.giveBack(block, true);
  return block;
};

/** Returns whether the block is free in the pool, which lends the block returned last. */
const isFree = (block: ReadBlock): boolean => {
  const next = readBuffers.borrow() as ReadBlock;
  readBuffers.giveBack(next, true);
  return next === block;
};

it('memory kept by a splice is reused only after the splice resumes', () => {
  const { stream, seen } = openedStream();
  stream.read({ ...keeping(() => {}), isFreeOnResume: true });
  const block = handOn(stream);
  expect([isFree(block), seen.keptReferences, seen.pins]).toEqual([false, 0, 1]);
  stream.resume();
  expect([isFree(block), seen.pins]).toEqual([true, 0]);
});

it('memory kept by a splice is never reused if the stream ends first, because a socket may still write it', () => {
  const { stream, seen } = openedStream();
  stream.read({ ...keeping(() => {}), isFreeOnResume: true });
  const block = handOn(stream);
  stream.reset(REASON);
  stream.resume();
  expect([isFree(block), seen.pins]).toEqual([false, 0]);
});

it('a block shared by two streams is reused after both have resumed', () => {
  const both = [openedStream().stream, openedStream().stream];
  for (const stream of both) stream.read({ ...keeping(() => {}), isFreeOnResume: true });
  const block = readBuffers.borrow() as ReadBlock;
  readBuffers.handing = block;
  for (const stream of both) stream.handleData(block.view, 0, 10, true);
  readBuffers.handing = null;
  readBuffers.giveBack(block, true);
  const free = both.map((stream) => {
    stream.resume();
    return isFree(block);
  });
  expect(free).toEqual([false, true]);
});

it('memory outside the current read block is kept by reference, as for a sealed carrier', () => {
  const { stream, seen } = openedStream();
  stream.read({ ...keeping(() => {}), isFreeOnResume: true });
  const block = readBuffers.borrow() as ReadBlock;
  readBuffers.handing = block;
  deliver(stream, 10);
  readBuffers.handing = null;
  readBuffers.giveBack(block, true);
  expect([seen.keptReferences, block.pins]).toEqual([1, 0]);
});

it('cutting a stream notifies the peer and the reader once', () => {
  const { stream, sent } = openedStream();
  const heard: string[] = [];
  stream.read({ ...keeping(() => {}), onReset: ({ text }) => void heard.push(text) });
  stream.cut(REASON);
  stream.cut(REASON);
  expect([stream.state, sent.resets, heard]).toEqual(['closed', 1, [REASON.text]]);
});
