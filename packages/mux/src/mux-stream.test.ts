// What a stream owes to memory and credit when its reader goes in the midst of a delivery, as at the end of a response.
import { rethrow } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { ByteReader } from './byte-duplex.ts';
import { MemoryBudget, ReceiveWindow } from './flow-control.ts';
import { MuxStream, type StreamConnection } from './mux-stream.ts';

const WINDOW_BYTES = 1000;
const REASON = { code: 'cancelled', text: 'not needed any more' } as const;

const openedStream = () => {
  const seen = { keptReferences: 0, pins: 0, grantedBytes: 0 };
  const path = { roundTripMs: 1, shortestMs: 1, liveStreams: 1, isShared: false, nowMs: 0 };
  const connection: Partial<StreamConnection> = {
    retiring: false,
    sendReset: () => {},
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
  return { stream, seen };
};

/** Keeps what it gets, and does `act` before it says so. */
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

it('memory that its reader keeps is not free because the stream ended meanwhile', () => {
  const { stream, seen } = openedStream();
  stream.read(keeping(() => stream.reset(REASON)));
  expect(deliver(stream, 10)).toBe(true);
  expect([stream.state, seen]).toEqual(['closed', { keptReferences: 1, pins: 0, grantedBytes: 0 }]);
});

it('a reader that follows in the midst of it has the whole credit for itself', () => {
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
