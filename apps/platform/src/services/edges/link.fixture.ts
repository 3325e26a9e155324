// Accounts, keys and edges in a separate database, and the calls of an edge without HTTP.

import { loadServerConfig, type ServerConfig } from '@tunnel/config/server';
import type { JournalRecord, TunnelQuestion } from '@tunnel/contract';
import { createLogger, type Logger, randomId, Secret, sha256Hex } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import type { Db } from '../../db/database.ts';
import { MasterKey } from '../../db/master-key.ts';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import type { NameSettings } from '../names/name-rows.ts';
import type { EdgeActor } from '../shared/service-context.ts';
import { createCredential } from './credentials.ts';
import { heartbeat } from './heartbeat.ts';

/** Noon UTC in the middle of a month, far from any day or month boundary. */
export const NOON = Date.UTC(2030, 5, 15, 12);

export const OPERATOR = { kind: 'operator', name: 'test' } as const;

const MASTER_KEY = new MasterKey('master-key', new Secret('m'.repeat(43)));

export interface LinkFixture {
  readonly database: TestDatabase;
  readonly db: Db;
  readonly clock: FakeClock;
  readonly logger: Logger;
  readonly masterKey: () => MasterKey;
  readonly names: NameSettings;
  readonly accountShare: number;
  readonly settings: ServerConfig['platform'];
  close(): Promise<void>;
}

export const createLinkFixture = async (connections = 20): Promise<LinkFixture> => {
  const database = await createTestDatabase({ connections });
  const { db } = database;
  await db
    .insertInto('plans')
    .values([
      {
        name: 'free',
        tunnel_limit: 10,
        allow_custom_subdomains: false,
        monthly_minimum_cents: 0,
        price_cents_per_gb: 0,
        reserved_limit: 3,
        domain_limit: 3,
      },
      {
        name: 'payg',
        tunnel_limit: null,
        allow_custom_subdomains: true,
        monthly_minimum_cents: 300,
        price_cents_per_gb: 10,
        reserved_limit: 100,
        domain_limit: 100,
      },
    ])
    .execute();
  return {
    database,
    db,
    clock: new FakeClock(NOON),
    logger: createLogger({ format: 'json', level: 'silent' }),
    masterKey: () => MASTER_KEY,
    names: { hold_days: 30, assigned_hold_hours: 24, grace_days: 7 },
    accountShare: 0.25,
    settings: loadServerConfig({ env: {} }).platform,
    close: () => database.close(),
  };
};

export interface Account {
  readonly accountId: string;
  readonly email: string;
  readonly keyId: string;
  readonly tokenHash: string;
}

export const addAccount = async (db: Db, plan = 'free'): Promise<Account> => {
  const email = `${randomId('u').toLowerCase()}@example.com`;
  const { id: accountId } = await db
    .insertInto('users')
    .values({ email, plan })
    .returning('id')
    .executeTakeFirstOrThrow();
  return { accountId, email, ...(await addKey(db, accountId)) };
};

export const addKey = async (db: Db, accountId: string, unlimited = false) => {
  const tokenHash = sha256Hex(randomId('key'));
  const { id: keyId } = await db
    .insertInto('api_keys')
    .values({ user_id: accountId, label: 'test', token_hash: tokenHash, unlimited })
    .returning('id')
    .executeTakeFirstOrThrow();
  return { keyId, tokenHash };
};

export interface Edge {
  readonly actor: EdgeActor;
  readonly credential: string;
  readonly runId: string;
}

/** Adds an edge after a first heartbeat. */
export const addEdge = async (fixture: LinkFixture, region = 'local', name = randomId('edge')): Promise<Edge> => {
  const { edgeId, credential } = await createCredential(fixture, OPERATOR, name);
  const actor: EdgeActor = { kind: 'edge', edgeId };
  const runId = randomId('run');
  await heartbeat(fixture, actor, beatOf(runId, region));
  return { actor, credential: credential.reveal(), runId };
};

export const beatOf = (runId: string, region = 'local') => ({
  run_id: runId,
  region: { id: region, name: region, location: '' },
  api_url: '',
  api_secret: 'a-secret-of-this-run',
  version: '0.0.0',
  open_tunnels: 0,
});

export const questionOf = (
  { runId }: Pick<Edge, 'runId'>,
  { accountId, keyId }: Pick<Account, 'accountId' | 'keyId'>,
  more: Partial<TunnelQuestion> = {},
): TunnelQuestion => ({
  run_id: runId,
  tunnel_id: randomId('tun'),
  session_id: 'ses_1',
  account_id: accountId,
  key_id: keyId,
  name: 'web',
  protocol: 'http',
  custom_subdomain: false,
  at: NOON,
  ...more,
});

export const openedOf = (
  edge: Pick<Edge, 'runId'>,
  account: Pick<Account, 'accountId' | 'keyId'>,
  tunnelId: string,
  at = NOON,
): JournalRecord => {
  const { custom_subdomain: _, ...rest } = questionOf(edge, account, { tunnel_id: tunnelId, at });
  return { kind: 'opened', ...rest, label: 'web' };
};

export const entryOf = (db: Db, tunnelId: string) =>
  db.selectFrom('tunnel_log').selectAll().where('tunnel_id', '=', tunnelId).executeTakeFirst();

export const daysOf = (db: Db, accountId: string) =>
  db
    .selectFrom('usage_daily')
    .select(['day', 'tunnels', 'requests', 'bytes'])
    .where('user_id', '=', accountId)
    .orderBy('day')
    .execute();

export const tunnelCountOf = async (db: Db, keyId: string): Promise<number> => {
  const { tunnel_count } = await db
    .selectFrom('api_keys')
    .select('tunnel_count')
    .where('id', '=', keyId)
    .executeTakeFirstOrThrow();
  return tunnel_count;
};
