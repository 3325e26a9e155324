// Test of a name that changes hands: logins of visitors under the first owner are worthless under the next owner, who never sees the
// cookies.
import { expect } from 'vitest';
import { startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { openWith, Person, startPlatform } from '../platform-test.fixture.ts';
import { askUrl, Browser, type LoginTunnel, openLoginTunnel } from './login.fixture.ts';

const ANN = 'ann@example.com';

it('a login at a released name is invalid under the next owner, and its cookie never reaches the next service', async ({
  harness,
}) => {
  // With the default settings, the name would change hands only after weeks.
  const stack = await startPlatform(harness, { fixedPorts: true, tables: '[names]\nhold_days = 0\ngrace_days = 0' });
  const first = await Person.signUp(stack, 'first');
  const second = await Person.signUp(stack, 'second');
  const firstKey = await first.newKey('one');
  const secondKey = await second.newKey('two');
  const open = (key: { readonly token: string }, given?: LoginTunnel): Promise<LoginTunnel> =>
    openLoginTunnel(harness, stack, {
      name: 'handed-on',
      flags: [],
      env: { TUNNEL_API_KEY: key.token },
      ...(given && { provider: given.provider }),
    });
  const end = async ({ program }: Pick<LoginTunnel, 'program'>): Promise<void> => {
    program.signal('SIGTERM');
    await program.exitCode();
  };
  const before = await open(firstKey);
  const { url } = before;
  const ann = new Browser();
  await ann.logIn(`${url}/`, ANN);
  expect((await ann.send(`${url}/`)).status).toBe(200);
  await end(before);

  // The next owner protects the name with the same provider and the same client id.
  const after = await open(secondKey, before);
  expect((await ann.send(`${url}/`)).status).toBe(401);
  expect((await ann.open(`${url}/`)).status).toBe(302);
  expect(after.reached).toEqual([]);
  await end(after);

  // The next owner leaves the name unprotected. A cookie that reaches the service would be valid again if the first owner got the name
  // back.
  const seen: string[] = [];
  const web = harness.use(
    await startWeb((request, response) => {
      seen.push(request.rawHeaders.join('\n'));
      response.end('open');
    }),
  );
  const program = await openWith(harness, stack, secondKey, ['http', web.port, '--subdomain', 'handed-on']);
  await program.ready();
  ann.cookiesAt(url).set('own', '1');
  expect((await ann.send(`${url}/`)).text).toBe('open');
  expect(seen[0]).toContain('own=1');
  expect(seen[0]).not.toContain('tunnel_login');
  await end({ program });

  const again = await open(firstKey, before);
  expect((await ann.send(`${url}/`)).status).toBe(200);
  expect((await askUrl(`${url}/`)).status).toBe(401);
  await end(again);
});
