// The server image with a user id that has no entry in /etc/passwd, as some container platforms choose, and an external PostgreSQL.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../lib/until.mjs';
import { POSTGRES } from './images.mjs';
import { Person } from './people.mjs';
import { FOLDER } from './programs.mjs';
import { isHealthy } from './server-trial.mjs';

const USER = '1000650000:0';
const PASSWORD = 'x1';

export async function tryOtherUser({ podman, images, check }) {
  const secrets = join(FOLDER, 'user-secrets');
  mkdirSync(secrets, { recursive: true });
  writeFileSync(join(secrets, 'password'), PASSWORD);
  writeFileSync(join(secrets, 'url'), `postgres://tunnel:${PASSWORD}@127.0.0.1/tunnel\n`);
  const database = podman.volume('hatchway-database');
  podman.start('postgres', {
    image: POSTGRES,
    isHardened: false,
    env: { POSTGRES_USER: 'tunnel', POSTGRES_DB: 'tunnel', POSTGRES_PASSWORD_FILE: '/secrets/password' },
    volumes: { [database]: '/var/lib/postgresql', [secrets]: '/secrets:ro' },
  });
  const accepts = () => podman.exec('postgres', ['pg_isready']).status === 0;
  await until('PostgreSQL accepts connections', accepts, { timeoutMs: 180_000 });

  const data = podman.volume('hatchway-user');
  const server = {
    image: images.server,
    // podman would add an entry to /etc/passwd, which other engines do not.
    flags: [`--user=${USER}`, '--passwd=false'],
    volumes: { [data]: '/data', [secrets]: '/secrets:ro' },
  };
  const without = podman.once(server);
  const isExplained = without.status > 0 && without.stderr.includes('set `[database] url`');
  check(isExplained, `without a database URL: ${without.stderr.trim().split('\n').at(-1)}`);
  podman.start('server', { ...server, env: { TUNNEL_DATABASE__URL_FILE: '/secrets/url' } });
  await isHealthy(podman, 'server');
  const id = podman.exec('server', ['sh', '-c', 'echo $(id -u):$(id -g)']).stdout.trim();
  check(id === USER, `the server runs as ${id}, with an external PostgreSQL`);
  const person = new Person({ port: 8080, host: 'localhost:8080' });
  await person.signUp(podman.dataOf('server'));
  check((await person.usage()).active_tunnels === 0, 'a person signs up and signs in');
  const { code, seconds } = await podman.stop('server', 45);
  check(code === 0, `the server stops with exit code ${code} in ${seconds.toFixed(1)} s`);
  for (const name of ['server', 'postgres']) podman.remove(name);
}
