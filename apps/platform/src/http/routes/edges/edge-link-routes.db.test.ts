import { EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { randomId, Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { revokeCredential } from '../../../services/edges/credentials.ts';
import {
  type Account,
  addAccount,
  addEdge,
  beatOf,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  OPERATOR,
  openedOf,
  questionOf,
} from '../../../services/edges/link.fixture.ts';
import { bearer, createLinkServer, type LinkServer, startLinkServer } from './edge-link.fixture.ts';

let fixture: LinkFixture;
let server: LinkServer;
let account: Account;
let edge: Edge;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ fixture, server, stop } = await createLinkServer());
  account = await addAccount(fixture.db);
  edge = await addEdge(fixture);
});
afterAll(() => stop());

const post = async (path: string, body: unknown, credential = edge.credential) => {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: bearer(credential),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

describe('calls of an edge', () => {
  it('get the responses of the contract', async () => {
    expect(await post('/heartbeat', beatOf(edge.runId))).toEqual({
      status: 200,
      body: { edge_id: edge.actor.edgeId, last_change: 0, public_url: expect.stringMatching(/^https?:/) },
    });
    expect(await post('/keys/verify', { token_hash: account.tokenHash })).toMatchObject({
      status: 200,
      body: { ok: true, key_id: account.keyId },
    });
    const question = questionOf(edge, account);
    expect(await post('/tunnels', question)).toEqual({ status: 200, body: { ok: true } });
    const records = [openedOf(edge, account, question.tunnel_id)];
    const batch = { run_id: edge.runId, journal_id: 'jrn_1', first: 1, records };
    expect(await post('/records', batch)).toEqual({ status: 200, body: { last_record: 1 } });
    expect(await post('/records', { ...batch, first: 3 })).toMatchObject({
      status: 409,
      body: { last_record: 1, code: 'EDGE_RECORDS_GAP', request_id: expect.any(String) },
    });
  });

  it('accept a batch of a thousand long records', async () => {
    const records = Array.from({ length: 1000 }, () => ({
      ...openedOf(edge, account, randomId('tun'), NOON),
      name: 'ü'.repeat(200),
      label: 'l'.repeat(300),
      session_id: 's'.repeat(100),
    }));
    const batch = { run_id: edge.runId, journal_id: 'jrn_long', first: 1, records };
    expect(await post('/records', batch)).toEqual({ status: 200, body: { last_record: 1000 } });
  });

  it('get 401 without a credential, with a wrong credential, and with a revoked credential', async () => {
    const gone = await addEdge(fixture);
    await revokeCredential(fixture, OPERATOR, gone.actor.edgeId);
    const wrong = `${edge.credential.slice(0, -1)}${edge.credential.endsWith('A') ? 'B' : 'A'}`;
    for (const credential of ['', wrong, gone.credential, account.tokenHash]) {
      expect(await post('/heartbeat', beatOf('run_1'), credential)).toMatchObject({
        status: 401,
        body: { code: 'EDGE_CREDENTIAL_INVALID' },
      });
    }
    const bare = await fetch(`${server.url}/changes?since=0`);
    expect(bare.status).toBe(401);
  });

  it('get 400 if malformed', async () => {
    for (const [path, body] of [
      ['/heartbeat', {}],
      ['/heartbeat', { ...beatOf('run_1'), version: 'a\0' }],
      ['/heartbeat', { ...beatOf('run_1'), region: { id: '\0', name: '', location: '' } }],
      ['/heartbeat', '{'],
      ['/keys/verify', { token_hash: 'xyz' }],
      ['/tunnels', { ...questionOf(edge, account), protocol: 'ftp' }],
      ['/tunnels', { ...questionOf(edge, account), name: '\0' }],
      ['/records', { run_id: 'r', journal_id: 'j', first: 0, records: [] }],
      ['/records', { run_id: 'r', journal_id: '\0', first: 1, records: [{ kind: 'closed', tunnel_id: 't', at: 1 }] }],
    ] as const) {
      expect(await post(path, body), `${path} ${JSON.stringify(body)}`).toMatchObject({
        status: 400,
        body: { code: 'API_BAD_REQUEST' },
      });
    }
    for (const since of ['', '-1', 'x', '1e3']) {
      const response = await fetch(`${server.url}/changes?since=${since}`, { headers: bearer(edge.credential) });
      expect(response.status, since).toBe(400);
    }
  });

  it('count no tunnel if the edge disconnects before the response', async () => {
    const own = await addAccount(fixture.db);
    const question = questionOf(edge, own);
    const ended = new AbortController();
    let asked: Promise<unknown> = Promise.resolve();
    // Another transaction locks the account for longer than the edge waits.
    await fixture.db.transaction().execute(async (trx) => {
      await trx.selectFrom('users').select('id').where('id', '=', own.accountId).forUpdate().execute();
      asked = fetch(`${server.url}/tunnels`, {
        method: 'POST',
        headers: bearer(edge.credential),
        body: JSON.stringify(question),
        signal: ended.signal,
      }).catch(() => 'gave up');
      await eventually(async () => {
        // Counts only the waiting connections of this database, because the server also hosts databases of other tests.
        const { rows } =
          await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
            fixture.db,
          );
        expect(rows).toHaveLength(1);
      });
      ended.abort();
      expect(await asked).toBe('gave up');
    });
    await eventually(async () => {
      const { rows } =
        await sql`select from pg_stat_activity where datname = current_database() and state <> 'idle'`.execute(
          fixture.db,
        );
      expect(rows).toHaveLength(1);
    });
    expect(await entryOf(fixture.db, question.tunnel_id)).toBeUndefined();
  });

  it('work inside the process as well, without a socket', async () => {
    const call = (path: string, init: RequestInit = {}) =>
      server.fetchInside(
        new Request(`http://platform.internal${EDGE_LINK_PATH}${path}`, { headers: bearer(edge.credential), ...init }),
      );
    const beat = await call('/heartbeat', { method: 'POST', body: JSON.stringify(beatOf(edge.runId)) });
    expect(beat.status).toBe(200);
    const changes = await call('/changes?since=0');
    const reader = changes.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe('{"kind":"alive","id":0}\n');
    await reader.cancel();
  });
});

describe('turns of edge calls', () => {
  it('are not needed by known edges, which are served while strangers are refused', async () => {
    let isFull = false;
    const admission = {
      networkOf: (address: string) => ({ kind: 'network', id: address }) as const,
      inTurn: <T>(_: unknown, { kind }: { readonly kind: string }, work: () => Promise<T>): Promise<T> =>
        isFull ? Promise.reject(new Fault('API_NETWORK_LIMIT', { seconds: 1, kind })) : work(),
    };
    const ofStack = await addEdge(fixture);
    const ownCredential = new Secret(ofStack.credential);
    const own = await startLinkServer(fixture, { strangers: { db: fixture.db, admission }, ownCredential });
    const beat = (credential: string) =>
      fetch(`${own.url}/heartbeat`, {
        method: 'POST',
        headers: bearer(credential),
        body: JSON.stringify(beatOf(edge.runId)),
      });
    try {
      expect((await beat(edge.credential)).status).toBe(200);
      isFull = true;
      expect((await beat(edge.credential)).status).toBe(200);
      // The stack's own edge is known from its first call on.
      expect((await beat(ofStack.credential)).status).not.toBe(429);
      const stranger = await beat(`tne_${'x'.repeat(43)}`);
      expect([stranger.status, await stranger.json()]).toMatchObject([429, { code: 'API_NETWORK_LIMIT' }]);
    } finally {
      await own.stop();
    }
  });

  it('are separate per account for registrations, so that a blocked account delays no other account', async () => {
    const stuck = await addAccount(fixture.db);
    const other = await addAccount(fixture.db);
    const register = (of: Account) => post('/tunnels', questionOf(edge, of));
    let waiting: Promise<unknown>[] = [];
    await fixture.db.transaction().execute(async (trx) => {
      await sql`select 1 from users where id = ${stuck.accountId} for update`.execute(trx);
      waiting = Array.from({ length: 30 }, () => register(stuck));
      for (const of of [other, other, other]) expect((await register(of)).body).toEqual({ ok: true });
      expect((await post('/heartbeat', beatOf(edge.runId))).status).toBe(200);
    });
    expect(await Promise.all(waiting)).toHaveLength(30);
  });
});
