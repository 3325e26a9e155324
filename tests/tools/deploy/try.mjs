// docs/deploy.md followed word by word, from an empty Debian 12 server to a teammate's first tunnel over https on port 443: npm run try:deploy
// The commands come from the page, so a changed page is tried as it is. Two machines run in network namespaces that nothing can leave; the
// server has systemd as its first process. Needs root, Linux, and Debian packages and pebble, which are kept in .cache.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { install as installPrograms } from '../acme/lib/install.mjs';
import { runScript } from '../lib/script.mjs';
import { cgroupRoot, Machine } from './lib/machine.mjs';
import { commandsOf, readBlocks, recordsOf } from './lib/page.mjs';
import { startRemote } from './lib/remote.mjs';
import { baseRoot, fetchPackages, missingTools } from './lib/root-files.mjs';

const USAGE = `usage: npm run try:deploy [-- --keep] [--reuse]
Follows docs/deploy.md word by word. --keep: keep the two machines for ten minutes after a failure. --reuse: do not make the packages again.
Ten minutes on two cores; three with --reuse.`;

/**
 * Everything that differs from the page. The rest is the page to the letter: its domain, addresses, mail server, user names and sudo.
 *
 * | On the page | Here |
 * |---|---|
 * | the records of step 1, entered at a DNS provider | records of the test DNS server |
 * | a package file downloaded from the release | the same file, made by \`npm run release\` |
 * | the certificate authority of the internet | pebble: three keys in [acme] of server.toml, between steps 4 and 5 |
 * | the root certificates of a computer | NODE_EXTRA_CA_CERTS and SSL_CERT_FILE with pebble's root, on the teammate's computer |
 * | a person who opens links and fills in forms | calls to the same addresses |
 * | LimitNOFILE= of the unit | a drop-in file with the limit of this machine, if root cannot raise it here |
 */
const ADDRESSES = { outside: '203.0.113.20', dns: '203.0.113.53', mail: '203.0.113.25' };
const PASSWORD = 'correct horse battery staple';
const SLOW_MS = 300_000;

const RELEASE = join(CACHE_DIR, 'deploy/release');

function must(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? (stderr ?? '').trim()}`);
}

class Networks {
  server = `deploy-${process.pid}-server`;
  outside = `deploy-${process.pid}-outside`;

  make(serverAddress) {
    for (const name of [this.server, this.outside]) {
      must('ip', ['netns', 'add', name]);
      must('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
    }
    const cable = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', this.outside];
    must('ip', ['-n', this.server, 'link', 'add', 'eth0', ...cable]);
    must('ip', ['-n', this.server, 'address', 'add', `${serverAddress}/24`, 'dev', 'eth0']);
    for (const address of Object.values(ADDRESSES))
      must('ip', ['-n', this.outside, 'address', 'add', `${address}/24`, 'dev', 'eth0']);
    for (const name of [this.server, this.outside]) must('ip', ['-n', name, 'link', 'set', 'eth0', 'up']);
  }

  /** Removes the namespaces. The parts of world.ts are killed without a chance to end their programs, such as pebble. */
  remove() {
    for (const name of [this.server, this.outside]) {
      const pids = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' }).stdout.split(/\s+/).filter(Boolean);
      if (pids.length > 0) spawnSync('kill', ['-KILL', ...pids]);
      spawnSync('ip', ['netns', 'delete', name]);
    }
  }
}

/** Packages of `apt install` lines, without files. */
const packagesIn = (commands) =>
  commands
    .filter((line) => /\bapt(-get)? install\b/.test(line))
    .flatMap((line) =>
      line
        .replace(/#.*$/, '')
        .split(/\s+install\s+/)[1]
        .split(/\s+/),
    )
    .filter((word) => /^[a-z0-9][a-z0-9+.-]*$/.test(word));

/** The package files that the commands of the page name, made from this checkout. */
function releasePackages(isReused) {
  const folder = join(RELEASE, 'packages');
  const args = ['release/release.mjs', '--only', 'packages', '--targets', 'linux-x64', '--out', RELEASE];
  if (!isReused || !existsSync(folder)) must(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 2, 2] });
  return readdirSync(folder)
    .filter((name) => name.endsWith('_amd64.deb'))
    .map((name) => join(folder, name));
}

const dependenciesOf = (file) =>
  must('dpkg-deb', ['--field', file, 'Depends', 'Pre-Depends', 'Recommends'])
    .split(/[,\n|]/)
    .map((one) =>
      one
        .replace(/^\s*[\w-]+:/, '')
        .replace(/\(.*$/, '')
        .trim(),
    )
    .filter((name) => /^[a-z0-9][a-z0-9+.-]*$/.test(name));

class Walk {
  constructor({ say, check, server, teammate, world, authority, folder, packages }) {
    Object.assign(this, { say, check, server, teammate, world, authority, folder, packages });
    this.root = join(folder, 'root.pem');
    /** Folder of each machine's terminal, which `cd` changes. */
    this.directories = new Map();
  }

  visit(url, body) {
    return this.world.call('visit', url, this.root, ...(body === undefined ? [] : [body]));
  }

  /** Repeats a call until its result is right, for at most two minutes. */
  async until(what, attempt) {
    let last;
    for (let tries = 0; tries < 120; tries += 1) {
      try {
        const value = await attempt();
        if (value) return value;
      } catch (error) {
        last = error.message;
      }
      await delay(1000);
    }
    throw new Error(`${what}: ${last ?? 'not yet'} after two minutes`);
  }

  machineOf(heading) {
    return heading.startsWith('7.') ? this.teammate : this.server;
  }

  scriptOf(machine, command) {
    const directory = this.directories.get(machine);
    return directory === undefined ? command : `cd ${directory} || exit 1\n${command}`;
  }

  env(machine) {
    return machine === this.teammate
      ? { NODE_EXTRA_CA_CERTS: '/etc/ssl/test-root.pem', SSL_CERT_FILE: '/etc/ssl/test-root.pem' }
      : {};
  }

  async step(block) {
    if (block.language === '') return this.records(block);
    for (const command of commandsOf(block)) {
      const special = SPECIAL.find(({ match }) => match.test(command));
      this.say(`$ ${command.replace(/\s+#.*$/, '')}`);
      if (special?.instead !== undefined) await special.instead(this, command, block);
      else await this.plain(command, block, special);
    }
  }

  async plain(command, block, special) {
    const machine = this.machineOf(block.heading);
    const cd = /^cd (\S+)$/.exec(command);
    if (cd !== null) return void this.directories.set(machine, cd[1]);
    special?.before?.(this, command, machine);
    const script = this.scriptOf(machine, special?.as?.(this, command) ?? command);
    // A person answers questions with yes.
    const options = { user: 'ann', env: this.env(machine), input: 'y\ny\n', timeoutMs: SLOW_MS };
    const { code, output } = machine.run(script, options);
    this.check(code === 0, `step ${block.heading}: ${command.split(/\s+#/)[0]}`);
    if (code !== 0) throw new Error(`exit code ${code}: ${output.trim().split('\n').slice(-15).join('\n')}`);
    this.last = output;
    await special?.after?.(this, output);
  }

  async records(block) {
    for (const { name, type, value } of recordsOf(block)) {
      this.say(`record ${name} ${type} ${value}`);
      if (type === 'NS') await this.world.call('delegate', name, this.serverAddress);
      else await this.world.call('setRecord', name, type, value);
    }
  }

  /** Writes the keys of the test authority into [acme] of the written file. */
  async useAuthority() {
    const file = this.server.path('/etc/tunnel/server.toml');
    cpSync(join(this.folder, 'directory-ca.pem'), this.server.path('/etc/tunnel/test-authority.pem'));
    const directory = await this.authority.call('directory');
    const keys = `directory = "${directory}"\nca_file = "/etc/tunnel/test-authority.pem"\nprofile = "default"`;
    const text = readFileSync(file, 'utf8');
    // The file keeps its owner and mode.
    writeFileSync(file, text.replace('[acme]\n', `[acme]\n${keys}\n`));
    this.say('(test authority written into [acme] of server.toml)');
  }

  async signUp(email, link) {
    const { origin, pathname, searchParams } = new URL(link);
    await this.until('the certificate of the dashboard', async () => (await this.visit(link)).status === 200);
    const invite = searchParams.get('invite');
    const registered = await this.visit(`${origin}/auth/register`, { email, password: PASSWORD, invite });
    this.check(pathname === '/app/signup' && registered.status === 201, `sign-up of ${email} with ${pathname}`);
    return JSON.parse(registered.text);
  }
}

/** Commands of the page with more to it than an exit code of 0. */
const SPECIAL = [
  {
    match: /\.deb\b/,
    before: (walk, command, machine) => {
      const [, name = ''] = /(\S+\.deb)\b/.exec(command) ?? [];
      const file = walk.packages.find((path) => basename(path) === basename(name));
      if (file === undefined)
        throw new Error(`${name} is not among ${walk.packages.map((path) => basename(path)).join(', ')}`);
      cpSync(file, machine.path(join('/home/ann', name)));
    },
  },
  {
    match: /tunnel-server setup (?!--recheck)/,
    after: async (walk, output) => {
      walk.check(/^Wrote \/etc\/tunnel\/server\.toml$/m.test(output), 'setup wrote /etc/tunnel/server.toml');
      const wrong = output.split('\n').filter((line) => line.startsWith('  fix '));
      walk.check(wrong.length === 0, `setup has nothing to fix${wrong.map((line) => ` ${line.trim()}`).join(';')}`);
      await walk.useAuthority();
    },
  },
  {
    match: /tunnel-server service install\b/,
    after: async (walk, output) => {
      const [, link] = /Create the first account: (\S+)/.exec(output) ?? [];
      if (link === undefined) throw new Error(`no link in: ${output.trim()}`);
      await walk.signUp('you@example.com', link);
      const confirm = await walk.world.call('mailedLink', 'you@example.com', '/auth/verify-email/');
      walk.check((await walk.visit(confirm)).status === 200, 'the link in the email confirms the address');
    },
  },
  {
    match: /tunnel-server health\b/,
    after: (walk, output) => walk.check(output.trim() === 'ok', `health says: ${output.trim()}`),
  },
  {
    match: /journalctl\b/,
    as: (_, command) => command.replace(/journalctl /, 'journalctl --no-pager '),
    after: (walk, output) => walk.check(/DNS records:/.test(output), 'the journal shows the DNS records'),
  },
  {
    match: /admin invite\b/,
    after: async (walk, output) => {
      const link = await walk.world.call('mailedLink', 'teammate@example.com', '/app/signup?invite=');
      walk.check(output.includes(link), 'the invitation is printed and mailed');
      const user = await walk.signUp('teammate@example.com', link);
      walk.check(user.email_verified === true, 'the invitation proves the address');
    },
  },
  {
    match: /^tunnel login\b/,
    instead: async (walk, command, block) => {
      const machine = walk.machineOf(block.heading);
      const script = `script --quiet --return --echo never --command '${command}' /dev/null`;
      const child = machine.launch('login', script, { user: 'ann', env: walk.env(machine) });
      const answers = [
        [/email[^\n]*: ?$/i, 'teammate@example.com'],
        [/password[^\n]*: ?$/i, PASSWORD],
      ];
      for (const [prompt, answer] of answers) {
        await walk.until(`the prompt ${prompt}`, () => prompt.test(child.output) || child.exit !== null);
        child.process.stdin.write(`${answer}\n`);
      }
      const exit = await child.exited;
      walk.check(exit === 'exit code 0', `step ${block.heading}: ${command}`);
      if (exit !== 'exit code 0') throw new Error(child.output.trim());
    },
  },
  {
    match: /^tunnel http 3000\b/,
    instead: async (walk, command, block) => {
      const machine = walk.machineOf(block.heading);
      const child = machine.launch('tunnel', command, { user: 'ann', env: walk.env(machine) });
      const [url] = await walk.until('the URL of the tunnel', () => {
        if (child.exit !== null) throw new Error(child.output.trim());
        return /https:\/\/[\w-]+\.tunnel\.example\.com/.exec(child.output);
      });
      walk.tunnel = { url, child };
      await walk.sees(`the teammate's first tunnel, ${url}`);
    },
  },
];

Walk.prototype.sees = async function sees(what) {
  const answer = await this.until(what, async () => {
    const { status, text } = await this.visit(this.tunnel.url);
    return status === 200 && text;
  });
  this.check(answer === 'hello from the teammate', what);
};

/** What the page promises after its steps, and the way back. */
async function afterThePage(walk) {
  const server = (script) => walk.server.run(script, { user: 'ann', timeoutMs: SLOW_MS });
  const recheck = server('sudo tunnel-server setup --recheck');
  walk.check(
    recheck.code === 0,
    `setup --recheck beside the running server: ${recheck.output.trim().replaceAll('\n', ' | ')}`,
  );
  const status = server('sudo tunnel-server service status');
  walk.check(status.code === 0 && /active \(running\)/.test(status.output), 'service status');
  const version = server('tunnel-server --version').output.trim();
  const page = (url) =>
    server(`/usr/lib/tunnel/bin/node -e "fetch('${url}').then(async (it) => console.log(await it.text()))"`).output;
  const shown = JSON.parse(page('http://127.0.0.1:4041/api/status')).version;
  const isInMetrics = page('http://127.0.0.1:9090/metrics').includes(`tunnel_build_info{version="${version}"`);
  walk.check(shown === version && isInMetrics, `version ${version} in /api/status (${shown}) and tunnel_build_info`);
  const again = server('sudo tunnel-server service install');
  walk.check(again.code === 0, 'a second service install restarts the server');
  await walk.sees('the tunnel works again after a restart of the server');
  server('sudo systemctl kill --kill-whom=main --signal=KILL tunnel-server');
  await walk.sees('the tunnel works again after a kill -9 of the server');
  const dropIn = '/etc/systemd/system/tunnel-server.service.d/operator.conf';
  server(`sudo mkdir -p $(dirname ${dropIn}); printf '[Service]\\nMemoryMax=3G\\n' | sudo tee ${dropIn}`);
  const gone = server('sudo tunnel-server service uninstall');
  walk.check(gone.code === 0, `service uninstall: ${gone.output.trim().replaceAll('\n', ' | ')}`);
  const kept = server(
    `sudo ls /etc/tunnel/server.toml /var/lib/tunnel/master-key ${dropIn} && ! sudo systemctl is-active tunnel-server`,
  );
  walk.check(kept.code === 0, 'config file, data and the drop-in file are still there, and nothing runs');
}

/** Waits for systemd. */
async function booted(machine) {
  for (let tries = 0; tries < 60; tries += 1) {
    const { output } = machine.run('systemctl is-system-running');
    if (/^(running|degraded)/.test(output)) return output.trim();
    await delay(500);
  }
  throw new Error(
    `systemd is not up: ${machine.run('systemctl is-system-running; systemctl list-jobs --no-pager').output}`,
  );
}

/** The unit raises the number of open files. Without the privilege to raise a limit, systemd could not start it. */
function limitFiles(machine, say) {
  const probe = machine.run('prlimit --nofile=1048576 true');
  if (probe.code === 0) return;
  const hard = machine.run('ulimit -Hn').output.trim();
  const folder = machine.path('/etc/systemd/system/tunnel-server.service.d');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'this-machine.conf'), `[Service]\nLimitNOFILE=${hard}\n`);
  say(`(drop-in file with LimitNOFILE=${hard}: root cannot raise the limit on this machine)`);
}

async function main({ values, say, check }) {
  const blocks = readBlocks();
  const commands = blocks.filter(({ language }) => language === 'sh').flatMap(commandsOf);
  const address = blocks.flatMap(recordsOf).find(({ type }) => type === 'A')?.value;
  if (address === undefined) throw new Error('docs/deploy.md names no A record');
  say(`docs/deploy.md: ${commands.length} commands in ${new Set(blocks.map(({ heading }) => heading)).size} steps`);
  const packages = commands.some((line) => line.includes('.deb')) ? releasePackages(values.reuse) : [];
  const base = baseRoot();
  fetchPackages(base, [...new Set([...packagesIn(commands), ...packages.flatMap(dependenciesOf)])]);
  say(`root file system and packages: ${base}`);

  const folder = mkdtempSync(join(CACHE_DIR, 'deploy/run-'));
  const networks = new Networks();
  const machines = [];
  // Runs after Ctrl-C and after the time limit, too.
  process.on('exit', () => {
    for (const one of machines) one.stop();
    networks.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const machine = async (name, namespace, init) => {
    const made = new Machine({ name, base, folder: join(folder, name), namespace, init, resolver: ADDRESSES.dns });
    mkdirSync(made.folder);
    machines.push(made);
    await made.start();
    return made;
  };
  try {
    networks.make(address);
    const world = await startRemote(networks.outside, 'startOutside', ADDRESSES);
    await world.call('setRecord', 'mail.example.com', 'A', ADDRESSES.mail);
    const authority = await startRemote(networks.server, 'startAuthority', { dns: ADDRESSES.dns, folder });
    const server = await machine('server', networks.server, '/lib/systemd/systemd');
    say(`server: systemd is ${await booted(server)}`);
    limitFiles(server, say);
    const teammate = await machine('teammate', networks.outside, 'sleep infinity');
    cpSync(join(folder, 'root.pem'), teammate.path('/etc/ssl/test-root.pem'));
    const walk = new Walk({ say, check, server, teammate, world, authority, folder, packages });
    walk.serverAddress = address;
    for (const block of blocks) await walk.step(block);
    await afterThePage(walk);
    return `from an empty root file system to ${walk.tunnel.url}`;
  } catch (error) {
    if (values.keep) {
      say(`FAILED so far: ${error.message}`);
      for (const { name, pid } of machines) say(`${name}: nsenter -t ${pid} -m -p -u -i -n -C --root --wd /bin/bash`);
      await delay(600_000);
    }
    throw error;
  }
}

/** One line about what this machine cannot do, or null. */
function missing() {
  const tools = missingTools();
  if (tools !== null) return tools;
  if (cgroupRoot() === null) return 'control groups (cgroup2) are not mounted';
  const installed = installPrograms('pebble');
  if (installed === 'ready') return null;
  return installed === 'no Go' ? 'Go is not found, and pebble is installed with it' : 'pebble could not be installed';
}

const reason = missing();
if (reason === null) {
  await runScript(
    {
      name: 'docs/deploy.md',
      usage: USAGE,
      options: { keep: false, reuse: false },
      limitSecs: () => 2400,
      needsBuild: false,
    },
    main,
  );
} else console.log(`skipped: ${reason}`);
