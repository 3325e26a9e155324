import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeConfig, simulator } from './server-commands.ts';

const tlsFile = (name: string): string =>
  fileURLToPath(new URL(`../../../../packages/testkit/fixtures/tls/${name}`, import.meta.url));
const TLS_CERT = tlsFile('cert.pem');
const TLS_KEY = tlsFile('key.pem');

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

it('the config check prints ok for the built-in defaults and for a valid file', async () => {
  const ok = { exitCode: 0, text: 'ok: built-in defaults', warnings: [], json: { ok: true, warnings: [] } };
  expect(await judgeConfig({}, {})).toEqual(ok);
  const config = write('[server]\ncontrol_port = 4440\n');
  expect(await judgeConfig({ config }, {})).toMatchObject({ exitCode: 0, text: `ok: ${config}` });
});

describe('warnings of the config check', () => {
  const keysOf = async (flags: Parameters<typeof judgeConfig>[0]): Promise<string[]> =>
    (await judgeConfig(flags, {})).warnings.map(({ key }) => key);

  it('do not fail the check unless --strict is given', async () => {
    const config = write('[server]\nhost = "0.0.0.0"\n');
    const verdict = await judgeConfig({ config }, {});
    expect(verdict).toMatchObject({ exitCode: 0, text: `ok: ${config}`, json: { ok: true } });
    expect(verdict.json).toMatchObject({ warnings: verdict.warnings });
    expect(verdict.warnings.length).toBeGreaterThan(2);
    expect(await judgeConfig({ config, strict: true }, {})).toMatchObject({ exitCode: 2, json: { ok: false } });
    const whole = write('[load_balancing]\nenabled = true\n');
    expect(await judgeConfig({ config: whole, strict: true }, {})).toMatchObject({ exitCode: 0, text: `ok: ${whole}` });
  });

  it('can be allowed separately, for example for a public server without a payment processor', async () => {
    const config = write(`
[server]
host = "0.0.0.0"
[load_balancing]
enabled = true
[platform]
public_url = "https://tunnels.example.com"
[platform.mail]
transport = "smtp"
smtp_url = "smtp://mail.example.com"
`);
    const strict = { config, strict: true };
    const { exitCode, text } = await judgeConfig(strict, {});
    expect([exitCode, text]).toEqual([2, expect.stringMatching(/ --allow platform\.billing\.processor$/)]);
    expect(await judgeConfig({ ...strict, allow: ['load_balancing.enabled'] }, {})).toMatchObject({ exitCode: 2 });
    const allowed = await judgeConfig({ ...strict, allow: ['platform.billing.processor'] }, {});
    expect(allowed).toMatchObject({ exitCode: 0, warnings: [{ key: 'platform.billing.processor' }] });
  });

  it('are limited to the part that will run', async () => {
    const config = write(`[[auth.keys]]\naccount = "alice"\nsha256 = "${'a'.repeat(64)}"\n`);
    expect(await keysOf({ config })).toEqual(['auth.keys', 'load_balancing.enabled']);
    expect(await keysOf({ config, for: 'edge' })).toEqual(['load_balancing.enabled']);
    expect(await keysOf({ config, for: 'platform' })).toEqual([]);
  });

  it("name the operator's rules that do not apply to tcp and udp tunnels", async () => {
    const rules = join(dir, 'rules.yml');
    writeFileSync(rules, '- deny: true\n  match: { path: /admin }\n- deny: true\n  match: { address: 192.0.2.0/24 }\n');
    const config = write(`[load_balancing]\nenabled = true\n[policy]\nfile = ${JSON.stringify(rules)}\n`);
    const text = `${rules}: policy rule 1: \`match.path\` applies to requests; tcp and udp tunnels ignore the rule`;
    expect((await judgeConfig({ config }, {})).warnings).toEqual([{ key: 'policy.file', text }]);
    expect(await judgeConfig({ config, strict: true, allow: ['policy.file'] }, {})).toMatchObject({ exitCode: 0 });
    expect(await keysOf({ config, for: 'platform' })).toEqual([]);
  });

  it('are empty without a config file, except that an edge warns about load_balancing.enabled', async () => {
    expect(await keysOf({})).toEqual([]);
    expect(await keysOf({ for: 'edge' })).toEqual(['load_balancing.enabled']);
  });
});

it('the config check of an invalid file names the error and the solution, and exits with 2', async () => {
  const config = write('[server]\ncontrol_prot = 4440\n');
  const verdict = await judgeConfig({ config }, {});
  expect(verdict.exitCode).toBe(2);
  expect(verdict.text).toMatch(/unknown key `server\.control_prot`.*control_port`\? Remove the key/);
  expect(verdict.json).toMatchObject({ ok: false, code: 'CONFIG_UNKNOWN_KEY' });
});

it('the config check reports a missing file', async () => {
  expect((await judgeConfig({ config: join(dir, 'none.toml') }, {})).json).toMatchObject({
    code: 'CONFIG_FILE_UNREADABLE',
  });
});

describe('unencrypted HTTP in the config check', () => {
  const TLS = `[tls]\ncert_path = "${TLS_CERT}"\nkey_path = "${TLS_KEY}"\n`;
  const verdictOf = async (server: string, rest = ''): Promise<string> =>
    (await judgeConfig({ config: write(`[server]\n${server}\n${rest}`) }, {})).text;
  const LINK = 'platform_credential_file = "/x"\n';

  it('is refused for links to other machines, with the key that allows it', async () => {
    for (const key of ['platform_url', 'api_url']) {
      const text = await verdictOf(`${LINK}${key} = "http://platform.example"`);
      expect(text).toContain(`\`server.${key}\` must be an https URL`);
      expect(text).toContain('server.allow_insecure_link = true');
      expect(await verdictOf(`${LINK}${key} = "http://platform.example"\nallow_insecure_link = true`)).toMatch(/^ok/);
    }
    expect(await verdictOf('api_host = "0.0.0.0"')).toContain('`127.0.0.1`');
    expect(await verdictOf('host = "0.0.0.0"')).toMatch(/^ok/);
  });

  it('is replaced by TLS with [tls], and the certificate must cover the host of the API URL', async () => {
    const open = 'host = "0.0.0.0"\ndomain = "edge.example"\n';
    expect(await verdictOf(open, TLS)).toMatch(/^ok/);
    expect(await verdictOf(`${open}api_url = "https://localhost:4041"`, TLS)).toMatch(/^ok/);
    expect(await verdictOf(`${open}api_url = "https://127.0.0.1:4041"`, TLS)).toMatch(/^ok/);
    const text = await verdictOf(`${open}api_url = "https://edge.example:4041"`, TLS);
    expect(text).toContain('does not cover edge.example, the host in the URL');
    expect(text).toContain('DNS:localhost');
    // Without api_url the edge reports its domain to the platform.
    const asked = `${open}${LINK}platform_url = "https://platform.example"`;
    expect(await verdictOf(asked, TLS)).toContain('does not cover edge.example, the host in the URL');
    expect(await verdictOf(asked.replace('edge.example', 'localhost'), TLS)).toMatch(/^ok/);
  });
});

it('the config check names a certificate file that cannot be loaded', async () => {
  const config = write('[tls]\ncert_path = "/nowhere/cert.pem"\nkey_path = "/nowhere/key.pem"\n');
  const verdict = await judgeConfig({ config }, {});
  expect(verdict.json).toMatchObject({ ok: false, code: 'CONFIG_TLS_FILES' });
  expect(verdict.text).toContain('/nowhere/cert.pem');
});

describe('[policy] in the config check', () => {
  const file = (name: string, text: string): string => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };

  it('is valid when its files are valid', async () => {
    const config = write(`
[policy]
file = "${file('rules.yml', '- name: abuse\n  match: { address: 203.0.113.0/24 }\n  deny: true\n- rate_limit: { requests: 100, per_secs: 1 }\n')}"
login_secret_file = "${file('secrets', `${'s'.repeat(43)}\n`)}"
[[policy.login]]
name = "company"
issuer = "https://login.example.com"
client_id = "edge"
client_secret_file = "${file('client', 'c\n')}"
`);
    expect(await judgeConfig({ config }, {})).toMatchObject({ exitCode: 0, text: `ok: ${config}` });
  });

  it.each([
    ['rules that are none', 'file', '- deny: nobody\n', /rules\.yml:1: /],
    ['an unknown action', 'file', '- match: { method: GET }\n  denny: true\n', /did you mean `deny`\?/],
    ['a login of its own', 'file', 'login: { provider: x }\nrules: []\n', /rules\.yml:1: .*login/],
    ['a way to a service', 'file', '- deny: true\n- route: api\n', /rules\.yml:2: .*route/],
    ['a short secret', 'login_secret_file', 'short\n', /secret 1 is shorter than 32 characters/],
  ])('is refused with %s', async (_what, key, text, words) => {
    const config = write(`[policy]\n${key} = "${file('rules.yml', text)}"\n`);
    const verdict = await judgeConfig({ config }, {});
    expect(verdict).toMatchObject({ exitCode: 2, json: { ok: false } });
    expect(verdict.text).toMatch(words);
    // A platform without an edge does not read the policy files.
    expect(await judgeConfig({ config, for: 'platform' }, {})).toMatchObject({ exitCode: 0 });
  });

  it('is refused with a missing file', async () => {
    for (const key of ['file', 'login_secret_file']) {
      const config = write(`[policy]\n${key} = "${join(dir, 'nothing')}"\n`);
      const { exitCode, text } = await judgeConfig({ config }, {});
      expect([exitCode, text]).toEqual([
        2,
        expect.stringContaining(`cannot read ${join(dir, 'nothing')}: no such file`),
      ]);
    }
  });
});

describe('the simulator command', () => {
  it.each([
    ['a webhook URL that is none', ['--webhook-url', 'nowhere'], /Use a URL/],
    ['a port that is none', ['--port', '70000'], /simulator_port/],
  ])('refuses %s', async (_, args, reason) => {
    const command = simulator(() => {})
      .exitOverride()
      .configureOutput({ writeErr: () => {} });
    const flags = ['--data-dir', dir, ...args];
    await expect(command.parseAsync(flags, { from: 'user' })).rejects.toThrow(reason);
  });
});
