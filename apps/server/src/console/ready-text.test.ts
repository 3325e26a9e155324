import { expect, it } from 'vitest';
import { briefText, nextCommand, type ReadyFacts, readyText } from './ready-text.ts';

const facts = (run: Partial<ReadyFacts['run']> = {}, tls = false): ReadyFacts => ({
  run: {
    pid: 7,
    platform_url: null,
    api_url: 'http://127.0.0.1:4041',
    control: '127.0.0.1:4040',
    http_url: 'http://127.0.0.1:8000',
    https_url: null,
    metrics_url: 'http://127.0.0.1:9090/metrics',
    simulator_url: null,
    dns: null,
    udp_ports: [],
    admin_token_file: '/home/a/checkout/data/admin-token',
    ...run,
  },
  dataDir: '/home/a/checkout/data',
  domain: 'localhost',
  publicUrl: null,
  signUp: 'open',
  firstAccount: null,
  tcpPortRange: [20000, 20099],
  publishedPorts: { http: 0, https: 0 },
  tls,
  controlOnPublic: true,
  workingDir: '/home/a/checkout',
  isCheckout: true,
  notes: [],
});

it('the start screen lists every address and ends with the next command', () => {
  const text = readyText(facts());
  for (const part of [
    'localhost:4040',
    'http://localhost:4041',
    ':9090/metrics',
    'http://<name>.localhost:8000\n',
    '20000-20099',
    'data',
  ]) {
    expect(text).toContain(part);
  }
  expect(text).toContain('\n  npx hatchway http 3000 --token-file data/admin-token\n');
});

it('the start screen of a service, which runs in the folder /, has absolute paths', () => {
  const text = readyText({ ...facts(), dataDir: '/var/lib/tunnel', workingDir: '/' });
  expect(text).toContain('  data         /var/lib/tunnel\n');
});

it('the start screen shows published ports in the URLs of tunnels and in the next command', () => {
  const inside = facts({ https_url: 'https://127.0.0.1:8443' }, true);
  const text = readyText({ ...inside, domain: 'tunnels.example.com', publishedPorts: { http: 80, https: 443 } });
  expect(text).toContain('HTTP tunnels https://<name>.tunnels.example.com, http://<name>.tunnels.example.com\n');
  expect(text).toContain('--server tunnels.example.com:443');
});

it('the start screen names the dashboard and its sign-up page', () => {
  const text = readyText(facts({ platform_url: 'http://127.0.0.1:8080' }));
  expect(text).toContain('  dashboard    http://localhost:8080/app/\n');
  expect(text).toContain('  sign-up      http://localhost:8080/app/signup (platform.sign_up = "open")\n');
  const open = readyText({
    ...facts({ platform_url: 'http://127.0.0.1:8080' }),
    publicUrl: 'https://tunnels.example.com',
  });
  expect(open).toContain('  dashboard    https://tunnels.example.com/app/\n');
  expect(open).toContain(' https://tunnels.example.com/app/signup (platform.sign_up = "open")\n');
  expect(open).not.toContain('8080');
  expect(readyText(facts())).not.toContain('/app/');
});

it('the start screen names the command that invites or creates users when sign-up is restricted', () => {
  const platform = facts({ platform_url: 'http://127.0.0.1:8080' });
  expect(readyText({ ...platform, signUp: 'invite' })).toContain(
    '  sign-up      tunnel-server admin invite EMAIL (platform.sign_up = "invite")\n',
  );
  const closed = readyText({ ...platform, signUp: 'closed' });
  expect(closed).toContain('tunnel-server admin create-user EMAIL (platform.sign_up = "closed")\n');
  expect(closed).not.toContain('/signup');
});

it('the start screen has a sign-up link while there is no account', () => {
  const link = 'https://tunnels.example.com/app/signup?invite=abc';
  const told = { ...facts({ platform_url: 'http://127.0.0.1:8080' }), signUp: 'invite', firstAccount: link } as const;
  expect(readyText(told)).toContain(`\n  first account: ${link}\n`);
  expect(briefText(told)).toContain(`\n  first account: ${link}\n`);
  expect(readyText({ ...told, firstAccount: null })).not.toContain('first account');
});

it('the brief start screen at a terminal shows the dashboard, the tunnel URL and one command', () => {
  const demo = facts({ platform_url: 'http://127.0.0.1:8080', simulator_url: 'http://127.0.0.1:40123' });
  expect(briefText(demo)).toBe(`Hatchway is ready (pid 7)

  dashboard  http://localhost:8080/app/
  sign-up    http://localhost:8080/app/signup (platform.sign_up = "open")
  tunnels    http://<name>.localhost:8000

Next, publish a local web service on port 3000 from another terminal:
  npx hatchway http 3000 --token-file data/admin-token

Press Ctrl-C to stop. All addresses: data/run.json. Details: --verbose.
`);
  for (const line of briefText(demo).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

it('the brief start screen shows warnings and omits notes', () => {
  const text = briefText({ ...facts(), notes: ['warning: this', 'note: that'] });
  expect(text).toContain('\n  warning: this\n\nNext');
  expect(text).not.toContain('that');
});

it('the start screen shows warnings and notes before the next command', () => {
  const text = readyText({ ...facts(), notes: ['warning: this', 'note: that'] });
  expect(text).toMatch(/  data +data\n\n  warning: this\n  note: that\n\nNext/);
});

it('the start screen names the payment simulator and says that no charges are real', () => {
  const text = readyText(facts({ simulator_url: 'http://127.0.0.1:40123' }));
  expect(text).toContain('http://localhost:40123 (test mode, no real charges)\n');
  expect(readyText(facts())).not.toContain('payments');
});

it('the start screen lists https before http and omits default ports', () => {
  const text = readyText(facts({ https_url: 'https://0.0.0.0:443', http_url: 'http://0.0.0.0:80' }, true));
  expect(text).toContain('https://<name>.localhost, http://<name>.localhost\n');
});

it('the start screen points clients to the public https port if this port accepts clients', () => {
  const told = facts({ https_url: 'https://127.0.0.1:8443' }, true);
  expect(readyText(told)).toContain('control      localhost:4040 (TLS), and localhost:8443\n');
  expect(nextCommand(told)).toBe('npx hatchway http 3000 --token-file data/admin-token --server localhost:8443 --tls');
  const usual = { ...facts({ https_url: 'https://0.0.0.0:443' }, true), domain: 'tunnels.example.com' };
  expect(nextCommand(usual)).toContain(' --server tunnels.example.com:443 --tls');
  const apart = { ...told, controlOnPublic: false };
  expect(readyText(apart)).toContain('control      localhost:4040 (TLS)\n');
  expect(nextCommand(apart)).toBe('npx hatchway http 3000 --token-file data/admin-token --tls');
});

it.each([
  [{}, false, 'npx hatchway http 3000 --token-file data/admin-token'],
  [
    { control: '127.0.0.1:4440' },
    false,
    'npx hatchway http 3000 --token-file data/admin-token --server localhost:4440',
  ],
  [{}, true, 'npx hatchway http 3000 --token-file data/admin-token --tls'],
  [{ admin_token_file: '/srv/t/admin-token' }, false, 'npx hatchway http 3000 --token-file /srv/t/admin-token'],
  [
    { admin_token_file: "/home/a/checkout/it's here/admin-token" },
    false,
    "npx hatchway http 3000 --token-file 'it'\\''s here/admin-token'",
  ],
  [{ admin_token_file: null }, false, "TUNNEL_API_KEY='<the admin_token of your config>' npx hatchway http 3000"],
])('the next command fits the server: %j', (run, tls, expected) => {
  expect(nextCommand(facts(run, tls))).toBe(expected);
});

it('outside a checkout the next command uses the installed client', () => {
  const installed = { ...facts(), isCheckout: false };
  expect(nextCommand(installed)).toBe('tunnel http 3000 --token-file data/admin-token');
});
