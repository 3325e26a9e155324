import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createLogger, loadServerConfig, systemClock } from '@tunnel/runtime';
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { createProcessor } from './billing/processor/create-processor.ts';
import { loadSecrets } from './billing/simulator/sim-secrets.ts';
import { createTestDatabase } from './db/test-database.fixture.ts';
import { createPlatform } from './platform.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const endings: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const makePlatform = async (billing: object = {}) => {
  const database = await createTestDatabase();
  endings.push(() => database.close());
  const folder = await temporaryDirectory();
  endings.push(() => folder.close());
  const config = loadServerConfig({ env: {}, overrides: { platform: { port: 0, billing } } });
  const platform = createPlatform(config, {
    ...{ clock: systemClock, version: '1', databaseUrl: database.url, dataDir: folder.path },
    logger,
  });
  endings.push(() => platform.stop());
  return { platform, database, dataDir: folder.path };
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

describe('the platform', () => {
  it('runs the simulator with itself, and hears its webhooks', async () => {
    const { platform, database, dataDir } = await makePlatform();
    await platform.start();
    const url = platform.simulatorUrl ?? '';
    expect((await fetch(url)).status).toBe(200);
    expect(existsSync(join(dataDir, 'simulator'))).toBe(true);
    const { db } = database;
    const row = { email: 'ada@example.com', plan: 'free', display_name: null, password_hash: null };
    const { id } = await db.insertInto('users').values(row).returning('id').executeTakeFirstOrThrow();
    const { secretKey, webhookSecret } = loadSecrets(join(dataDir, 'simulator'));
    const prices = { minimumCents: 300, priceCentsPerGb: 10 };
    const secrets = { secretKey, webhookSecret: () => webhookSecret };
    const processor = createProcessor({ ...secrets, prices, apiUrl: () => url, logger });
    const customer_id = await processor.ensureCustomer({ userId: id, email: row.email, name: null });
    await db.insertInto('billing_accounts').values({ user_id: id, customer_id }).execute();
    const { clientSecret } = await processor.createSetupIntent(customer_id, 'setup');
    await fetch(`${url}/_sim/setup_intents/${clientSecret}/confirm`, { method: 'POST' });
    await eventually(async () => {
      const account = await db.selectFrom('billing_accounts').select('has_payment_method').executeTakeFirstOrThrow();
      expect(account.has_payment_method).toBe(true);
    });
    await platform.stop();
    expect(await isOpen(url)).toBe(false);
  });

  it('does not start when the port of the simulator is taken: one line names it and its key, nothing stays open', async () => {
    const simulator_port = await portHeld();
    const { platform } = await makePlatform({ simulator_port });
    await expect(platform.start()).rejects.toMatchObject({
      code: 'CONFIG_PORT_TAKEN',
      message: `port ${simulator_port} on 127.0.0.1 is already in use (platform.billing.simulator_port)`,
    });
    expect(() => platform.address).toThrow('not open');
  });

  it('runs no simulator when the processor is elsewhere, and starts while that is away', async () => {
    const secrets = { stripe_secret_key: 'sk_test_none', stripe_webhook_secret: 'whsec_none' };
    const api = { stripe_api_url: `http://127.0.0.1:${await portHeld()}` };
    const { platform, dataDir } = await makePlatform({ processor: 'stripe', ...secrets, ...api });
    await platform.start();
    expect(platform.simulatorUrl).toBeNull();
    expect(existsSync(join(dataDir, 'simulator'))).toBe(false);
    const webhook = `http://127.0.0.1:${platform.address.port}/billing/webhook`;
    expect((await fetch(webhook, { method: 'POST', body: '{}' })).status).toBe(400);
  });
});
