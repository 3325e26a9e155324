// Sessions in states found after floods of invalid visitors. A test cannot force a real session into such a state, because it depends on
// a race.
import type { Http2Session } from 'node:http2';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { HTTP2_QUIET_MS, Http2Liveness } from './http2-liveness.ts';

const QUIET_MS = HTTP2_QUIET_MS;

/** Creates a session with unanswered pings and no other activity. */
const sessionThatIs = (closed: boolean): Http2Session =>
  ({ destroyed: false, closed, ping: () => true, state: { outboundQueueSize: 0 } }) as unknown as Http2Session;

it.each([
  { closed: true, requestsClosed: true, isOver: true },
  { closed: true, requestsClosed: false, isOver: false },
  { closed: false, requestsClosed: true, isOver: false },
])(
  'a quiet session ends only if it and all its requests are closed: closed $closed, its requests $requestsClosed',
  ({ closed, requestsClosed, isOver }) => {
    const liveness = new Http2Liveness(sessionThatIs(closed), new Socket(), 0);
    const look = (nowMs: number): boolean => liveness.isOver(nowMs, () => requestsClosed);
    expect(look(QUIET_MS - 1)).toBe(false);
    const looks = Array.from({ length: 100 }, (_, n) => look(QUIET_MS + n * 1000));
    expect(looks.includes(true)).toBe(isOver);
  },
);
