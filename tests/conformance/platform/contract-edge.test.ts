// Contract rows about data that only an edge has: captured requests, replays, health, and a region that does not answer.
import { type CapturedRequest, type CaptureList, capturedRequest, captureList, healthEvents } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import { onSharedPlatform, PATIENCE_MS, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { entryWhen, lostTunnel, openTunnel, startService, visitHttp } from './tunnels.fixture.ts';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
beforeAll(async () => {
  ann = await harness.person();
});

const timed = async (ask: () => Promise<Answer>): Promise<{ answer: Answer; tookMs: number }> => {
  const began = performance.now();
  return { answer: await ask(), tookMs: performance.now() - began };
};

const requestsOf = async (tunnelId: string): Promise<CaptureList> =>
  captureList.parse((await harness.get(`/usage/tunnels/${tunnelId}/requests`, ann.token)).body);
const firstRequest = (tunnelId: string): Promise<CapturedRequest> =>
  eventually(
    async () => {
      const [request] = (await requestsOf(tunnelId)).requests;
      if (request === undefined) throw new Error('no request yet');
      return request;
    },
    { timeoutMs: PATIENCE_MS },
  );

describe('Contract', () => {
  it(row('Contract', 22), async () => {
    const path = await lostTunnel(harness, ann);
    const away = await harness.get(`${path}/requests`, ann.token);
    expect([...refusalOf(away), away.error]).toEqual([502, 'EDGE_AWAY', 'region far-away does not answer']);
    const tcp = await harness.get(`${await lostTunnel(harness, ann, { protocol: 'tcp' })}/requests`, ann.token);
    expect(refusalOf(tcp)).toEqual([400, 'TUNNEL_NOT_HTTP']);
    expect(tcp.error).toContain('tcp');
  });

  it(row('Contract', 22, 'an edge that does not answer in time'), async () => {
    const silent = await startService(harness, () => {});
    await harness.edgeAt(`http://127.0.0.1:${silent}`, 'silent');
    const path = await lostTunnel(harness, ann, { region: 'silent' });
    const { answer, tookMs } = await timed(() => harness.get(`${path}/requests`, ann.token));
    expect(refusalOf(answer)).toEqual([502, 'EDGE_AWAY']);
    expect([tookMs > 4500, tookMs < 20_000]).toEqual([true, true]);
    const pools = await timed(() => harness.get('/load-balancing/groups', ann.token));
    expect(pools.answer.body).toMatchObject({ warnings: expect.arrayContaining([expect.stringContaining('silent')]) });
    expect(pools.tookMs).toBeLessThan(15_000);
  });

  it(row('Versioning', 2), async () => {
    const { tunnel, key } = await openTunnel(harness, ann);
    await entryWhen(harness, ann, tunnel.tunnelId);
    await visitHttp(tunnel, '/orders?token=SECRET');
    await firstRequest(tunnel.tunnelId);
    const atEdge = await harness.server.api(`/api/tunnels/${tunnel.tunnelId}/requests`, { token: key.token });
    const atPlatform = await harness.get(`/usage/tunnels/${tunnel.tunnelId}/requests`, ann.token);
    expect(atPlatform.body).toEqual(await atEdge.json());
    expect(atPlatform.text).not.toContain('SECRET');
  });

  it(row('Contract', 22, 'a tunnel that has ended'), async () => {
    const { client, tunnel } = await openTunnel(harness, ann);
    await visitHttp(tunnel);
    await client.close();
    await entryWhen(harness, ann, tunnel.tunnelId, ({ unregistered_at }) => unregistered_at !== null);
    expect((await firstRequest(tunnel.tunnelId)).status).toBe(200);
  });

  it(row('Contract', 36), async () => {
    let isUp = true;
    const localPort = await startService(harness, (_, response) => void response.writeHead(isUp ? 200 : 503).end());
    const healthCheck = { type: 'http', path: '/', intervalSecs: 0.2, timeoutSecs: 2, maxFailed: 1 } as const;
    const { client, tunnel } = await openTunnel(harness, ann, { localPort, healthCheck });
    await entryWhen(harness, ann, tunnel.tunnelId);
    const path = `/usage/tunnels/${tunnel.tunnelId}/health-events`;
    const changes = async (): Promise<boolean[]> =>
      healthEvents.parse((await harness.get(path, ann.token)).body).map(({ healthy }) => healthy);
    await eventually(async () => expect(await changes()).toEqual([true]), { timeoutMs: PATIENCE_MS });
    isUp = false;
    await eventually(async () => expect(await changes()).toEqual([true, false]), { timeoutMs: PATIENCE_MS });
    await client.close();
    await entryWhen(harness, ann, tunnel.tunnelId, ({ unregistered_at }) => unregistered_at !== null);
    expect(await changes()).toEqual([]);
  });

  it(row('Contract', 37), async () => {
    const seen: string[] = [];
    const localPort = await startService(harness, (request, response) => {
      seen.push(`${request.method} ${request.url}`);
      response.end('hello');
    });
    const { tunnel } = await openTunnel(harness, ann, { localPort });
    await entryWhen(harness, ann, tunnel.tunnelId);
    await visitHttp(tunnel, '/orders?page=2');
    const { id } = await firstRequest(tunnel.tunnelId);
    const replay = (requestId: string) =>
      harness.ask('POST', `/usage/tunnels/${tunnel.tunnelId}/requests/${requestId}/replay`, { token: ann.token });
    const answer = await replay(id);
    expect(answer.status).toBe(200);
    expect(capturedRequest.parse(answer.body)).toMatchObject({ replay_of: id, status: 200, path: '/orders?page=2' });
    expect(seen).toEqual(['GET /orders?page=2', 'GET /orders?page=2']);
    for (const odd of ['nothing', '%00', '%F0%9F%98%80', 'a'.repeat(3000), '..%2f..']) {
      expect([odd.slice(0, 20), ...refusalOf(await replay(odd))]).toEqual([odd.slice(0, 20), 404, 'CAPTURE_UNKNOWN']);
    }
  });
});
