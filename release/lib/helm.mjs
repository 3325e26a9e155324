// The Helm chart as a file for `helm install`: a tar archive that depends on nothing but the files and the time of the commit.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { complaintsAbout, pathsOfMachine } from './contents.mjs';
import { run } from './programs.mjs';

const CHART = 'deploy/helm/hatchway';

/** Makes `<out>/helm/hatchway-V.tgz`. */
export async function makeChart({ out, version, commitSecs, say }) {
  const listed = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', CHART]);
  const machine = pathsOfMachine(ROOT);
  const files = listed
    .split('\0')
    .filter(Boolean)
    .map((path) => ({ path, bytes: readFileSync(join(ROOT, path)) }));
  const complaints = files.flatMap((file) => complaintsAbout(file, machine));
  if (complaints.length > 0) throw new Error(`the chart contains ${complaints.join(', ')}`);
  const inside = files.map(({ path, bytes }) => ({ path: path.replace(/^deploy\/helm\//, ''), bytes }));
  const name = `hatchway-${version}.tgz`;
  mkdirSync(join(out, 'helm'), { recursive: true });
  writeFileSync(join(out, 'helm', name), archiveOf(inside, { version, seconds: commitSecs }));
  say(`helm/${name}`);
  return {};
}

/**
 * The archive of a chart. `seconds` is the time of every file.
 * @param {{ path: string, bytes: Buffer }[]} files
 */
export function archiveOf(files, { version, seconds }) {
  const chart = files.find(({ path }) => /^[^/]+\/Chart\.yaml$/.test(path))?.bytes.toString() ?? '';
  for (const line of [`version: ${version}`, `appVersion: "${version}"`]) {
    if (!chart.split('\n').includes(line)) throw new Error(`Chart.yaml has no line ${line}`);
  }
  const sorted = files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const entries = sorted.flatMap(({ path, bytes }) => [headerOf(path, bytes.length, seconds), padded(bytes)]);
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(2 * BLOCK_BYTES)]), { level: 9 });
}

const BLOCK_BYTES = 512;
const NAME_MAX_BYTES = 100;

const padded = (bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & (BLOCK_BYTES - 1))]);

/** The header of a file in the format ustar: mode 0644, owner root. */
function headerOf(path, size, seconds) {
  if (Buffer.byteLength(path) > NAME_MAX_BYTES) throw new Error(`${path} is longer than ${NAME_MAX_BYTES} bytes`);
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value, digits) => `${value.toString(8).padStart(digits, '0')}\0`;
  const fields = [
    [0, path],
    [100, octal(0o644, 7)],
    [108, octal(0, 7)],
    [116, octal(0, 7)],
    [124, octal(size, 11)],
    [136, octal(seconds, 11)],
    [148, ' '.repeat(8)],
    [156, '0'],
    [257, 'ustar\x0000'],
    [265, 'root'],
    [297, 'root'],
  ];
  for (const [at, text] of fields) header.write(text, at);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)} `, 148);
  return header;
}
