// A stack of the previous release with accounts, names, domains, certificates, grants and bills is upgraded on its own data directory, and
// taken back.
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOMAIN, Outside } from '../../../system/certificates/outside.fixture.ts';
import { ask } from '../../../system/embedded-database.fixture.ts';
import { Harness } from '../../../system/harness.fixture.ts';
import { startWeb } from '../../../system/http-tunnels.fixture.ts';
import { type Payer, signUpPayer } from '../../../system/payer.fixture.ts';
import { call, Person } from '../../../system/platform-test.fixture.ts';
import type { Stack } from '../../../system/stack.fixture.ts';
import { command, type Dump, dump, mayStart } from './servers.ts';
import { BUILDS, type Build, ROOM, SHOP, SOON } from './world.ts';

const { previous, current, allowing } = BUILDS;
const REDIRECT = 'http://127.0.0.1/callback';

const harness = new Harness();
let outside: Outside;
let stack: Stack;
let person: Person;
let payer: Payer;
let key: string;
let refreshToken: string;
let clientId: string;

afterAll(() => harness.close());

const database = (): Secret => {
  const url = stack.databaseUrl;
  if (url === null) throw new Error('the stack does not run');
  return url;
};

const restart = async (build: Build): Promise<void> => {
  await stack.stop();
  stack.bin = build.server;
  await stack.start();
};

/** Opens a tunnel with a client of the build, makes requests, and closes the tunnel. */
const useTunnel = async (
  build: Build,
  requests: number,
  { host = SHOP, flags = ['--domain', SHOP], token = key } = {},
): Promise<void> => {
  const web = harness.use(await startWeb((_, response) => void response.end('served')));
  const where = ['--server', stack.control, '--tls', '--insecure'];
  const args = ['http', String(web.port), ...flags, '--json', '--wait', ...where];
  const program = await harness.run(args, { bin: build.client, env: { TUNNEL_API_KEY: token } });
  await program.ready();
  for (let n = 0; n < requests; n += 1) expect(await outside.textOf(host)).toBe('served');
  program.signal('SIGTERM');
  expect(await program.exitCode()).toBe(0);
};

const requestsOf = async (): Promise<number> => (await person.usage()).total_requests_30d;

/** Grants access to a registered app: authorization request, consent, code, tokens. */
const grantApp = async (): Promise<void> => {
  const { out } = await command(previous, stack, 'oauth-client', 'create', '--name', 'App', '--redirect-uri', REDIRECT);
  clientId = out.split('\n')[0] ?? '';
  const { platform_url: platform } = stack.run;
  const verifier = randomBytes(32).toString('base64url');
  const metadata = (await (await fetch(`${platform}/.well-known/oauth-protected-resource/mcp`)).json()) as {
    resource: string;
  };
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    resource: metadata.resource,
    scope: 'tunnels:read',
    state: 's',
  });
  const asked = await fetch(`${platform}/oauth/authorize?${query.toString()}`, { redirect: 'manual' });
  const request = /request=(ask_\w+)/.exec(asked.headers.get('location') ?? '')?.[1] ?? '';
  const decided = await person.call<{ redirect_to: string }>(`/oauth/requests/${request}/decision`, {
    method: 'POST',
    body: { allow: true, scopes: ['tunnels:read'] },
  });
  const code = new URL(decided.body.redirect_to).searchParams.get('code') ?? '';
  refreshToken = await tokens({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  });
};

/** Exchanges a code or refresh token, and returns the new refresh token. */
const tokens = async (form: Record<string, string>): Promise<string> => {
  const body = new URLSearchParams({ client_id: clientId, ...form });
  const answer = await fetch(`${stack.run.platform_url}/oauth/token`, { method: 'POST', body });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, expect.any(String)]);
  return (JSON.parse(text) as { refresh_token: string }).refresh_token;
};

/** Counts rows that a job is about to change: tunnels that are still open, and usage not reported to the payment processor. */
const UNSETTLED = `
  select ((select count(*) from tunnel_log where unregistered_at is null)
    + (select count(*) from metered_usage where cut_bytes < bytes)
    + (select count(*) from meter_events where sent_at is null))::int`;

beforeAll(async () => {
  outside = await Outside.open(harness);
  stack = await outside.stack(harness, { bin: previous.server, tables: `[load_balancing]\nenabled = true\n${ROOM}` });
  person = await Person.signUp(stack, 'ann');
  payer = await signUpPayer(stack);
  key = (await person.newKey('laptop')).token;
  const revoked = await person.newKey('lost');
  await person.call(`/keys/${revoked.id}`, { method: 'DELETE' });
  for (const body of [
    { kind: 'subdomain', label: 'kept' },
    { kind: 'tcp', region_id: 'local' },
  ]) {
    expect((await person.call('/reservations', { method: 'POST', body })).status).toBe(201);
  }
  const added = await person.call<{ id: string; cname_target: string }>('/domains', {
    method: 'POST',
    body: { name: SHOP },
  });
  outside.dns.set(SHOP, 'CNAME', added.body.cname_target);
  await person.call(`/domains/${added.body.id}/check`, { method: 'POST' });
  await eventually(async () => expect(await outside.serialOf(SHOP)).toMatch(/^[0-9a-f]+$/), SOON);
  await command(previous, stack, 'admin', 'invite', 'guest@example.com');
  await command(previous, stack, 'signing-keys', 'rotate');
  await grantApp();
  await useTunnel(previous, 5);
  // Usage of an account with a subscription is metered for the payment processor.
  const paid = `paid.${DOMAIN}`;
  await eventually(async () => expect(await outside.serialOf(paid)).toMatch(/^[0-9a-f]+$/), SOON);
  const { token } = await payer.client(stack).createKey({ label: 'paid' });
  await useTunnel(previous, 5, { host: paid, flags: ['--subdomain', 'paid'], token });
  await eventually(async () => expect((await dump(database()))['metered_usage']).toHaveLength(1), SOON);
  // The start reports the metered usage. Otherwise the report would come between two dumps.
  await restart(previous);
  await eventually(async () => expect(await ask(database(), UNSETTLED)).toBe(0), SOON);
  await eventually(async () => expect(await requestsOf()).toBe(5), SOON);
}, 300_000);

/** Columns that change in every run of a server, without an upgrade. */
const OF_EVERY_RUN = new Set([
  ...['credential_hash', 'api_url', 'api_secret', 'version', 'run_id', 'last_heartbeat_at', 'control', 'http_url'].map(
    (column) => `edges.${column}`,
  ),
  ...['last_record', 'updated_at'].map((column) => `edge_journals.${column}`),
  ...['synced_at', 'updated_at'].map((column) => `billing_accounts.${column}`),
  ...['checked_at', 'next_look_at', 'found'].map((column) => `own_domains.${column}`),
  ...['due_at', 'locked_by', 'locked_until', 'life', 'epoch'].map((column) => `certificates.${column}`),
  ...['last_used_at', 'last_at'].flatMap((column) => [`api_keys.${column}`, `mail_quotas.${column}`]),
  'refresh_families.last_used_at',
  'mail_outbox.next_try_at',
]);

/** Tables that must have rows, so that the comparison means something. */
const FILLED = [
  ...['users', 'invites', 'api_keys', 'names', 'own_domains', 'certificates', 'acme_accounts', 'signing_keys'],
  ...['oauth_clients', 'oauth_grants', 'oauth_refresh_tokens', 'refresh_families', 'refresh_tokens'],
  ...['tunnel_log', 'usage_daily', 'metered_usage', 'billing_accounts', 'audit_log'],
];

/** Tables whose rows come and go while a server runs. */
const PASSING = new Set([
  'edge_changes',
  'mail_outbox',
  'mail_requests',
  'acme_challenges',
  'idempotency_keys',
  'kysely_migration_lock',
]);

const stable = (rows: Dump): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(rows)
      .filter(([table]) => !PASSING.has(table))
      .map(([table, all]) => [
        table,
        all
          .map((row) =>
            JSON.stringify(Object.entries(row).filter(([column]) => !OF_EVERY_RUN.has(`${table}.${column}`))),
          )
          .toSorted(),
      ]),
  );

/** Characters of a lost row in the error. */
const ROW_CHARS = 300;

/** Fails if a row of the first dump is missing in the second dump. New rows and new tables are allowed. */
const expectKept = (before: Dump, after: Dump): void => {
  const [old, next] = [stable(before), stable(after)];
  const lost = Object.entries(old).flatMap(([table, rows]) =>
    rows.filter((row) => next[table]?.includes(row) !== true).map((row) => `${table}: ${row.slice(0, ROW_CHARS)}`),
  );
  expect(lost).toEqual([]);
};

/** Waits until the jobs of the start have ended, and dumps the database. */
const dumpSettled = async (): Promise<Dump> => {
  await pause(5000);
  return dump(database());
};

describe(`a stack of version ${previous.version} on its data directory`, () => {
  let before: Dump;
  let serial: string;

  it('keeps all rows through a restart without an upgrade', async () => {
    const first = await dumpSettled();
    await restart(previous);
    before = await dumpSettled();
    serial = await outside.serialOf(SHOP);
    expect(FILLED.filter((table) => (before[table]?.length ?? 0) === 0)).toEqual([]);
    expectKept(first, before);
  });

  it(`keeps all rows through the upgrade to version ${current.version}`, async () => {
    await restart(current);
    const after = await dumpSettled();
    expectKept(before, after);
    expect(after['schema_notes']?.length).toBe(after['kysely_migration']?.length);
  });

  it('serves sign-ins, keys, names, domains, certificates, grants, usage and bills of the old version', async () => {
    const body = { email: person.email, password: 'correct horse battery' };
    expect((await call(stack, '/auth/login', { method: 'POST', body })).status).toBe(200);
    // A session from before the upgrade is still valid.
    expect(await requestsOf()).toBe(5);
    const keys = await person.get<{ label: string }[]>('/keys');
    expect(keys.map(({ label }) => label)).toEqual(['laptop']);
    const names = await person.get<{ state: string }[]>('/reservations');
    expect(names.filter(({ state }) => state === 'reserved')).toHaveLength(2);
    expect(await outside.serialOf(SHOP)).toBe(serial);
    refreshToken = await tokens({ grant_type: 'refresh_token', refresh_token: refreshToken });
    expect(await payer.client(stack).billing()).toMatchObject({ payment_customer_id: payer.customerId });
    await useTunnel(previous, 3);
    await useTunnel(current, 4);
    await eventually(async () => expect(await requestsOf()).toBe(12), SOON);
  });

  it(`version ${previous.version} runs on the database again if the migrations allow it, else says plainly why not, and changes nothing`, async () => {
    const last = await dumpSettled();
    const isAllowed = await mayStart(previous, database());
    await stack.stop();
    if (isAllowed) {
      stack.bin = previous.server;
      await stack.start();
      await useTunnel(previous, 0);
      await stack.stop();
      stack.bin = current.server;
    } else {
      const { code, err } = await command(previous, stack, 'stack');
      expect([code, err]).toEqual([
        2,
        expect.stringContaining('the database belongs to a newer version of the server'),
      ]);
    }
    await stack.start();
    const again = await dumpSettled();
    expectKept(last, again);
    expect(Object.keys(again)).toEqual(Object.keys(last));
  });

  it(`version ${current.version} goes back from version ${allowing.version}, whose migrations allow it`, async () => {
    await restart(allowing);
    await useTunnel(current, 2);
    const last = await dumpSettled();
    await restart(current);
    expect([...stack.program.stdout, ...stack.program.stderr].join('\n')).toContain(
      'a newer version has added migrations',
    );
    expectKept(last, await dumpSettled());
    await useTunnel(current, 2);
    await eventually(async () => expect(await requestsOf()).toBe(16), SOON);
  });
});
