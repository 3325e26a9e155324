// The files that describe a release: SHA256SUMS, manifest.json and provenance.json, as pure functions of the files and the commit.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn } from './folders.mjs';

/** Every file below a folder: path, size and SHA-256 hash, sorted by path. */
export const listFiles = (folder) =>
  filesIn(folder).map((path) => {
    const bytes = readFileSync(join(folder, path));
    return { path, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
  });

export const manifestOf = ({ version, commit, node, files }) => ({ version, commit, node, files });

/** The format of the command sha256sum. */
export const checksumsOf = (files) => files.map(({ path, sha256 }) => `${sha256}  ${path}\n`).join('');

/** An in-toto statement with the SLSA predicate. A release workflow signs the statement. */
export const provenanceOf = ({ commit, files, parameters, builder }) => ({
  _type: 'https://in-toto.io/Statement/v1',
  subject: files.map(({ path, sha256 }) => ({ name: path, digest: { sha256 } })),
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: 'urn:hatchway:npm-run-release:1',
      externalParameters: parameters,
      internalParameters: {},
      resolvedDependencies: [{ uri: 'git+file:.', digest: { gitCommit: commit } }],
    },
    runDetails: { builder: { id: 'urn:hatchway:release', version: builder }, metadata: {} },
  },
});

export const jsonText = (value) => `${JSON.stringify(value, null, 2)}\n`;
