// OCI archives of container images, made from the archives that builders save. Builders drop HEALTHCHECK from images in the OCI format, but
// Docker reads the setting from such images. The archive also has the list of files by which `docker load` of any version reads it.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { run } from './programs.mjs';

const TYPES = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
};

/** Writes the OCI archive `file` of the image in `saved`, an archive of `docker save` or of the same format. */
export async function writeOciArchive({ saved, tag, file, work, commitSecs }) {
  const source = join(work, 'saved');
  const layout = join(work, 'layout');
  for (const folder of [source, join(layout, 'blobs/sha256')]) mkdirSync(folder, { recursive: true });
  await run('tar', ['-xf', saved, '-C', source]);
  const [image] = JSON.parse(readFileSync(join(source, 'manifest.json'), 'utf8'));
  const config = configOf(JSON.parse(readFileSync(join(source, image.Config), 'utf8')));
  const add = blobWriter(layout);
  const layers = [];
  for (const name of image.Layers) {
    const bytes = readFileSync(join(source, name));
    const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b;
    layers.push(add(TYPES.layer, isCompressed ? bytes : await promisify(gzip)(bytes)));
  }
  const checked = layers.map(({ digest }, at) => hasDiffId(layout, digest, config.rootfs.diff_ids[at]));
  if (checked.includes(false) || layers.length !== config.rootfs.diff_ids.length)
    throw new Error('the layers do not match the image');
  const configBlob = add(TYPES.config, jsonBytes(config));
  const manifest = add(
    TYPES.manifest,
    jsonBytes({ schemaVersion: 2, mediaType: TYPES.manifest, config: configBlob, layers }),
  );
  const pathOf = ({ digest }) => `blobs/${digest.replace(':', '/')}`;
  const write = (name, value) => writeFileSync(join(layout, name), jsonBytes(value));
  write('oci-layout', { imageLayoutVersion: '1.0.0' });
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': tag } };
  write('index.json', { schemaVersion: 2, manifests: [named] });
  write('manifest.json', [{ Config: pathOf(configBlob), RepoTags: [tag], Layers: layers.map(pathOf) }]);
  const time = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
    `--mtime=@${commitSecs}`,
  ];
  await run('tar', [...time, '-cf', file, '-C', layout, 'oci-layout', 'index.json', 'manifest.json', 'blobs']);
}

const jsonBytes = (value) => Buffer.from(JSON.stringify(value));

const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Fields of an image's configuration that OCI defines. `config` keeps the health check. */
const configOf = ({ created, architecture, os, config, rootfs, history }) => ({
  created,
  architecture,
  os,
  config,
  rootfs,
  history,
});

const blobWriter = (layout) => (mediaType, bytes) => {
  const digest = sha256(bytes);
  writeFileSync(join(layout, 'blobs', digest.replace(':', '/')), bytes);
  return { mediaType, digest, size: bytes.length };
};

/** Whether a compressed layer has the hash of its uncompressed contents that the image names. */
const hasDiffId = (layout, digest, diffId) =>
  sha256(gunzipSync(readFileSync(join(layout, 'blobs', digest.replace(':', '/'))))) === diffId;
