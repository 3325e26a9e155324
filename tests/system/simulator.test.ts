// Tests of the standalone simulator of the payment processor, as other test suites use it: through the official SDK, with webhooks that
// the SDK accepts.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually, type Program, spawnProgram, temporaryDirectory } from '@tunnel/testkit';
import { Stripe } from 'stripe';
import { afterEach, expect, it } from 'vitest';
import { SERVER_BIN } from '../repo/checkout.fixture.ts';
import { withoutOurEnvironment } from './stack.fixture.ts';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Ready {
  readonly pid: number;
  readonly simulator_url: string;
  readonly secret_key: string;
  readonly webhook_secret: string;
}

const spawnSimulator = async (cwd: string, ...args: string[]): Promise<Program> => {
  const command = [SERVER_BIN, 'simulator', '--data-dir', join(cwd, 'data'), ...args];
  const program = await spawnProgram({ command: process.execPath, args: command, env: withoutOurEnvironment(), cwd });
  endings.push(() => program.close());
  return program;
};

const startSimulator = async (cwd: string, ...args: string[]) => {
  const program = await spawnSimulator(cwd, '--json', ...args);
  const [line] = await program.waitForLine(/^\{.*\}$/, { timeoutMs: 30_000 });
  const ready = JSON.parse(line) as Ready;
  const { hostname: host, port } = new URL(ready.simulator_url);
  const stripe = new Stripe(ready.secret_key, { protocol: 'http', host, port, telemetry: false });
  return { program, ready, stripe };
};

const temporaryFolder = async (): Promise<string> => {
  const folder = await temporaryDirectory();
  endings.push(() => folder.close());
  return folder.path;
};

interface Received {
  readonly body: string;
  readonly signature: string;
}

const startReceiver = async () => {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ body, signature: String(request.headers['stripe-signature']) });
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(async () => server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook` };
};

it('the simulator sells a monthly plan through the official SDK, signs webhooks, and keeps its state after kill -9', async () => {
  const { received, url } = await startReceiver();
  const folder = await temporaryFolder();
  const { program, ready, stripe } = await startSimulator(folder, '--webhook-url', url);
  const customer = (await stripe.customers.create({ email: 'ann@example.com' })).id;
  const card = await fetch(`${ready.simulator_url}/_sim/customers/${customer}/cards`, { method: 'POST' });
  expect(card.status).toBe(200);
  const price = await stripe.prices.create({
    currency: 'usd',
    lookup_key: 'monthly',
    unit_amount: 700,
    recurring: { interval: 'month' },
    product_data: { name: 'A month' },
  });
  await stripe.subscriptions.create({
    customer,
    items: [{ price: price.id }],
    off_session: true,
    proration_behavior: 'none',
    billing_cycle_anchor_config: { day_of_month: 1, hour: 0, minute: 0, second: 0 },
  });
  const body = JSON.stringify({ advance_secs: 32 * 86_400 });
  await fetch(`${ready.simulator_url}/_sim/clock`, { method: 'POST', body });
  const { data } = await stripe.invoices.list({ customer });
  expect(data[0]).toMatchObject({ status: 'paid', total: 700 });
  await eventually(() => {
    const events = received.map((each) =>
      stripe.webhooks.constructEvent(each.body, each.signature, ready.webhook_secret),
    );
    expect(events.map(({ type }) => type)).toContain('invoice.paid');
  });
  await expect(stripe.customers.create({ colour: 'red' } as object)).rejects.toMatchObject({ param: 'colour' });

  program.signal('SIGKILL');
  await program.waitForExit();
  const { port } = new URL(ready.simulator_url);
  const again = await startSimulator(folder, '--port', port);
  expect(again.ready).toEqual({ ...ready, pid: again.program.pid });
  expect(await again.stripe.customers.retrieve(customer)).toMatchObject({ email: 'ann@example.com' });
  const second = await spawnSimulator(await temporaryFolder(), '--port', port);
  expect(await second.waitForExit({ timeoutMs: 30_000 })).toMatchObject({ code: 2 });
  expect(second.stderr.join('\n')).toContain(`port ${port} on 127.0.0.1 is already in use (--port)`);
  again.program.signal('SIGTERM');
  expect(await again.program.waitForExit()).toMatchObject({ code: 0 });
});

it('the simulator prints its address and the file with its keys', async () => {
  const program = await spawnSimulator(await temporaryFolder());
  await program.waitForLine(/is ready \(pid \d+\)/, { timeoutMs: 30_000 });
  const [, url = ''] = await program.waitForLine(/^ {2}payments {5}(http:\S+) \(test mode/);
  await program.waitForLine(/^ {2}keys {9}data\/simulator\/secrets\.json /);
  expect(await (await fetch(url)).text()).toContain('Payments (test mode)');
});
