// What is inside the images: sizes, no file that only a build needs, no secret, no path of this machine.
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { complaintsAbout, pathsOfMachine } from '../../../../release/lib/contents.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

/** The folder of Hatchway in the images. All other files come from Debian. */
const OURS = 'usr/lib/tunnel/';

/** Sizes of the unpacked images in MB. */
const SIZE_MAX_MB = { server: 330, client: 250 };

const OWN_VARIABLES = /^(?:PATH|HOME|TUNNEL_(?:DATA_DIR|SERVER__HOST|PLATFORM__HOST|DNS__PORT))=/;
const SECRET = /-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/=\n]{64}|npm_[A-Za-z0-9]{36}|_authToken/;

export function tryContents({ podman, images, say, check }) {
  const machine = [...pathsOfMachine(ROOT), ROOT];
  for (const [name, image] of Object.entries(images)) {
    const folder = podman.must(['image', 'mount', image]);
    const files = filesBelow(folder);
    const mb = files.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
    check(mb < SIZE_MAX_MB[name], `${name}: ${mb.toFixed(0)} MB unpacked, at most ${SIZE_MAX_MB[name]} MB`);
    const ours = files.filter(({ path }) => path.startsWith(OURS));
    const complaints = files.flatMap(({ path }) => {
      const bytes = readFileSync(join(folder, path));
      const isOurs = path.startsWith(OURS);
      if (!isOurs) return machine.filter((one) => bytes.includes(one)).map((one) => `${path}: the path ${one}`);
      const inside = complaintsAbout(
        { path: path.slice(OURS.length), bytes, isText: path !== `${OURS}bin/node` },
        machine,
      );
      return [...inside, ...(SECRET.test(bytes.toString('latin1')) ? [`${path}: a secret`] : [])];
    });
    podman.must(['image', 'unmount', image]);
    say(`${name}: ${files.length} files, ${ours.length} of Hatchway`);
    check(
      complaints.length === 0 && ours.length > 10,
      `${name}: no secret, test, map or path of this machine${listOf(complaints)}`,
    );
    const config = JSON.parse(podman.must(['image', 'inspect', image]))[0];
    const variables = config.Config.Env.filter((one) => !OWN_VARIABLES.test(one));
    check(variables.length === 0, `${name}: no variable of the build${listOf(variables)}`);
    const labels = Object.keys(config.Config.Labels ?? {}).filter((key) => key.startsWith('org.opencontainers.image.'));
    check(labels.length >= 5 && config.Config.User === '10001:10001', `${name}: labels, and user 10001`);
  }
}

const listOf = (lines) => (lines.length === 0 ? '' : `: ${lines.slice(0, 5).join(', ')}`);

function filesBelow(folder, prefix = '') {
  return readdirSync(join(folder, prefix), { withFileTypes: true }).flatMap((entry) => {
    const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(folder, path);
    return entry.isFile() ? [{ path, bytes: lstatSync(join(folder, path)).size }] : [];
  });
}
