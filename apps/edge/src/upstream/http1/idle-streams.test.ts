// Idle connections to local services: which connection the next request takes, and which connections are closed.

import { rethrow } from '@tunnel/testkit';
import { beforeEach, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import type { UpstreamStream } from '../upstream.ts';
import type { Service } from '../upstream-request.ts';
import { IdleStreams } from './idle-streams.ts';

const SOME_MS = 1000;
const ALWAYS = (): boolean => true;

let idle: IdleStreams;
/** Names of the closed streams, in order. */
let closed: string[];

beforeEach(() => {
  idle = new IdleStreams(rethrow);
  closed = [];
});

const serviceOf = (tunnelId: string): Service => ({ tunnelId }) as Service;
const WEB = serviceOf('tun_web');

interface FakeStream {
  readonly name: string;
  state: 'open' | 'closed';
  isRetiring: boolean;
  hasGrown: boolean;
}

const streamOf = (name: string): FakeStream & UpstreamStream => {
  const stream = {
    ...{ name, state: 'open', isRetiring: false, hasGrown: false },
    read: () => {},
    end: () => {},
    reset: () => {
      stream.state = 'closed';
      closed.push(name);
    },
  };
  return stream as unknown as FakeStream & UpstreamStream;
};

const give = (name: string, sinceMs: number, service = WEB, serviceName: string | null = null): FakeStream => {
  const stream = streamOf(name);
  idle.give({ service, serviceName, stream, requests: 1, sinceMs });
  return stream;
};

const take = (nowMs: number, service = WEB, serviceName: string | null = null): string | null => {
  const taken = idle.take(service, serviceName, nowMs, SOME_MS);
  return taken === null ? null : (taken.stream as unknown as FakeStream).name;
};

it('takes the most recently used stream, each stream once', () => {
  for (const name of ['a', 'b', 'c']) give(name, 0);
  expect([take(1), take(1)]).toEqual(['c', 'b']);
  give('d', 2);
  expect([take(3), take(3), take(3)]).toEqual(['d', 'a', null]);
  expect(closed).toEqual([]);
});

it('separates tunnels, and the services of a tunnel', () => {
  const other = serviceOf('tun_other');
  give('web', 0);
  give('api', 0, WEB, 'api');
  give('other', 0, other);
  expect([take(1, WEB, 'api'), take(1, other), take(1), take(1)]).toEqual(['api', 'other', 'web', null]);
});

it('passes over closed and retiring streams, and streams of an earlier registration of the tunnel', () => {
  give('good', 0);
  give('earlier', 0, serviceOf('tun_web'));
  give('retiring', 0).isRetiring = true;
  give('closed', 0).state = 'closed';
  expect(take(1)).toBe('good');
  expect(closed).toEqual(['closed', 'retiring', 'earlier']);
  expect(take(1)).toBeNull();
});

it('takes no stream that has been idle for too long, and leaves older streams to the sweep', () => {
  give('older', 0);
  give('old', 1);
  expect(take(2 + SOME_MS)).toBeNull();
  expect(closed).toEqual(['old']);
  idle.sweep(EDGE_LIMITS.HTTP_IDLE_STREAM_MS, ALWAYS);
  expect(closed).toEqual(['old', 'older']);
});

it('sweeps old, closed and unlisted streams, and keeps the order of the others', () => {
  const other = serviceOf('tun_other');
  give('oldest', 0);
  give('a', 10);
  give('gone', 10).state = 'closed';
  give('b', 10);
  give('unlisted', 10, other);
  idle.sweep(EDGE_LIMITS.HTTP_IDLE_STREAM_MS, (service) => service === WEB);
  expect(closed.toSorted()).toEqual(['gone', 'oldest', 'unlisted']);
  expect([take(11), take(11), take(11)]).toEqual(['b', 'a', null]);
});

it('keeps a limited number of streams per service, also after streams in the middle were closed', () => {
  const most = 256;
  const streams = Array.from({ length: most }, (_, at) => give(`s${at}`, 0));
  give('one too many', 0);
  expect(closed).toEqual(['one too many']);
  for (const at of [0, 100, 200]) (streams[at] as FakeStream).state = 'closed';
  idle.sweep(1, ALWAYS);
  closed = [];
  for (let at = 0; at < 4; at++) give(`new${at}`, 0);
  expect(closed).toEqual(['new3']);
});

it('closes all streams at the end', () => {
  give('a', 0);
  give('b', 0);
  give('other', 0, serviceOf('tun_other'));
  idle.letClose({ service: WEB, serviceName: null, stream: streamOf('closing'), requests: 1, sinceMs: 0 });
  idle.close();
  expect(closed.toSorted()).toEqual(['a', 'b', 'closing', 'other']);
  expect(take(1)).toBeNull();
});
