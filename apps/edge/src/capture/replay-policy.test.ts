// Replays of requests that rules have changed. The same service gets exactly the same request again, and no rule runs.
import type { StreamHead } from '@tunnel/protocol';
import { afterEach, expect, it } from 'vitest';
import { dialLocal } from '../ingress/http/http.fixture.ts';
import { type PolicyStand, startPolicyStand } from '../ingress/http/policy-stand.fixture.ts';
import { presentCapture } from './capture-service.ts';
import type { CaptureRecorder } from './recorder.ts';
import { Replays } from './replay.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface ReplayStand extends PolicyStand {
  readonly heads: StreamHead[];
  readonly seen: string[];
  captured(): CaptureRecorder;
  replay(original: CaptureRecorder, path?: string): Promise<CaptureRecorder>;
}

const start = async (): Promise<ReplayStand> => {
  const heads: StreamHead[] = [];
  const seen: string[] = [];
  const stand: PolicyStand = await startPolicyStand(
    [
      { match: { path: ['/no/**'] }, deny: 403 },
      { rewrite: { strip_prefix: '/api', add_prefix: '/v2' } },
      { request_headers: { set: { 'x-by': 'rule' } } },
      { match: { path: ['/api/**'] }, route: 'api' },
    ],
    {
      listener: (request, response) => {
        seen.push(`${request.url} ${String(request.headers['x-by'])}`);
        response.end('served');
      },
      onStream: (stream, head) => {
        heads.push(head);
        dialLocal(stream, stand.service.port);
      },
    },
  );
  cleanups.push(() => stand.stop());
  const { ingress: http, clock, tunnel } = stand.http;
  const replays = new Replays({ store: stand.captures, clock, http });
  const captured = (): CaptureRecorder => stand.captures.list('tun_1', 1).recorders[0] as CaptureRecorder;
  const replay = (original: CaptureRecorder, path?: string): Promise<CaptureRecorder> =>
    replays.replay({
      tunnel,
      original,
      visitorAddress: '192.0.2.1',
      ...(path === undefined ? {} : { edit: { path } }),
    });
  return { ...stand, heads, seen, captured, replay };
};

const shownPath = async (stand: ReplayStand, recorder: CaptureRecorder): Promise<string> =>
  (await presentCapture(recorder, { tunnelId: 'tun_1', withBodies: true, idOf: (one) => stand.captures.idOf(one) }))
    .path;

it('a replay repeats the changed request to the same service any number of times and runs no rule', async () => {
  const stand = await start();
  await stand.visit('HTTP/1.1', '/api/x?a=1');
  const original = stand.captured();
  expect(await shownPath(stand, original)).toBe('/api/x?a=1');
  const once = await stand.replay(original);
  const twice = await stand.replay(once);
  expect(stand.seen).toEqual(Array.from({ length: 3 }, () => '/v2/x?a=1 rule'));
  expect(new Set(stand.heads.map(({ service }) => service))).toEqual(new Set(['api']));
  expect([once.policy, twice.policy]).toEqual([null, null]);
  expect(stand.policy.current?.counts.matched).toEqual([undefined, 1, 1, 1]);
});

it('a replay with the path as shown does not count as edited', async () => {
  const stand = await start();
  await stand.visit('HTTP/1.1', '/api/x');
  const original = stand.captured();
  const kept = await stand.replay(original, '/api/x');
  const edited = await stand.replay(original, '/other');
  expect(stand.seen).toEqual(['/v2/x rule', '/v2/x rule', '/other rule']);
  expect([kept.info.isEdited, edited.info.isEdited]).toEqual([false, true]);
});

it('a request that a rule rejected cannot be replayed and never reaches the service', async () => {
  const stand = await start();
  expect((await stand.visit('HTTP/1.1', '/no/x')).status).toBe(403);
  await expect(stand.replay(stand.captured())).rejects.toMatchObject({ code: 'CAPTURE_NOT_REPLAYABLE' });
  expect(stand.seen).toEqual([]);
});
