// Runs the receiver shown in docs/alerts.md, unchanged.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { eventually, freePort, spawnProgram, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { composeAlert } from './alert-message.ts';
import { alertOf, senderOf } from './alerts.fixture.ts';

const page = await readFile(new URL('../../../../docs/alerts.md', import.meta.url), 'utf8');
const block = (language: string): string => new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(page)?.[1] ?? '';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

it.each(['open sesame', `whsec_${Buffer.from('a key of thirty-two random bytes').toString('base64')}`])(
  'the receiver in docs/alerts.md accepts alerts signed with its secret and rejects all others',
  async (secret) => {
    const directory = await temporaryDirectory();
    endings.push(() => directory.close());
    const file = join(directory.path, 'receiver.mjs');
    await writeFile(file, block('js'));
    const port = await freePort();
    const env = { ALERT_SECRET: secret, PORT: String(port) };
    const program = await spawnProgram({ command: process.execPath, args: [file], env });
    endings.push(() => program.close());
    await program.waitForLine(/^listening$/);
    const alert = alertOf([`http://127.0.0.1:${port}/`]);
    const genuine = senderOf({ secret: new Secret(secret) });
    genuine.send(alert);
    await eventually(() => expect(genuine.totals.tenant.delivered).toBe(1));
    await program.waitForLine(/^no healthy member: web$/);
    for (const other of ['', 'another']) {
      const forged = senderOf({ secret: new Secret(other) });
      forged.send(alert);
      await eventually(() => expect(forged.totals.tenant['refused-status']).toBe(1));
    }
  },
);

it('docs/alerts.md shows the body of an alert exactly as sent', () => {
  const stamp = { id: 'msg_1', now: 0, secret: new Secret(''), userAgent: '', regionId: 'local' };
  const shown = alertOf([], { label: 'shop', groupName: 'shop' });
  expect(JSON.stringify(JSON.parse(block('json')))).toBe(composeAlert(shown, stamp).body.toString());
});
