// A platform with the payment simulator, on a real database.
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../platform/src/db/test-database.fixture.ts';
import { ServerParts } from './server-parts.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const endings: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const makeParts = async (billing: object = {}) => {
  const database = await createTestDatabase();
  endings.push(() => database.close());
  const folder = await temporaryDirectory();
  endings.push(() => folder.close());
  const overrides = { database: { url: database.url.reveal() }, platform: { port: 0, billing } };
  const config = loadServerConfig({ env: {}, overrides });
  const parts = new ServerParts('platform', config, {
    clock: systemClock,
    logger,
    version: '1',
    dataDir: folder.path,
    adminToken: new Secret('admin'),
    onMail: () => {},
    onMakingDatabase: () => {},
  });
  endings.push(() => parts.stop({ drainMs: 0 }));
  return { parts, database, dataDir: folder.path };
};

const portHeld = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endings.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
};

const isOpen = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  );

describe('the platform as a server part', () => {
  it('starts the payment simulator, and receives its webhooks', async () => {
    const { parts, database, dataDir } = await makeParts();
    await parts.start();
    const { url, secretKey } = parts.simulator!;
    expect((await fetch(url)).status).toBe(200);
    expect(existsSync(join(dataDir, 'simulator'))).toBe(true);
    const make = async (kind: string, form: Record<string, string>): Promise<string> => {
      const headers = { authorization: `Bearer ${secretKey.reveal()}` };
      const answer = await fetch(`${url}/v1/${kind}`, { method: 'POST', headers, body: new URLSearchParams(form) });
      return ((await answer.json()) as { id: string }).id;
    };
    const { db } = database;
    const row = { email: 'ada@example.com', plan: 'free', display_name: null, password_hash: null };
    const { id } = await db.insertInto('users').values(row).returning('id').executeTakeFirstOrThrow();
    const customer = await make('customers', { email: row.email, 'metadata[user_id]': id });
    await db.insertInto('billing_accounts').values({ user_id: id, customer_id: customer }).execute();
    const methods = 'automatic_payment_methods';
    const options = { usage: 'off_session', [`${methods}[enabled]`]: 'true', [`${methods}[allow_redirects]`]: 'never' };
    const intent = await make('setup_intents', { customer, ...options });
    await fetch(`${url}/_sim/setup_intents/${intent}/confirm`, { method: 'POST' });
    await eventually(async () => {
      const account = await db.selectFrom('billing_accounts').select('has_payment_method').executeTakeFirstOrThrow();
      expect(account.has_payment_method).toBe(true);
    });
    await parts.stop({ drainMs: 0 });
    expect(await isOpen(url)).toBe(false);
  });

  it("does not start when the simulator's port is in use, and names port and key", async () => {
    const simulator_port = await portHeld();
    const { parts } = await makeParts({ simulator_port });
    await expect(parts.start()).rejects.toMatchObject({
      code: 'CONFIG_PORT_TAKEN',
      message: `port ${simulator_port} on 127.0.0.1 is already in use (platform.billing.simulator_port)`,
    });
    expect(parts.platform).toBeNull();
  });

  it('starts without a simulator when the payment processor is external, even if it is unreachable', async () => {
    const secrets = { stripe_secret_key: 'sk_test_none', stripe_webhook_secret: 'whsec_none' };
    const api = { stripe_api_url: `http://127.0.0.1:${await portHeld()}` };
    const { parts, dataDir } = await makeParts({ processor: 'stripe', ...secrets, ...api });
    await parts.start();
    expect(parts.simulator).toBeNull();
    expect(existsSync(join(dataDir, 'simulator'))).toBe(false);
    const webhook = parts.platform?.webhookUrl ?? '';
    expect((await fetch(webhook, { method: 'POST', body: '{}' })).status).toBe(400);
  });
});
