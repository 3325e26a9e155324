// Tests of captured requests: the data that the edge keeps, the data that the API shows, and replays.
import { createHash } from 'node:crypto';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf, openHttp, startWeb, type WebService, wholeBody } from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const KEYS = { alice: 'key-of-alice', bob: 'key-of-bob' };
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

interface Capture {
  readonly id: string;
  readonly path: string;
  readonly status: number | null;
  readonly request_headers: Record<string, string>;
  readonly response_headers: Record<string, string>;
  readonly request_body: string | null;
  readonly response_body: string | null;
  readonly replay_of?: string;
}

const shared = new Harness();
let stack: Stack;
let web: WebService;
/** Requests that the service received, in order of arrival. */
const served: { url: string; authorization: string | undefined; body: string }[] = [];

beforeAll(async () => {
  const keys = Object.entries(KEYS).map(
    ([name, key]) => `[[auth.keys]]\naccount = "${name}"\nsha256 = "${sha256(key)}"`,
  );
  stack = await shared.stack({ tables: keys.join('\n') });
  web = shared.use(
    await startWeb(async (request, response) => {
      const body = (await wholeBody(request)).toString();
      served.push({ url: request.url ?? '', authorization: request.headers.authorization, body });
      response.writeHead(201, { 'content-type': 'application/json', 'set-cookie': 'session=SECRET' });
      response.end(JSON.stringify({ got: body.length, password: 'SECRET' }));
    }),
  );
});
afterAll(() => shared.close());

const capturesOf = async (tunnelId: string, token?: string): Promise<Capture[]> => {
  const answer = await stack.api(`/api/tunnels/${tunnelId}/requests`, token === undefined ? {} : { token });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { requests: Capture[] }).requests;
};

const FORM = {
  method: 'POST',
  path: '/form?page=1&token=SECRET',
  headers: {
    authorization: 'Bearer SECRET',
    cookie: 'a=SECRET',
    'x-api-key': 'SECRET',
    'content-type': 'application/x-www-form-urlencoded',
  },
  body: 'user=me&password=SECRET',
};

describe('captured requests', () => {
  it('are listed newest first, and no API response contains a secret', async ({ harness }) => {
    const { ready, endpoint } = await openHttp(harness, stack, web.port);
    await askHttp(endpoint, { path: '/first' });
    await askHttp(endpoint, FORM);
    const [newest, oldest] = await eventually(async () => {
      const list = await capturesOf(ready.tunnel_id);
      expect(list.filter(({ status }) => status === 201)).toHaveLength(2);
      return list;
    });
    expect(oldest).toMatchObject({ method: 'GET', path: '/first', tunnel_id: ready.tunnel_id });
    expect(newest).toMatchObject({
      method: 'POST',
      status: 201,
      request_size: FORM.body.length,
      request_body: 'user=me&password=[redacted]',
      aborted: false,
      error: null,
      replayable: true,
    });
    expect(newest?.request_headers).toMatchObject({ authorization: '[redacted]', cookie: '[redacted]' });
    expect(newest?.response_headers['set-cookie']).toBe('[redacted]');
    const whole = await (await stack.api(`/api/tunnels/${ready.tunnel_id}/requests`)).text();
    expect(whole).not.toContain('SECRET');
  });

  it('can be replayed: the service gets the whole request with its secrets, and the replay is captured as well', async ({
    harness,
  }) => {
    const { tunnel, ready, endpoint } = await openHttp(harness, stack, web.port);
    await askHttp(endpoint, { ...FORM, path: '/replayed?token=SECRET' });
    const [original] = await eventually(async () => {
      const list = await capturesOf(ready.tunnel_id);
      expect(list[0]).toMatchObject({ replayable: true, status: 201 });
      return list;
    });
    const path = `/api/tunnels/${ready.tunnel_id}/requests/${original?.id ?? ''}/replay`;
    const replay = await stack.api(path, { method: 'POST' });
    expect(replay.status).toBe(200);
    expect(await replay.json()).toMatchObject({ status: 201 });
    const sent = served.filter(({ url }) => url.startsWith('/replayed'));
    expect(sent).toHaveLength(2);
    expect(sent[1]).toEqual(sent[0]);
    expect(sent[0]).toMatchObject({ authorization: 'Bearer SECRET', body: FORM.body });
    await eventually(async () => expect((await capturesOf(ready.tunnel_id))[0]?.replay_of).toBe(original?.id));
    // Edge and terminal use the same id for a request.
    const shown = [await tunnel.waitFor('request'), await tunnel.waitFor('request', { nth: 2 })].map(({ id }) => id);
    expect(shown).toEqual((await capturesOf(ready.tunnel_id)).map(({ id }) => id).reverse());
    const unknown = await stack.api(path.replace(original?.id ?? '', 'req_unknown'), { method: 'POST' });
    expect(unknown.status).toBe(404);
  });

  it('are not kept for a tunnel with --no-capture', async ({ harness }) => {
    const { ready, endpoint } = await openHttp(harness, stack, web.port, ['--no-capture']);
    expect(ready['inspect_url']).toBeNull();
    expect((await askHttp(endpoint, { path: '/private' })).status).toBe(201);
    expect(await capturesOf(ready.tunnel_id)).toEqual([]);
  });

  it('are shown to their own account, to the operator without bodies, and to no other account', async ({ harness }) => {
    const tunnel = await harness.run(['http', String(web.port), '--json', '--server', stack.control], {
      env: { TUNNEL_API_KEY: KEYS.alice },
    });
    const ready = await tunnel.ready();
    await askHttp(endpointOf(ready.public_url), { ...FORM, path: '/of-alice' });
    await eventually(async () => {
      const [hers] = await capturesOf(ready.tunnel_id, KEYS.alice);
      expect(hers).toMatchObject({ path: '/of-alice', request_body: 'user=me&password=[redacted]' });
    });
    const [operators] = await capturesOf(ready.tunnel_id);
    expect(operators).toMatchObject({ path: '/of-alice', request_body: null, response_body: null });
    const path = `/api/tunnels/${ready.tunnel_id}/requests`;
    expect((await stack.api(path, { token: KEYS.bob })).status).toBe(404);
    expect((await stack.api(path, { token: 'nobody' })).status).toBe(401);
  });

  it('with a body above the capture limit cannot be replayed: 409', async ({ harness }) => {
    const { ready, endpoint } = await openHttp(harness, stack, web.port);
    await askHttp(endpoint, { method: 'POST', body: Buffer.alloc(100_000), path: '/large' });
    const [large] = await eventually(async () => {
      const list = await capturesOf(ready.tunnel_id);
      expect(list[0]).toMatchObject({ status: 201 });
      return list;
    });
    const path = `/api/tunnels/${ready.tunnel_id}/requests/${large?.id ?? ''}/replay`;
    const refused = await stack.api(path, { method: 'POST' });
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([
      409,
      'CAPTURE_NOT_REPLAYABLE',
    ]);
  });
});

describe('[capture] enabled = false', () => {
  it('keeps no request of any tunnel', async ({ harness }) => {
    const quiet = await harness.stack({ tables: '[capture]\nenabled = false' });
    const { ready, endpoint } = await openHttp(harness, quiet, web.port);
    expect((await askHttp(endpoint)).status).toBe(201);
    const answer = await quiet.api(`/api/tunnels/${ready.tunnel_id}/requests`);
    expect(((await answer.json()) as { requests: unknown[] }).requests).toEqual([]);
  });
});
