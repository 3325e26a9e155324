// Tests that an account is charged for exactly the traffic carried, even if a client or a service dies meanwhile.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { countedEcho, countedWeb } from './counted-service.fixture.ts';
import { askHttp, endpointOf } from './http-tunnels.fixture.ts';
import { it, memberFlags, openWith, Person } from './platform-test.fixture.ts';
import { sendAndReadAll } from './visitor.fixture.ts';

const SOON = { timeoutMs: 20_000 };

it('known bytes and requests through HTTP and TCP tunnels are charged to the byte', async ({ harness, stack }) => {
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const echo = harness.use(await countedEcho());
  const web = harness.use(await countedWeb());
  const tcp = await (await openWith(harness, stack, key, ['tcp', echo.port])).ready();
  const http = await (await openWith(harness, stack, key, ['http', web.port])).ready();

  const sizes = [1, 1000, 300_000];
  for (const size of sizes) await sendAndReadAll(tcp.assigned_port, Buffer.alloc(size, 't'));
  const endpoint = endpointOf(http.public_url);
  for (const size of sizes) {
    const { body } = await askHttp(endpoint, { method: 'POST', path: `/${size}`, body: Buffer.alloc(size, 'h') });
    expect(body.length).toBe(size);
  }
  const tcpBytes = 2 * sizes.reduce((sum, size) => sum + size, 0);
  expect(echo.bytes).toBe(tcpBytes);
  await eventually(async () => {
    const { request_count, bytes_proxied } = await person.entry(tcp.tunnel_id);
    expect([request_count, bytes_proxied]).toEqual([sizes.length, tcpBytes]);
  }, SOON);
  await eventually(async () => {
    const { request_count, bytes_proxied } = await person.entry(http.tunnel_id);
    expect([request_count, bytes_proxied]).toEqual([sizes.length, web.bytes]);
  }, SOON);
  expect(await person.usage()).toMatchObject({
    total_requests_30d: 2 * sizes.length,
    total_bytes_30d: tcpBytes + web.bytes,
  });
});

it('traffic of a killed client is charged once', async ({ harness, stack }) => {
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const echo = harness.use(await countedEcho());
  const home = await harness.folder();
  const first = await openWith(harness, stack, key, ['tcp', echo.port], { home });
  const { tunnel_id, assigned_port } = await first.ready();
  await sendAndReadAll(assigned_port, Buffer.alloc(70_000, 'a'));
  await first.kill();
  // The client resumes the same tunnel, so its usage entry continues.
  const second = await openWith(harness, stack, key, ['tcp', echo.port], { home });
  expect((await second.ready()).tunnel_id).toBe(tunnel_id);
  await sendAndReadAll(assigned_port, Buffer.alloc(5000, 'b'));
  await eventually(async () => {
    const { request_count, bytes_proxied } = await person.entry(tunnel_id);
    expect([request_count, bytes_proxied]).toEqual([2, 150_000]);
  }, SOON);
  expect(await person.usage()).toMatchObject({ total_tunnels_30d: 1, active_tunnels: 1, total_bytes_30d: 150_000 });
});

it('a request that failed at a dead member is charged once, to the member that served it', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const web = harness.use(await countedWeb());
  const nobody = await countedWeb();
  await nobody.close();
  const flags = await memberFlags(harness, 'half');
  const [dead, alive] = await Promise.all(
    [nobody, web].map(async ({ port }) => (await openWith(harness, stack, key, ['http', port, ...flags])).ready()),
  );
  const endpoint = endpointOf(alive?.public_url ?? '');
  const askOn = async (): Promise<void> => {
    for (let asked = 0; asked < 6; asked += 1) expect((await askHttp(endpoint, { path: '/10' })).status).toBe(200);
  };
  await Promise.all(Array.from({ length: 10 }, askOn));
  await eventually(async () => {
    const entries = [await person.entry(alive?.tunnel_id ?? ''), await person.entry(dead?.tunnel_id ?? '')];
    expect(entries.map(({ request_count }) => request_count)).toEqual([60, 0]);
    expect(entries[0]?.bytes_proxied).toBe(web.bytes);
  }, SOON);
});
