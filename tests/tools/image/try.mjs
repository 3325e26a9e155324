// The images of a release, built and run: npm run try:image
// Programs that are missing come from Debian packages, which are unpacked into .cache and not installed.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { unpackPrograms } from '../lib/debian.mjs';
import { runScript } from '../lib/script.mjs';
import { Bubblewrap } from './lib/bubblewrap.mjs';
import { checkSchema } from './lib/compose-schema.mjs';
import { fetchPodmanCompose, tryCompose } from './lib/compose-trial.mjs';
import { tryContents } from './lib/contents.mjs';
import { makeBase, makePostgresImage, makeReleaseImages, RELEASE } from './lib/images.mjs';
import { Podman } from './lib/podman.mjs';
import { missingPrograms, programsEnv, withPrograms } from './lib/programs.mjs';
import { answerApp, tryServer } from './lib/server-trial.mjs';
import { tryOtherUser } from './lib/user-trial.mjs';

const USAGE = `usage: npm run try:image [-- --quick] [--bubblewrap]
Makes a base image with mmdebstrap and the images with buildah, and runs them with podman in a network namespace: read-only, without
capabilities, with 512 MB of memory. Then the compose files with podman-compose, and a stand-in for postgres:18, which is in a registry only.
--quick: no images are made if they are there. --bubblewrap: bubblewrap instead of podman. Root; five minutes on two cores.`;

/** Set in processes inside the namespaces: `programs` with the programs, `network` also without a network. */
const INSIDE = 'TRY_IMAGE_INSIDE';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const images = { server: `localhost/hatchway-server:${version}`, client: `localhost/hatchway-client:${version}` };

/** Everything that needs the package registries. */
function prepare({ values, say, check }) {
  const env = programsEnv();
  makeBase(env);
  say('the base image is there');
  const podman = new Podman(env);
  const areThere = Object.values(images).every((image) => podman.run(['image', 'exists', image]).status === 0);
  if (!values.quick || !areThere) {
    makeReleaseImages(env);
    for (const name of Object.keys(images))
      podman.must(['load', '--input', join(RELEASE, `container/${name}-amd64.tar`)]);
  }
  unpackPrograms('bubblewrap');
  makePostgresImage(env);
  fetchPodmanCompose(env);
  checkSchema({ env, say, check });
  return env;
}

async function tryAll({ values, say, check }) {
  const env = programsEnv();
  const podman = new Podman(env);
  const app = createServer(answerApp).listen(3000, '127.0.0.1');
  const trial = { podman, images, env, version, say, check };
  try {
    const started = podman.once({ image: images.server, args: ['--version'] });
    if (started.status !== 0 || values.bubblewrap) return await tryWithout(trial, started.stderr.trim());
    tryContents(trial);
    await tryServer({ ...trial, engine: podman });
    await tryOtherUser(trial);
    app.close();
    await tryCompose(trial);
    return 'under podman: server, another user id, compose';
  } finally {
    app.close();
    podman.removeAll();
  }
}

/** Where podman cannot start containers, the same file systems run under bubblewrap. */
async function tryWithout(trial, reason) {
  trial.say(`bubblewrap instead of podman ${reason}`);
  const engine = new Bubblewrap();
  try {
    for (const [name, image] of Object.entries(images))
      engine.load(image, join(RELEASE, `container/${name}-amd64.tar`));
    await tryServer({ ...trial, engine });
  } finally {
    engine.removeAll();
  }
  trial.say('skipped: contents, another user id and compose, which need podman');
  return 'under bubblewrap: server';
}

/** Runs this script again inside a namespace. Returns the exit code. */
function runInside(place, wrap) {
  const [command, ...args] = wrap([process.execPath, ...process.argv.slice(1)]);
  return spawnSync(command, args, { env: { ...process.env, [INSIDE]: place }, stdio: ['ignore', 1, 2] }).status ?? 1;
}

const withoutNetwork = (command) => ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$0" "$@"', ...command];

async function main(tools) {
  if (process.env[INSIDE] === 'network') return tryAll(tools);
  prepare(tools);
  tools.check(runInside('network', withoutNetwork) === 0, 'the images run');
  return images.server;
}

const reason = missingPrograms();
if (reason !== null) console.log(`skipped: ${reason}`);
else if (process.env[INSIDE] === undefined) process.exitCode = runInside('programs', withPrograms);
else {
  const name = process.env[INSIDE] === 'network' ? 'the images in a network namespace' : 'the images';
  const options = { quick: false, bubblewrap: false };
  await runScript({ name, usage: USAGE, options, limitSecs: () => 3600, needsBuild: false }, main);
}
