import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADMIN_TOKEN, ALICE_KEY, PLATFORM_SECRET, type RestFixture, startRest } from './rest.fixture.ts';

let rest: RestFixture;

beforeEach(async () => {
  rest = await startRest({ perMinute: 3 });
});
afterEach(() => rest.stop());

const asAccount = (account: string) => ({ 'x-tunnel-account': account });
const idsOf = async (response: Response): Promise<string[]> =>
  ((await response.json()) as { tunnel_id: string }[]).map(({ tunnel_id }) => tunnel_id);

describe('a request with the platform’s secret', () => {
  it('sees exactly what the account in its header sees', async () => {
    const response = await rest.request('/api/tunnels', { token: PLATFORM_SECRET, headers: asAccount('bob') });
    expect(await idsOf(response)).toEqual(['tun_bob']);
    const foreign = await rest.request('/api/tunnels/tun_bob', { token: PLATFORM_SECRET, headers: asAccount('alice') });
    expect(foreign.status).toBe(404);
  });

  it.each([{}, { 'x-tunnel-account': '' }])('is rejected with 401 without an account', async (headers) => {
    const response = await rest.request('/api/tunnels', { token: PLATFORM_SECRET, headers });
    expect(response.status).toBe(401);
  });

  it('can read the tunnels, groups, health events and replays of the account in its header', async () => {
    const ask = (path: string, method = 'GET') =>
      rest.request(path, { method, token: PLATFORM_SECRET, headers: asAccount('alice') });
    expect(await idsOf(await ask('/api/tunnels'))).toEqual(['tun_alice']);
    expect((await ask('/api/groups')).status).toBe(200);
    expect((await ask('/api/tunnels/tun_alice/health-events')).status).toBe(200);
    expect((await ask('/api/tunnels/tun_alice/requests/cap_1/replay', 'POST')).status).toBe(400);
  });

  it('is not blocked by wrong keys from the same address', async () => {
    for (let n = 0; n < 4; n += 1) await rest.request('/api/tunnels', { token: `guess-${n}` });
    expect((await rest.request('/api/tunnels', { token: ALICE_KEY })).status).toBe(429);
    const response = await rest.request('/api/tunnels', { token: PLATFORM_SECRET, headers: asAccount('alice') });
    expect(response.status).toBe(200);
  });
});

describe('a request without the platform’s secret', () => {
  it('cannot choose an account with the header', async () => {
    const response = await rest.request('/api/tunnels', { token: ALICE_KEY, headers: asAccount('bob') });
    expect(await idsOf(response)).toEqual(['tun_alice']);
    const admin = await rest.request('/api/tunnels', { token: ADMIN_TOKEN, headers: asAccount('bob') });
    expect(await idsOf(admin)).toHaveLength(3);
    expect((await rest.request('/api/tunnels', { headers: asAccount('bob') })).status).toBe(401);
    const near = await rest.request('/api/tunnels', { token: `${PLATFORM_SECRET}x`, headers: asAccount('bob') });
    expect(near.status).toBe(401);
  });
});
