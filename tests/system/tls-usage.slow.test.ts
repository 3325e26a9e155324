// Test of a TLS tunnel of an account: the charges, the entry in the usage, and the name, which is refused to other accounts.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { TLS_FLAGS } from './https-visitor.fixture.ts';
import { it } from './in-process.fixture.ts';
import { openWith, Person, startPlatform } from './platform-test.fixture.ts';
import { echo, startTlsService, visitTls } from './tls-service.fixture.ts';
import { ask } from './visitor.fixture.ts';

it('a TLS tunnel is charged as tcp with its host, and its name stays with its account after the client has left', async ({
  harness,
}) => {
  const stack = await startPlatform(harness, { tls: true, fixedPorts: true });
  const ann = await Person.signUp(stack, 'ann');
  const bob = await Person.signUp(stack, 'bob');
  const service = harness.use(await startTlsService(echo));
  const tls = ['tls', service.port, '--subdomain', 'vault', ...TLS_FLAGS];
  const tunnel = await openWith(harness, stack, await ann.newKey(), tls);
  const { tunnel_id, assigned_port } = await tunnel.ready();
  const visitor = await visitTls(assigned_port, 'vault.localhost');
  expect(await ask(visitor, 'hello')).toBe('hello');
  visitor.destroy();
  const shown = { protocol: 'tcp', label: 'vault.localhost', public_url: `tls://vault.localhost:${assigned_port}` };
  await eventually(
    async () => {
      const entry = await ann.entry(tunnel_id);
      expect(entry).toMatchObject({ ...shown, request_count: 1 });
      expect(entry.bytes_proxied).toBeGreaterThan(1000);
    },
    { timeoutMs: 20_000 },
  );
  expect(await ann.usage()).toMatchObject({ total_requests_30d: 1, active_tunnels: 1 });
  tunnel.signal('SIGTERM');
  expect(await tunnel.exitCode()).toBe(0);
  const key = await bob.newKey();
  for (const kind of ['http', 'tls']) {
    const taken = await openWith(harness, stack, key, [kind, service.port, '--subdomain', 'vault', ...TLS_FLAGS]);
    expect(await taken.waitFor('error')).toMatchObject({ code: 'TUNNEL_SUBDOMAIN_IN_USE' });
  }
});
