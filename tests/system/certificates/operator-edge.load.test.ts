// Tests of certificate commands beside an edge that orders its own certificates. The edge is an executable; the commands run inside the
// test process.
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { spawnedServerCommand } from '../server-command.fixture.ts';
import { it } from '../system-test.fixture.ts';
import { AcmeStack, DOMAIN, SOON, tunnelServer } from './acme-stack.fixture.ts';

it('certificate commands list and renew certificates of a running standalone edge, and reject unknown names', async ({
  harness,
}) => {
  const edge = await AcmeStack.start(harness, {});
  const first = await eventually(() => edge.serialOf(DOMAIN), SOON);
  const listed = await edge.certificates('list');
  expect([listed.code, listed.err]).toEqual([0, '']);
  expect(listed.out).toMatch(
    /^NAMES +STATE +ISSUER +EXPIRES IN +RENEWS +LAST ERROR\n *tunnels\.test +valid +.* +\d+ days +in /,
  );
  expect(await edge.list()).toMatchObject([{ names: [DOMAIN], source: 'acme', state: 'valid', last_error: null }]);
  const byProgram = (await spawnedServerCommand(edge.stack, 'certificates', 'list', '--json')).join('\n');
  expect(byProgram).toContain(DOMAIN);
  expect(byProgram).not.toContain('PRIVATE');

  const renewed = await edge.certificates('renew', 'Tunnels.Test.');
  expect([renewed.code, renewed.out]).toEqual([0, expect.stringContaining(`${DOMAIN}: renewal starts`)]);
  await eventually(async () => expect(await edge.serialOf(DOMAIN)).not.toBe(first), SOON);
  expect(edge.authority.orders.at(-1)?.replaces).toEqual(expect.stringContaining('.'));

  const unknown = await edge.certificates('renew', 'tunnel.test');
  expect([unknown.code, unknown.err]).toEqual([
    expect.any(Number),
    expect.stringContaining(`there is no certificate for tunnel.test; similar names: ${DOMAIN}`),
  ]);
  expect(unknown.code).not.toBe(0);
  for (const bad of ['', 'x'.repeat(300), '../../etc/passwd', 'a\nb']) {
    const refused = await edge.certificates('renew', bad);
    expect([bad, refused.code === 0, refused.err.split('\n')[0]]).toEqual([
      bad,
      false,
      expect.stringMatching(/there is no certificate for|argument/),
    ]);
  }

  const elsewhere = await tunnelServer('certificates', 'list', '--data-dir', join(await harness.folder(), 'none'));
  expect([elsewhere.code === 0, elsewhere.err]).toEqual([false, expect.stringContaining('no server is running')]);
  await edge.stack.stop();
  const stopped = await edge.certificates('list');
  expect([stopped.code === 0, stopped.err]).toEqual([false, expect.stringContaining('no server is running')]);
});
