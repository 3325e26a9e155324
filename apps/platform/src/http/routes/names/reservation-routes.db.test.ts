import { type Reservation, reservation, reservations } from '@tunnel/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { UserActor } from '../../../services/shared/service-context.ts';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addReservationRoutes } from './reservation-routes.ts';

const NOON = Date.UTC(2030, 5, 15, 12);
const DAY_MS = 24 * 60 * 60 * 1000;
const names = { hold_days: 30, assigned_hold_hours: 24, grace_days: 7 };

let fixture: PlatformFixture;
beforeAll(async () => {
  fixture = await openPlatformFixture((app, deps) => addReservationRoutes(app, { ...deps, names, accountShare: 0.25 }));
});
beforeEach(async () => {
  names.grace_days = 7;
  fixture.clock.setWallClock(NOON);
  const { db } = fixture.database;
  for (const table of ['names', 'tunnel_log', 'edges', 'edge_changes'] as const) await db.deleteFrom(table).execute();
  await db.updateTable('plans').set({ reserved_limit: 3, allow_custom_subdomains: true }).execute();
  await addEdge('eu');
});
afterAll(() => fixture.close());

const addEdge = (region_id: string, more: Record<string, unknown> = {}) =>
  fixture.database.db
    .insertInto('edges')
    .values({
      name: region_id,
      credential_hash: region_id,
      region_id,
      http_url: `http://${region_id}.test:8000`,
      tcp_from: 20_000,
      tcp_to: 20_002,
      udp_from: 20_100,
      udp_to: 20_199,
      last_heartbeat_at: new Date(NOON),
      ...more,
    })
    .execute();

let tunnels = 0;
/** Adds an open tunnel. */
const serve = async (user: UserActor, label: string, more: Record<string, unknown> = {}): Promise<string> => {
  tunnels += 1;
  const endpoint = more['protocol'] === 'tcp' ? `tcp/eu/${label}` : `subdomain//${label}`;
  const tunnel_id = `tun_${tunnels}`;
  const row = {
    user_id: user.userId,
    tunnel_id,
    label,
    protocol: 'http',
    registered_at: new Date(NOON),
    endpoint,
    ...more,
  };
  await fixture.database.db.insertInto('tunnel_log').values(row).execute();
  return tunnel_id;
};
const hold = async (user: UserActor, label: string): Promise<string> => {
  const row = { kind: 'subdomain' as const, label, user_id: user.userId, state: 'held' as const };
  const times = { created_at: new Date(NOON), last_used_at: new Date(NOON) };
  const insert = fixture.database.db.insertInto('names').values({ ...row, ...times });
  return (await insert.returning('id').executeTakeFirstOrThrow()).id;
};

const post = async (user: UserActor, body: unknown): Promise<[number, Reservation]> => {
  const answer = await fixture.ask(user, 'POST', '/reservations', body);
  return [answer.status, (await answer.json()) as Reservation];
};
const reserve = async (user: UserActor, body: unknown): Promise<Reservation> => {
  const [status, made] = await post(user, body);
  expect([status, made]).toEqual([201, reservation.parse(made)]);
  return made;
};
const release = async (user: UserActor, id: string): Promise<number> =>
  (await fixture.ask(user, 'DELETE', `/reservations/${id}`)).status;
const list = async (user: UserActor): Promise<Reservation[]> =>
  reservations.parse(await (await fixture.ask(user, 'GET', '/reservations')).json());
const shop = { kind: 'subdomain', label: 'shop' };

describe('POST /reservations', () => {
  it('reserves a name with an audit entry and a notice to edges; a repeated call returns the same reservation', async () => {
    const made = await reserve(fixture.alice, { kind: 'subdomain', label: 'Shop' });
    expect(made).toEqual({
      id: made.id,
      kind: 'subdomain',
      label: 'shop',
      region_id: null,
      state: 'reserved',
      assigned: false,
      active_tunnels: 0,
      public_address: 'http://shop.eu.test:8000',
      created_at: '2030-06-15T12:00:00.000Z',
      last_used_at: null,
      expires_at: null,
      hold_seconds: 30 * 86_400,
      grace_seconds: 7 * 86_400,
    });
    expect(await post(fixture.alice, shop)).toEqual([200, made]);
    expect(await list(fixture.alice)).toEqual([made]);
    const { db } = fixture.database;
    const audit = await db.selectFrom('audit_log').selectAll().where('action', '=', 'name.reserved').execute();
    expect(audit.at(-1)).toMatchObject({
      actor: `user:${fixture.alice.userId}`,
      details: { reservation_id: made.id, kind: 'subdomain', label: 'shop' },
    });
    expect(await db.selectFrom('edge_changes').selectAll().execute()).toMatchObject([
      { kind: 'name-changed', name_kind: 'subdomain', name_region: '', name_label: 'shop' },
    ]);
  });

  it('returns 409 for a name held, reserved, released or currently served by another account', async () => {
    const refused = { error: "subdomain 'shop' is already in use", code: 'TUNNEL_SUBDOMAIN_IN_USE' };
    const id = await hold(fixture.alice, 'shop');
    expect(await post(fixture.bob, shop)).toMatchObject([409, refused]);
    await reserve(fixture.alice, shop);
    expect(await post(fixture.bob, shop)).toMatchObject([409, refused]);
    await release(fixture.alice, id);
    expect(await post(fixture.bob, shop)).toMatchObject([409, refused]);
    fixture.clock.setWallClock(NOON + 7 * DAY_MS);
    expect((await reserve(fixture.bob, shop)).id).not.toBe(id);
    await serve(fixture.alice, '20001', { protocol: 'tcp', region_id: 'eu' });
    expect(await post(fixture.bob, { kind: 'tcp', label: '20001' })).toMatchObject([
      409,
      { error: 'port 20001 is already in use', code: 'TUNNEL_PORT_IN_USE' },
    ]);
    await serve(fixture.alice, 'live');
    expect((await post(fixture.bob, { kind: 'subdomain', label: 'live' }))[0]).toBe(409);
    expect((await post(fixture.alice, { kind: 'subdomain', label: 'live' }))[0]).toBe(201);
  });

  it.each([
    ['a name that is none', { kind: 'subdomain', label: 'a_b' }, /^subdomain 'a_b' is not valid/],
    ['a reserved word', { kind: 'subdomain', label: 'www' }, /it is reserved/],
    ['an empty name', { kind: 'subdomain', label: '' }, /it is empty/],
    ['an umlaut', { kind: 'subdomain', label: 'bücher' }, /only letters/],
    ['more labels', { kind: 'subdomain', label: 'a.b.shop' }, /more than two labels/],
    ['a nested name', { kind: 'subdomain', label: 'a.shop' }, /needs no reservation/],
    ['a wildcard of nobody’s name', { kind: 'subdomain', label: '*.shop' }, /needs 'shop' to be yours/],
    ['a region of a subdomain', { kind: 'subdomain', label: 'shop', region_id: 'eu' }, /^region_id: /],
    ['an unknown region', { kind: 'tcp', region_id: 'mars' }, /^region_id: unknown region "mars" \(available: eu\)/],
    ['a port out of range', { kind: 'tcp', label: '20003' }, /^port 20003 is not allowed: use 20000-20002/],
    ['a port that is none', { kind: 'tcp', label: 'http' }, /^label: must be a port/],
    ['a port with zeros', { kind: 'tcp', label: '020001' }, /^label: must be a port/],
    ['a negative port', { kind: 'tcp', label: '-20001' }, /^label: must be a port/],
    ['a port with a space', { kind: 'tcp', label: '20001 ' }, /^label: must be a port/],
    ['a port in other digits', { kind: 'tcp', label: '２０００１' }, /^label: must be a port/],
    ['a port as a number', { kind: 'tcp', label: 20_001 }, /^label: /],
    ['a name as a list', { kind: 'subdomain', label: ['shop'] }, /^label: /],
    ['a name of null', { kind: 'subdomain', label: null }, /^label: /],
    ['a NUL', { kind: 'subdomain', label: 'a\0b' }, /^label: contains an invalid character/],
    ['a NUL in a region', { kind: 'tcp', region_id: 'e\0u' }, /^region_id: contains an invalid character/],
    ['a wildcard of wildcards', { kind: 'subdomain', label: '*.*' }, /is not valid/],
    ['a wildcard of a nested name', { kind: 'subdomain', label: '*.a.b' }, /more than two labels/],
    ['a wildcard of a reserved word', { kind: 'subdomain', label: '*.www' }, /it is reserved/],
    ['a wildcard alone', { kind: 'subdomain', label: '*' }, /is not valid/],
    ['dots', { kind: 'subdomain', label: '..' }, /is not valid/],
    ['a dot at the end', { kind: 'subdomain', label: 'shop.' }, /is not valid/],
    ['a letter that folds to one of ASCII', { kind: 'subdomain', label: 'K\u212A' }, /only letters/],
    ['a name of 32 KiB', { kind: 'subdomain', label: 'a'.repeat(32_768) }, /^label: /],
    ['a list', [{ kind: 'subdomain', label: 'shop' }], /./],
    ['a text', 'shop', /./],
    ['an unknown kind', { kind: 'p2p' }, /^kind: /],
    ['no kind', {}, /^kind: /],
  ])('returns 400 for %s', async (_what, body, error) => {
    expect(await post(fixture.alice, body)).toMatchObject([400, { error: expect.stringMatching(error) }]);
    expect(await list(fixture.alice)).toEqual([]);
  });

  it('assigns a free port or an unguessable name if the call names none', async () => {
    const port = await reserve(fixture.alice, { kind: 'tcp' });
    expect(['20000', '20001', '20002']).toContain(port.label);
    expect(port).toMatchObject({ region_id: 'eu', public_address: `tcp://eu.test:${port.label}` });
    expect((await reserve(fixture.alice, { kind: 'subdomain' })).label).toMatch(/^[a-z]+-[a-z]+-[a-z0-9]{6}$/);
    const others = ['20000', '20001', '20002'].filter((label) => label !== port.label);
    await serve(fixture.bob, others[0] ?? '', { protocol: 'tcp', region_id: 'eu' });
    expect((await reserve(fixture.bob, { kind: 'tcp' })).label).toBe(others[1]);
    expect(await post(fixture.bob, { kind: 'tcp' })).toMatchObject([503, { code: 'TUNNEL_PORTS_EXHAUSTED' }]);
  });

  it('requires a region for ports if there are several, and allows the same port in each region', async () => {
    await addEdge('us', { tcp_from: 20_000, tcp_to: 20_009 });
    expect(await post(fixture.alice, { kind: 'tcp' })).toMatchObject([
      400,
      { error: 'region_id: is required because there are several regions (eu, us)' },
    ]);
    const at = (region_id: string) => ({ kind: 'tcp', label: '20001', region_id });
    expect(await reserve(fixture.alice, at('us'))).toMatchObject({ region_id: 'us' });
    expect(await reserve(fixture.bob, at('eu'))).toMatchObject({ region_id: 'eu' });
    await reserve(fixture.bob, { kind: 'tcp', label: '20009', region_id: 'us' });
  });

  it('returns 400 for a port unless an edge reports its port range', async () => {
    const { db } = fixture.database;
    await db.updateTable('edges').set({ tcp_from: null, tcp_to: null }).execute();
    expect(await post(fixture.alice, { kind: 'tcp' })).toMatchObject([
      400,
      { error: expect.stringMatching(/^kind: /) },
    ]);
    await db.deleteFrom('edges').execute();
    expect(await post(fixture.alice, { kind: 'tcp' })).toMatchObject([
      400,
      { error: expect.stringMatching(/no edge/) },
    ]);
    expect(await reserve(fixture.alice, shop)).toMatchObject({ public_address: '' });
  });

  it("reserves the wildcard of the account's own name, and releases it with the name", async () => {
    const wildcard = { kind: 'subdomain', label: '*.shop' };
    const { id } = await reserve(fixture.alice, shop);
    expect(await reserve(fixture.alice, wildcard)).toMatchObject({ label: '*.shop', state: 'reserved' });
    expect(await post(fixture.bob, wildcard)).toMatchObject([409, { error: "subdomain '*.shop' is already in use" }]);
    await release(fixture.alice, id);
    expect((await list(fixture.alice)).map(({ label, state }) => `${label} ${state}`).sort()).toEqual([
      '*.shop released',
      'shop released',
    ]);
    fixture.clock.setWallClock(NOON + 8 * DAY_MS);
    await reserve(fixture.bob, shop);
    await reserve(fixture.bob, wildcard);
  });

  it("enforces the plan's limit under concurrent calls, and keeps reservations after a downgrade", async () => {
    const bodies = ['a1', 'b2', 'c3', 'd4', 'e5'].map((label) => ({ kind: 'subdomain', label }));
    const answers = await Promise.all(bodies.map((body) => post(fixture.alice, body)));
    expect(answers.map(([status]) => status).sort((a, b) => a - b)).toEqual([201, 201, 201, 403, 403]);
    expect(answers.find(([status]) => status === 403)?.[1]).toMatchObject({
      error: 'reservation limit of 3 reached',
      code: 'RESERVATION_LIMIT',
    });
    await fixture.database.db.updateTable('plans').set({ reserved_limit: 1 }).execute();
    const kept = await list(fixture.alice);
    expect(kept.map(({ state }) => state)).toEqual(['reserved', 'reserved', 'reserved']);
    expect((await post(fixture.alice, { kind: 'subdomain', label: kept[0]?.label }))[0]).toBe(200);
    await fixture.database.db.updateTable('plans').set({ reserved_limit: null }).execute();
    await reserve(fixture.alice, { kind: 'subdomain', label: 'one-more' });
  });

  it('returns 403 for a custom name if the plan allows only assigned names', async () => {
    await fixture.database.db.updateTable('plans').set({ allow_custom_subdomains: false }).execute();
    expect(await post(fixture.alice, shop)).toMatchObject([403, { code: 'TUNNEL_CUSTOM_SUBDOMAIN' }]);
    await reserve(fixture.alice, { kind: 'subdomain' });
    await reserve(fixture.alice, { kind: 'tcp', label: '20001' });
  });

  it('gives the name to one of two concurrent accounts', async () => {
    for (const label of ['race-1', 'race-2', 'race-3', 'race-4']) {
      const body = { kind: 'subdomain', label };
      await fixture.database.db.updateTable('plans').set({ reserved_limit: null }).execute();
      const statuses = await Promise.all([post(fixture.alice, body), post(fixture.bob, body)]);
      expect(statuses.map(([status]) => status).sort((a, b) => a - b)).toEqual([201, 409]);
    }
  });
});

describe('GET /reservations', () => {
  it("lists the caller's names oldest first, with state and expiry, and no names of other accounts", async () => {
    const held = await hold(fixture.alice, 'held');
    fixture.clock.setWallClock(NOON + 1000);
    const { id } = await reserve(fixture.alice, shop);
    await reserve(fixture.bob, { kind: 'subdomain', label: 'bobs' });
    const shown = async () =>
      (await list(fixture.alice)).map(({ label, state, expires_at }) => [label, state, expires_at]);
    expect(await shown()).toEqual([
      ['held', 'held', new Date(NOON + 30 * DAY_MS).toISOString()],
      ['shop', 'reserved', null],
    ]);
    await release(fixture.alice, id);
    await serve(fixture.alice, 'held', { name_id: held, registered_at: new Date(NOON + 500) });
    expect((await list(fixture.alice))[0]).toMatchObject({
      active_tunnels: 1,
      expires_at: null,
      last_used_at: '2030-06-15T12:00:00.500Z',
    });
    expect((await shown())[1]).toEqual(['shop', 'released', new Date(NOON + 1000 + 7 * DAY_MS).toISOString()]);
    fixture.clock.setWallClock(NOON + 1000 + 7 * DAY_MS);
    expect(await shown()).toEqual([['held', 'held', null]]);
  });

  it('returns 401 without a user, as do POST and DELETE', async () => {
    const asked = [
      fixture.ask(null, 'GET', '/reservations'),
      fixture.ask(null, 'POST', '/reservations', shop),
      fixture.ask(null, 'DELETE', '/reservations/1'),
    ];
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([401, 401, 401]);
  });
});

describe('DELETE /reservations/{id}', () => {
  it('releases a reserved or held name, once', async () => {
    const { id } = await reserve(fixture.alice, shop);
    await fixture.database.db.deleteFrom('edge_changes').execute();
    expect([await release(fixture.alice, id), await release(fixture.alice, id)]).toEqual([204, 204]);
    expect(await fixture.database.db.selectFrom('edge_changes').selectAll().execute()).toHaveLength(1);
    const audit = await fixture.database.db.selectFrom('audit_log').selectAll().execute();
    expect(audit.filter(({ details }) => details['reservation_id'] === id).map(({ action }) => action)).toEqual([
      'name.reserved',
      'name.released',
    ]);
    expect(await release(fixture.alice, await hold(fixture.alice, 'held'))).toBe(204);
    expect((await list(fixture.alice)).map(({ state }) => state)).toEqual(['released', 'released']);
  });

  it("keeps an open tunnel of the name, and starts the grace period at the tunnel's end", async () => {
    const { id } = await reserve(fixture.alice, shop);
    await serve(fixture.alice, 'shop', { name_id: id });
    await release(fixture.alice, id);
    expect(await list(fixture.alice)).toMatchObject([{ state: 'released', active_tunnels: 1, expires_at: null }]);
    const ended = new Date(NOON + 20 * DAY_MS);
    await fixture.database.db.updateTable('tunnel_log').set({ unregistered_at: ended }).execute();
    await fixture.database.db.updateTable('names').set({ last_used_at: ended }).execute();
    expect(await list(fixture.alice)).toMatchObject([
      { state: 'released', expires_at: new Date(NOON + 27 * DAY_MS).toISOString() },
    ]);
  });

  it('frees the name immediately without a grace period', async () => {
    names.grace_days = 0;
    const { id } = await reserve(fixture.alice, shop);
    expect([await release(fixture.alice, id), await release(fixture.alice, id)]).toEqual([204, 404]);
    await reserve(fixture.bob, shop);
  });
});
