// Test of a policy that changes by a reload while visitors are connected: the new policy applies from the next request and connection on,
// and open connections stay.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startEchoServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { echoSockets, endpointOf, readUntil, sendRaw, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { ask, fateOf, visit } from '../visitor.fixture.ts';

const GET = 'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n';

it('after a policy reload, open sockets and connections stay, and new requests and connections meet the new rules', async ({
  harness,
}) => {
  const stack = await harness.stack();
  let served = 0;
  const web = harness.use(
    await startWeb((_request, response) => {
      served += 1;
      response.end('served');
    }),
  );
  const sockets = echoSockets(web);
  harness.use({ close: async () => sockets.close() });
  const echo = harness.use(await startEchoServer());
  const home = await harness.folder();
  const file = join(home, 'tunnel.yml');
  const write = (rules: string): void =>
    writeFileSync(
      file,
      [
        `server: ${stack.control}`,
        `auth_token_file: ${stack.tokenFile}`,
        'tunnels:',
        `  web: { proto: http, local_port: ${web.port}, policy: ${rules} }`,
        `  db: { proto: tcp, local_port: ${echo.port}, policy: ${rules} }`,
        '',
      ].join('\n'),
    );
  write('[{ allow_addresses: [127.0.0.0/8] }]');
  const program = await harness.run(['start', '--config', file, '--json', '--quiet', '--no-inspect'], { home });
  await program.ready(2);
  const opened = program.events('ready');
  const [webReady, dbReady] = ['web', 'db'].map((name) => opened.find((event) => event['name'] === name));
  const endpoint = endpointOf(String(webReady?.['public_url']));
  const dbPort = Number(dbReady?.['assigned_port']);
  const dial = (): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${endpoint.port}/`, { headers: { host: endpoint.host } }).on('error', () => {});

  const inside = dial();
  await once(inside, 'open');
  const keptAlive = await sendRaw(endpoint, GET);
  await readUntil(keptAlive, /served/);
  const connection = await visit(dbPort);
  expect(await ask(connection, 'hello')).toBe('hello');

  write('[{ allow_addresses: [192.0.2.0/24] }]');
  program.signal('SIGHUP');
  expect(await program.waitFor('reloaded')).toMatchObject({ changed: ['web', 'db'], removed: [], added: [] });

  inside.send('still here');
  expect(String((await once(inside, 'message'))[0])).toBe('still here');
  expect(await ask(connection, 'still here')).toBe('still here');
  keptAlive.write(GET.replace('{host}', endpoint.host));
  expect(await readUntil(keptAlive, /<\/html>/)).toMatch(/^HTTP\/1\.1 403 /);
  expect(await fateOf(dbPort)).toBe('ECONNRESET');
  const outside = dial();
  const [, refused] = (await once(outside, 'unexpected-response')) as [unknown, { statusCode: number }];
  expect([refused.statusCode, served]).toEqual([403, 1]);
  for (const socket of [inside, outside]) socket.terminate();
  connection.destroy();
});
