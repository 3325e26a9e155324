// The container images of server and client, built from deploy/container/Containerfile and written as OCI archives. The build context has
// the files of an installed server and client.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { withFolder } from './folders.mjs';
import { writeOciArchive } from './oci-archive.mjs';
import { run } from './programs.mjs';
import { stageClient, stageServer } from './server-files.mjs';

/** Base image. Another base is useful without a registry; it must be Debian, or have the packages that the Containerfile installs. */
const BASE = process.env.TUNNEL_IMAGE_BASE ?? 'debian:bookworm-slim';

/** Targets of the Containerfile, and functions that write their files. */
const STAGES = { server: stageServer, client: stageClient };

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
    const notices = [];
    const nodes = {};
    for (const [target, stage] of Object.entries(STAGES)) {
      const staged = await stage(join(context, target), 'linux-x64');
      notices.push(...staged.notices);
      nodes[`image-${target}`] = staged.node;
    }
    for (const target of Object.keys(STAGES)) {
      const tag = `hatchway-${target}:${version}`;
      const saved = join(work, `${target}.tar`);
      await buildImage(builder, { target, tag, context, version, commitSecs, saved });
      const file = join(out, 'container', `${target}-amd64.tar`);
      await withFolder((folder) => writeOciArchive({ saved, tag, file, work: folder, commitSecs }));
      rmSync(saved);
      say(`container/${target}-amd64.tar, built by ${builder.name}`);
    }
    return { notices, nodes };
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
