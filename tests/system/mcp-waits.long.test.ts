// Test of 1,000 models that wait for a request at the platform: the memory for waiting calls, and the cleanup when the models leave.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256Hex } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Database } from '../../apps/platform/src/db/database.ts';
import { API_KEY_RANDOM_BYTES, makeApiKey } from '../../apps/platform/src/services/keys/api-key.rules.ts';
import { quiet } from './embedded-database.fixture.ts';
import { type Harness } from './harness.fixture.ts';
import { INSPECTABLE, memoryProbeOf } from './inspector.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { it } from './system-test.fixture.ts';
import { type EdgeAccount, UsageReportingEdge } from './usage-reporting-edge.fixture.ts';

const ACCOUNTS = 50;
const CALLS_EACH = 20;
const WAITING_MAX_MB = 100;
const SOON = { timeoutMs: 60_000 };

it('1,000 waiting calls cost the platform less than 100 MB, and leave no request at the edge when their callers leave', async ({
  harness,
}) => {
  const platform = await harness.stack({ command: 'platform', env: INSPECTABLE });
  const probe = harness.use(await memoryProbeOf(platform.program));
  const edge = await startSilentEdge(harness);
  const link = await UsageReportingEdge.join(platform, edge.url);
  harness.use(link.keepBeating());
  const accounts = await makeAccounts(harness, platform);
  const models = await Promise.all(
    accounts.map(async ({ key, ...account }) => ({ key, tunnel: await link.tellOfLiving(account) })),
  );
  const leaving = new AbortController();
  const wait = ({ key, tunnel }: (typeof models)[number], signal: AbortSignal): Promise<unknown> =>
    fetch(`${platform.run.platform_url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'wait_for_request',
          arguments: { tunnel, timeout_secs: 300 },
          _meta: { progressToken: 1 },
        },
      }),
      signal,
    }).catch(() => null);

  // Warms up the platform: the first calls load code and create permanent objects.
  const first = new AbortController();
  const trial = models.map((model) => wait(model, first.signal));
  await eventually(() => expect(edge.waiting()).toBe(ACCOUNTS), SOON);
  first.abort();
  await Promise.all(trial);
  await eventually(() => expect(edge.waiting()).toBe(0), SOON);
  const before = await probe.held();

  const calls = models.flatMap((model) => Array.from({ length: CALLS_EACH }, () => wait(model, leaving.signal)));
  await eventually(() => expect(edge.waiting()).toBe(ACCOUNTS * CALLS_EACH), SOON);
  const waiting = await probe.held();
  expect(waiting.residentMb - before.residentMb).toBeLessThan(WAITING_MAX_MB);
  leaving.abort();
  await Promise.all(calls);
  await eventually(() => expect(edge.waiting()).toBe(0), SOON);
}, 240_000);

interface Account extends EdgeAccount {
  readonly key: string;
}

/** Creates accounts directly in the database. A sign-up hashes a password, which would take longer than the rest of the test. */
const makeAccounts = async (harness: Harness, platform: Stack): Promise<Account[]> => {
  const url = platform.databaseUrl;
  if (url === null) throw new Error('the database runs');
  const { db } = harness.use(new Database({ url, logger: quiet, connections: 2 }));
  const emails = Array.from({ length: ACCOUNTS }, (_, nth) => `model-${nth}@example.com`);
  const none = { plan: 'free', display_name: null, password_hash: null, email_verified_at: new Date() };
  const users = await db
    .insertInto('users')
    .values(emails.map((email) => ({ email, ...none })))
    .returning('id')
    .execute();
  const keyed = users.map(({ id }) => ({ accountId: id, key: makeApiKey(randomBytes(API_KEY_RANDOM_BYTES)) }));
  const rows = keyed.map(({ accountId, key }) => ({ user_id: accountId, label: 'model', token_hash: sha256Hex(key) }));
  const keys = await db.insertInto('api_keys').values(rows).returning(['id', 'user_id']).execute();
  return keyed.map((one) => ({ ...one, keyId: keys.find(({ user_id }) => user_id === one.accountId)?.id ?? '' }));
};

/** Starts an edge that never responds, and counts the waiting requests. */
const startSilentEdge = async (harness: Harness): Promise<{ url: string; waiting(): number }> => {
  let waiting = 0;
  const server = createServer((_, response) => {
    waiting += 1;
    response.once('close', () => {
      waiting -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.use({
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, waiting: () => waiting };
};
