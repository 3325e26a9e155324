// deploy/compose with podman-compose: both files, started as they are but for the network, certificates and mail.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { until } from '../../lib/until.mjs';
import { ask, Person } from './people.mjs';
import { FOLDER, must } from './programs.mjs';

const VENV = join(FOLDER, 'podman-compose');
const PROJECT = join(FOLDER, 'compose');
const DOMAIN = 'tunnel.test';

/** podman-compose from PyPI, in a separate environment. */
export function fetchPodmanCompose(env) {
  if (existsSync(join(VENV, 'bin/podman-compose'))) return;
  must('python3', ['-m', 'venv', VENV], { env });
  must(join(VENV, 'bin/pip'), ['install', '--quiet', 'podman-compose'], { env: { ...env, HOME: process.env.HOME } });
}

/** What the containers of this machine cannot have: a network, certificates of a public authority, a mail server, raised limits. */
const LIMITS = { nofile: 1024, nproc: 1000 };
const OVERRIDES = {
  'compose.try.yml': {
    services: {
      server: {
        network_mode: 'host',
        ulimits: LIMITS,
        environment: {
          TUNNEL_ACME__ENABLED: 'false',
          TUNNEL_PLATFORM__PUBLIC_URL: `http://${DOMAIN}`,
          TUNNEL_PLATFORM__MAIL__TRANSPORT: 'file',
        },
      },
      postgres: { network_mode: 'host', ulimits: LIMITS },
    },
  },
  'compose.client.try.yml': {
    services: {
      client: {
        network_mode: 'host',
        ulimits: LIMITS,
        extra_hosts: ['app:127.0.0.1'],
        command: [
          'http',
          'app:3000',
          '--subdomain=shop',
          '--server=localhost:4040',
          '--token-file=/run/secrets/api-key',
        ],
      },
      app: { network_mode: 'host', ulimits: LIMITS },
    },
  },
};

const SECRETS = {
  'database-password': 'x2',
  'database-url': 'postgres://tunnel:x2@127.0.0.1/tunnel',
  'smtp-url': 'smtp://localhost:25',
};

function writeProject(version) {
  rmSync(PROJECT, { recursive: true, force: true });
  mkdirSync(join(PROJECT, 'secrets'), { recursive: true });
  for (const name of ['compose.yml', 'compose.client.yml'])
    cpSync(join(ROOT, 'deploy/compose', name), join(PROJECT, name));
  const values = { VERSION: version, DOMAIN, ADDRESS: '127.0.0.1', EMAIL: 'you@example.com', SUBDOMAIN: 'shop' };
  const lines = Object.entries({ ...values, MAIL_FROM: 'Hatchway <no-reply@example.com>' });
  writeFileSync(join(PROJECT, '.env'), lines.map(([key, value]) => `HATCHWAY_${key}=${value}\n`).join(''));
  // JSON is YAML.
  for (const [name, value] of Object.entries(OVERRIDES)) writeFileSync(join(PROJECT, name), JSON.stringify(value));
  for (const [name, text] of Object.entries(SECRETS)) writeSecret(name, text);
}

const writeSecret = (name, text) => writeFileSync(join(PROJECT, 'secrets', name), `${text}\n`);

const FILES = {
  server: ['-f', 'compose.yml', '-f', 'compose.try.yml'],
  client: ['-f', 'compose.client.yml', '-f', 'compose.client.try.yml'],
};

export async function tryCompose({ podman, env, version, check }) {
  writeProject(version);
  const compose = (args) => spawnSync(join(VENV, 'bin/podman-compose'), args, { cwd: PROJECT, env, encoding: 'utf8' });
  for (const file of ['compose.yml', 'compose.client.yml']) {
    const shown = compose(['-f', file, 'config']);
    check(
      shown.status === 0 && shown.stdout.includes('hatchway-'),
      `podman-compose config accepts ${file}${problemOf(shown)}`,
    );
  }
  // A machine without systemd runs no health checks of podman on a schedule.
  const checks = setInterval(() => void checkAll(podman), 2000);
  try {
    const up = await later(env, [...FILES.server, 'up', '--detach']);
    check(up.code === 0, `both services start from compose.yml${up.code === 0 ? '' : `: ${up.output.slice(-600)}`}`);
    const name = (service) => podman.must(['ps', '--quiet', '--filter', `label=com.docker.compose.service=${service}`]);
    await until('the server is healthy', () => podman.exec(name('server'), ['tunnel-server', 'health']).status === 0, {
      timeoutMs: 180_000,
    });
    const logs = podman.logs(name('server'));
    check(
      logs.includes(`http://<name>.${DOMAIN}`) && !logs.includes(`.${DOMAIN}:8000`),
      'URLs of tunnels have the published port',
    );
    const person = new Person({ port: 8000, host: DOMAIN });
    await person.signUp(podman.dataOf(name('server')));
    check(true, 'the edge serves the platform, and a person signs up');
    const { token } = await person.call('POST', '/keys', { label: 'app' });
    writeSecret('api-key', token);
    const client = await later(env, [...FILES.client, 'up', '--detach']);
    check(
      client.code === 0,
      `the client and the app start from compose.client.yml${client.code === 0 ? '' : `: ${client.output.slice(-600)}`}`,
    );
    const isServed = async () => (await ask({ port: 8000, host: `shop.${DOMAIN}` })).text === 'Hello from the app\n';
    await until('the app is reachable', isServed, { timeoutMs: 180_000 });
    check(true, 'a visitor gets the response of the app');
    for (const service of ['postgres', 'server', 'client']) {
      const { status } = podman.run(['healthcheck', 'run', name(service)]);
      check(status === 0, `the health check of ${service} in the compose file succeeds`);
    }
  } finally {
    clearInterval(checks);
    compose([...FILES.client, 'down', '--volumes']);
    compose([...FILES.server, 'down', '--volumes']);
  }
}

const problemOf = ({ status, stderr }) => (status === 0 ? '' : `: ${stderr.trim().split('\n').at(-1)}`);

const checkAll = async (podman) => {
  const ids = podman
    .run(['ps', '--quiet'])
    .stdout.split('\n')
    .filter((id) => id !== '');
  for (const id of ids) await podman.later(['healthcheck', 'run', id]);
};

/** Runs podman-compose while this process runs the health checks. */
const later = (env, args) =>
  new Promise((resolve, reject) => {
    const child = spawn(join(VENV, 'bin/podman-compose'), args, { cwd: PROJECT, env, timeout: 600_000 });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.once('error', reject).once('close', (code) => resolve({ code, output }));
  });
