// Tests with secrets planted in every form that a policy allows, and searched for in every file, output and message of a client.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from '../in-process.fixture.ts';
import { ClientTrial } from './client.fixture.ts';

/** Common part of all planted secrets, so that a single search is enough. */
const PLANTED = 'hidden918273645';
const OURS = new Set(['shop.yml', 'users', 'token', 'hook', 'config.yml']);

const POLICY = [
  `login: { issuer: "https://id.example.com", client_id: shop, client_secret: ${PLANTED}-client }`,
  'rules:',
  '  - auth:',
  `      basic: { users: { anna: ${PLANTED}-one }, users_file: users }`,
  `      tokens: [{ name: a, token: ${PLANTED}-of-programs }, { name: b, token_file: token }, { name: c, token_env: TOKEN }]`,
  '      login: { anyone: true }',
  '  - match: { path: /hook }',
  '    verify_webhook: { provider: github, secret_file: hook }',
  '',
].join('\n');

/** Returns the paths of all files below the folder, except files written by the test. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stat = statSync(path);
    if (stat.isDirectory()) return filesIn(path);
    return stat.isFile() && !OURS.has(name) ? [path] : [];
  });

describe.concurrent('secrets of a policy', () => {
  it('are in no log, event, state file or command output, and only required secrets reach the edge', async ({
    harness,
  }) => {
    const trial = await ClientTrial.begin(harness);
    trial.write('shop.yml', POLICY);
    trial.write('users', `bert:${PLANTED}-two\n`);
    trial.write('token', `${PLANTED}-in-a-file\n`);
    trial.write('hook', `${PLANTED}-hook\n`);
    trial.config(['shop: { proto: http, local_port: 3000, policy: shop.yml }'], ['log_file: client.log']);
    const env = { TOKEN: `${PLANTED}-in-a-variable`, TUNNEL_DEBUG: '1' };
    const program = await trial.run(['start', '--config', trial.file, '--json', '--no-inspect'], env);
    await program.ready();
    const asked = [
      await trial.ask('status', '--json'),
      await trial.ask('status'),
      await trial.ask('logs', '--json'),
      await trial.ask('reload', '--json'),
    ];
    // Waits for the state file with the resume secret, and for the log.
    await eventually(() => expect(filesIn(trial.home).length).toBeGreaterThan(1));
    const said = [...program.stdout, ...program.stderr, ...asked.flatMap(({ out, err }) => [out, err])];
    const written = filesIn(trial.home).map((file) => readFileSync(file, 'latin1'));
    for (const text of [...said, ...written]) expect(text).not.toContain(PLANTED);
    const [sent] = trial.edge.session.all('RegisterTunnel');
    // The secrets of the login provider and of the webhook are sent, because the edge could not check codes or signatures with digests.
    expect(
      JSON.stringify(sent)
        .match(/hidden918273645-[a-z]+/g)
        ?.sort(),
    ).toEqual([`${PLANTED}-client`, `${PLANTED}-hook`]);
  });
});
