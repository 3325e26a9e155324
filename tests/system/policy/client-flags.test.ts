// Test of `tunnel http` with flags that create rules, through a real edge: the visitors admitted, the routing of requests, and the guard
// shown to the user.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';

it('a password from a file protects a tunnel, and rules from a file route requests to a second local service', async ({
  harness,
}) => {
  const stack = await harness.stack();
  const own = harness.use(
    await startWeb((request, response) => void response.end(`own ${String(request.headers['x-tunnel-user'])}`)),
  );
  const api = harness.use(await startWeb((request, response) => void response.end(`api ${request.url}`)));
  const home = await harness.folder();
  writeFileSync(join(home, 'users'), 'anna:correct horse\n');
  writeFileSync(join(home, 'more.yml'), '- match: { path: /api/** }\n  route: api\n');
  const guard = ['--basic-auth-file', 'users', '--policy', 'more.yml', '--service', `api=${api.port}`];
  const where = ['--server', stack.control, '--token-file', stack.tokenFile, '--json', '--no-inspect'];
  const program = await harness.run(['http', String(own.port), ...where, ...guard], { home });
  const ready = await program.ready();
  expect(ready['guard']).toEqual(expect.any(String));
  const endpoint = endpointOf(ready.public_url);
  const authorization = `Basic ${Buffer.from('anna:correct horse').toString('base64')}`;
  expect((await askHttp(endpoint)).status).toBe(401);
  expect(await askHttp(endpoint, { headers: { authorization } })).toMatchObject({ status: 200, text: 'own anna' });
  const routed = await askHttp(endpoint, { path: '/api/x?y', headers: { authorization } });
  expect(routed).toMatchObject({ status: 200, text: 'api /api/x?y' });
  expect([...program.stdout, ...program.stderr].join('\n')).not.toContain('correct horse');
});
