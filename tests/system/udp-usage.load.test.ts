// Tests that an account is charged exactly for the flows and payloads of its UDP tunnels, each once, even if the client or the edge dies.
import { eventually, startUdpEcho } from '@tunnel/testkit';
import { expect } from 'vitest';
import { it, openWith, Person, startEdgeOf } from './platform-test.fixture.ts';
import { isUdpPortFree, UdpVisitor } from './udp-visitor.fixture.ts';

const SOON = { timeoutMs: 20_000 };

/** Sends questions in turn, and returns the number of bytes passed in the two directions. */
const talk = async (visitor: UdpVisitor, times: number, size: number): Promise<number> => {
  for (let n = 0; n < times; n += 1) expect((await visitor.ask(Buffer.alloc(size, 'u'))).length).toBe(size);
  return 2 * times * size;
};

it('known UDP datagrams are charged to the byte, and each flow once', async ({ harness, stack }) => {
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const echo = harness.use(await startUdpEcho());
  const { tunnel_id, assigned_port } = await (await openWith(harness, stack, key, ['udp', echo.port])).ready();
  let bytes = 0;
  for (const size of [0, 1, 1200, 30_000]) {
    const visitor = harness.use(await UdpVisitor.of(assigned_port));
    // Only a confirmed visitor can receive more than 8 KiB.
    bytes += (await talk(visitor, 1, 1)) + (await talk(visitor, 5, size));
  }
  await eventually(async () => {
    const { protocol, request_count, bytes_proxied } = await person.entry(tunnel_id);
    expect([protocol, request_count, bytes_proxied]).toEqual(['udp', 4, bytes]);
  }, SOON);
  expect(await person.usage()).toMatchObject({ total_requests_30d: 4, total_bytes_30d: bytes });
});

it('traffic of a killed UDP client is charged, and the client returns to the same usage entry', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const echo = harness.use(await startUdpEcho());
  const home = await harness.folder();
  const first = await openWith(harness, stack, key, ['udp', echo.port], { home });
  const { tunnel_id, assigned_port } = await first.ready();
  const visitor = harness.use(await UdpVisitor.of(assigned_port));
  let bytes = await talk(visitor, 20, 1000);
  await first.kill();
  visitor.say('dropped, and not charged');
  const second = await openWith(harness, stack, key, ['udp', echo.port], { home });
  expect((await second.ready()).tunnel_id).toBe(tunnel_id);
  // The flow is still the same as before the kill.
  bytes += await talk(visitor, 3, 500);
  await eventually(async () => {
    const { request_count, bytes_proxied } = await person.entry(tunnel_id);
    expect([request_count, bytes_proxied]).toEqual([1, bytes]);
  }, SOON);
});

it('a killed edge loses at most the UDP traffic of its last 100 ms', async ({ harness, stack }) => {
  const edge = await startEdgeOf(harness, stack, 'fra', { fixedPorts: true, programs: true });
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const echo = harness.use(await startUdpEcho());
  const tunnel = await openWith(harness, edge, key, ['udp', echo.port]);
  const { tunnel_id, assigned_port } = await tunnel.ready();
  const visitor = harness.use(await UdpVisitor.of(assigned_port));
  const written = await talk(visitor, 30, 1000);
  await eventually(async () => expect((await person.entry(tunnel_id)).bytes_proxied).toBe(written), SOON);
  const last = await talk(visitor, 1, 700);
  await edge.kill();
  await edge.start();
  await tunnel.waitFor('reconnected');
  await visitor.askUntilAnswered('back');
  const entries = await eventually(async () => {
    const log = await person.log();
    expect(log).toHaveLength(2);
    expect(log.find((entry) => entry.tunnel_id === tunnel_id)?.unregistered_at).not.toBeNull();
    return log;
  }, SOON);
  const charged = entries.find((entry) => entry.tunnel_id === tunnel_id)?.bytes_proxied ?? 0;
  // The journal may have been written between the question and its response, which are charged separately.
  expect([written, written + last / 2, written + last]).toContain(charged);
});

it('revoking a key ends its UDP tunnels and their flows', async ({ harness, stack }) => {
  const person = await Person.signUp(stack);
  const key = await person.newKey();
  const echo = harness.use(await startUdpEcho());
  const tunnel = await openWith(harness, stack, key, ['udp', echo.port]);
  const { assigned_port } = await tunnel.ready();
  const visitor = harness.use(await UdpVisitor.of(assigned_port));
  await talk(visitor, 2, 10);
  expect((await person.call(`/keys/${key.id}`, { method: 'DELETE' })).status).toBeLessThan(300);
  await eventually(async () => expect(await isUdpPortFree(assigned_port)).toBe(true), SOON);
  const heard = visitor.heard.length;
  visitor.say('is anybody there?');
  expect(await tunnel.exitCode()).not.toBe(0);
  expect(visitor.heard.length).toBe(heard);
});
