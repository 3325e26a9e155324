import type { ApiToken, CapturedRequest, TunnelLogEntry } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { type FirstRunData, isNewAccount, readFirstRun } from './first-run.ts';

const AT = '2030-01-01T00:00:00.000Z';
const key = (last_used_at: string | null): ApiToken => ({
  id: 'k',
  label: 'first',
  token_hash: '',
  created_at: AT,
  last_used_at,
  scope: null,
  tier: 'free',
  tunnel_limit: 3,
  status: 'active',
  unlimited: false,
  tunnel_count: 0,
});
const tunnel = (more: Partial<TunnelLogEntry> = {}): TunnelLogEntry => ({
  id: 't',
  tunnel_id: 'tun_1',
  protocol: 'http',
  label: 'web',
  registered_at: AT,
  unregistered_at: null,
  region_id: 'local',
  request_count: 0,
  bytes_proxied: 0,
  ...more,
});
const request = (status: number | null, error: string | null): CapturedRequest => ({
  id: 'r',
  tunnel_id: 'tun_1',
  at: AT,
  method: 'GET',
  path: '/',
  status,
  duration_ms: 1,
  error,
  request_headers: {},
  response_headers: {},
  request_size: 0,
  response_size: 0,
  request_body: null,
  response_body: null,
  aborted: false,
  replayable: true,
});
const read = (data: Partial<FirstRunData>) =>
  readFirstRun({ keys: [], tunnel: undefined, requests: [], ...data }, 8080);
const doneOf = (data: Partial<FirstRunData>): (boolean | string)[] => {
  const { key: first, service, tunnel: third, visit } = read(data);
  return [first.isDone, service.isDone, third.isDone, visit];
};

it('the first-run guide checks off each step as the API reports it', () => {
  expect(doneOf({})).toEqual([false, false, false, 'none']);
  expect(doneOf({ keys: [key(null)] })).toEqual([true, false, false, 'none']);
  expect(doneOf({ keys: [key(AT)], tunnel: tunnel() })).toEqual([true, false, true, 'none']);
  const answered = { keys: [key(AT)], tunnel: tunnel(), requests: [request(200, null)] };
  expect(doneOf(answered)).toEqual([true, true, true, 'answered']);
});

it('an error of the edge does not complete the service step, and the note says what is missing', () => {
  const { service, visit } = read({ tunnel: tunnel(), requests: [request(502, 'LOCAL_UNREACHABLE')] });
  expect([service.isDone, service.isTrouble, visit]).toEqual([false, true, 'lost']);
  expect(service.note).toContain('port 8080 (LOCAL_UNREACHABLE)');
});

it('a used API key does not count as a running client', () => {
  expect(read({ keys: [key(null)] }).key.note).toBe('API key “first” created. Not used yet.');
  expect(read({ keys: [key(AT)] }).key.note).toBe('API key “first” created. Already used.');
  expect(read({ keys: [key(null)] }).tunnel.note).toBe('Waiting for your first tunnel');
  expect(read({ keys: [key(AT)] }).tunnel.note).toBe('Waiting for your first tunnel');
});

it('an account is new until the first request or the fifth tunnel', () => {
  const counts = (...all: number[]) => isNewAccount(all.map((request_count) => ({ request_count })));
  expect([counts(), counts(0), counts(0, 0, 0, 0)]).toEqual([true, true, true]);
  expect([counts(1), counts(0, 3), counts(0, 0, 0, 0, 0)]).toEqual([false, false, false]);
});

it('a request count completes the guide when captured requests are missing', () => {
  expect(read({ tunnel: tunnel({ request_count: 1 }) }).visit).toBe('answered');
});

it('an ended tunnel completes the tunnel step', () => {
  const { tunnel: step } = read({ tunnel: tunnel({ unregistered_at: AT, request_count: 2 }) });
  expect([step.isDone, step.note]).toEqual([true, expect.stringContaining('has stopped')]);
});
