// Heads, tunnels and a store for tests of captures. Used by tests only.

import { parseRequestHead, parseResponseHead, type RequestHead, type ResponseHead } from '@tunnel/http1';
import { FakeClock } from '@tunnel/testkit';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { MuxUpstream } from '../upstream/upstream.ts';
import { CaptureStore } from './capture-store.ts';

/** Creates a request head. `line` has the method and the target. */
export const requestHead = (line: string, ...fields: string[]): RequestHead => {
  const head = parseRequestHead(`${[`${line} HTTP/1.1`, 'Host: web.localhost', ...fields].join('\r\n')}\r\n\r\n`);
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

export const responseHead = (status: number, ...fields: string[]): ResponseHead => {
  const text = `${[`HTTP/1.1 ${status} Said`, ...fields].join('\r\n')}\r\n\r\n`;
  const head = parseResponseHead(text, { method: 'GET', upgrade: 'websocket' });
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

export const captureTunnel = (tunnelId: string, http: Partial<Tunnel['http']> = {}): Tunnel =>
  ({
    tunnelId,
    protocol: 'http',
    publicUrl: `http://${tunnelId}.localhost`,
    owner: { kind: 'account', accountId: `owner of ${tunnelId}` },
    http: { hostHeader: null, localProtocol: 'http1', capture: true, ...http },
    counters: new TunnelCounters(),
    upstream: new MuxUpstream(),
  }) as unknown as Tunnel;

export const captureStore = (options: { enabled?: boolean; bodies?: boolean; accountShare?: number } = {}) => {
  const clock = new FakeClock();
  const store = new CaptureStore({ enabled: true, bodies: true, accountShare: 0.25, clock, runId: 'run', ...options });
  return { clock, store };
};
