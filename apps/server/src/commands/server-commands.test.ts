import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { judgeConfig } from './server-commands.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-server-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const write = (text: string): string => {
  const file = join(dir, 'server.toml');
  writeFileSync(file, text);
  return file;
};

it('says ok of the defaults and of a good file', async () => {
  expect(await judgeConfig({}, {})).toEqual({ exitCode: 0, text: 'ok: built-in defaults', json: { ok: true } });
  const config = write('[server]\ncontrol_port = 4440\n');
  expect(await judgeConfig({ config }, {})).toMatchObject({ exitCode: 0, text: `ok: ${config}` });
});

it('says of a bad file what is wrong, what to do, and ends with 2', async () => {
  const config = write('[server]\ncontrol_prot = 4440\n');
  const verdict = await judgeConfig({ config }, {});
  expect(verdict.exitCode).toBe(2);
  expect(verdict.text).toMatch(/unknown key `server\.control_prot`.*control_port`\? Remove the key/);
  expect(verdict.json).toMatchObject({ ok: false, code: 'CONFIG_UNKNOWN_KEY' });
});

it('says of a missing file that it cannot be read', async () => {
  expect((await judgeConfig({ config: join(dir, 'none.toml') }, {})).json).toMatchObject({
    code: 'CONFIG_FILE_UNREADABLE',
  });
});

it('says of a certificate that cannot be loaded which file it is', async () => {
  const config = write('[tls]\ncert_path = "/nowhere/cert.pem"\nkey_path = "/nowhere/key.pem"\n');
  const verdict = await judgeConfig({ config }, {});
  expect(verdict.json).toMatchObject({ ok: false, code: 'CONFIG_TLS_FILES' });
  expect(verdict.text).toContain('/nowhere/cert.pem');
});
