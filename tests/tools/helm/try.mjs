// The Helm chart and the workflows, checked with Helm, kubeconform and actionlint, and the containers of the chart as processes: npm run try:helm
// Installs the programs with Go into .cache. The containers need root, bubblewrap and openssl. Where a program is missing, one line says so.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { missingPrograms, unpackPrograms } from '../lib/debian.mjs';
import { installGoPrograms } from '../lib/go-programs.mjs';
import { runScript } from '../lib/script.mjs';
import { certificateFor } from './lib/certificates.mjs';
import { makeSchemas, SCHEMA_LOCATION } from './lib/schemas.mjs';
import { merged, ODD_TEXT, REFUSED, VALUE_SETS } from './lib/value-sets.mjs';

const USAGE = `usage: npm run try:helm [-- --static]
Checks the chart with helm lint, helm template and kubeconform, the workflows with actionlint, and the units with systemd-analyze. Then starts
the containers of two installations as processes: migrate Job, platform, edge and client. --static: only the checks. Three minutes, and ten the
first time.`;

const PROGRAMS = {
  helm: 'helm.sh/helm/v3/cmd/helm@v3.22.0',
  kubeconform: 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0',
  actionlint: 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12',
};
const BIN = join(CACHE_DIR, 'helm/bin');
const program = (name) => join(BIN, name);
/** Kubernetes version of the schemas. */
const KUBERNETES = '1.36.0';

const run = (command, args, options = {}) =>
  spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1e8, ...options });
const isMissing = (command, args = ['--version']) => run(command, args).error !== undefined;
const lastLines = ({ stdout, stderr }, count = 8) => `${stdout}${stderr}`.trim().split('\n').slice(-count).join('\n');

/** Makes the chart's file twice. Returns its path. */
function makeChart(folder, check) {
  const files = ['first', 'second'].map((name) => {
    const out = join(folder, name);
    const made = run(process.execPath, ['release/release.mjs', '--only', 'helm', '--out', out]);
    if (made.status !== 0) throw new Error(`npm run release failed: ${lastLines(made)}`);
    const [file] = readdirSync(join(out, 'helm'));
    return join(out, 'helm', file);
  });
  const [first, second] = files.map((file) => createHash('sha256').update(readFileSync(file)).digest('hex'));
  check(first === second, `the chart's file has the same bytes twice (${first.slice(0, 12)})`);
  return files[0];
}

class Chart {
  #file;
  #folder;

  constructor(file, folder) {
    this.#file = file;
    this.#folder = folder;
  }

  /** Renders the chart like an installation of `release` in the namespace `hatchway`. */
  render(values, { release = 'hatchway', args = [] } = {}) {
    const file = join(this.#folder, 'values.yaml');
    writeFileSync(file, stringify(values));
    const versions = ['--kube-version', KUBERNETES, '--api-versions', 'monitoring.coreos.com/v1'];
    const all = ['template', release, this.#file, '--namespace', 'hatchway', '--values', file, ...versions, ...args];
    return run(program('helm'), all);
  }

  objects(values, options) {
    const { status, stdout, stderr } = this.render(values, options);
    if (status !== 0) throw new Error(stderr.trim());
    return parseAllDocuments(stdout)
      .map((document) => {
        if (document.errors.length > 0) throw document.errors[0];
        return document.toJS();
      })
      .filter(Boolean);
  }

  lint(values) {
    const file = join(this.#folder, 'values.yaml');
    writeFileSync(file, stringify(values));
    return run(program('helm'), ['lint', '--strict', this.#file, '--values', file, '--kube-version', KUBERNETES]);
  }
}

const kubeconform = (manifests) =>
  run(program('kubeconform'), ['-strict', '-summary', '-schema-location', SCHEMA_LOCATION], { input: manifests });

function checkValueSets(chart, check) {
  for (const [name, values] of Object.entries(VALUE_SETS)) {
    const linted = chart.lint(values);
    check(linted.status === 0, `${name}: helm lint${linted.status === 0 ? '' : `: ${lastLines(linted)}`}`);
    const rendered = chart.render(values);
    check(rendered.status === 0, `${name}: helm template${rendered.status === 0 ? '' : `: ${rendered.stderr}`}`);
    const judged = kubeconform(rendered.stdout);
    check(
      judged.status === 0 && / Valid: [1-9]/.test(judged.stdout) && / Skipped: 0/.test(judged.stdout),
      `${name}: kubeconform: ${judged.stdout.trim()}${judged.stderr}`,
    );
    const found = /\blatest\b|password|-----BEGIN|postgres:\/\/|\btn[le]_/i.exec(rendered.stdout);
    check(found === null, `${name}: no "latest" and no secret in the manifests ${found?.[0] ?? ''}`);
    check(!/^kind: Secret$/m.test(rendered.stdout), `${name}: the chart creates no Secret`);
  }
}

/** kubeconform must find an unknown field, or its verdicts mean nothing. */
function checkJudge(chart, check) {
  const { stdout } = chart.render(VALUE_SETS.defaults);
  const wrong = kubeconform(stdout.replace('containerPort: 8080', 'containerPrt: 8080'));
  check(wrong.status !== 0 && / Invalid: 1/.test(wrong.stdout), 'kubeconform finds an unknown field');
}

function checkRefused(chart, check) {
  for (const [values, message] of REFUSED) {
    const { status, stderr } = chart.render(values);
    const isRight = status !== 0 && stderr.includes(message);
    check(isRight, `refused: ${JSON.stringify(values).slice(-70)} names ${message}${isRight ? '' : `: ${stderr}`}`);
  }
}

const namesOf = (objects) => objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
const workloadsOf = (objects) => objects.filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job'].includes(kind));
const podOf = (objects, kind, component) =>
  JSON.stringify(
    objects.find((one) => one.kind === kind && one.metadata.labels['app.kubernetes.io/component'] === component).spec
      .template,
  );

const ALL = VALUE_SETS['everything on'];
const NAME = /^[a-z][a-z0-9-]{0,50}[a-z0-9]$/;

/** Several releases in one namespace, with names that Kubernetes would refuse. */
function checkNames(chart, check) {
  const releases = ['hatchway', 'other', 'a.b', 'a-b', '1', 'x'.repeat(53), `${'x'.repeat(52)}y`, 'x-hatchway'];
  const byRelease = releases.map((release) => chart.objects(ALL, { release }));
  const names = byRelease.flatMap(namesOf);
  check(new Set(names).size === names.length, `${releases.length} releases in one namespace share no name`);
  const wrong = names.filter((name) => !NAME.test(name.split('/')[1]));
  check(wrong.length === 0, `names begin with a letter and leave room for the names of pods ${wrong.join(' ')}`);
  const labels = byRelease.flat().flatMap(({ metadata }) => Object.values(metadata.labels));
  check(
    labels.every((label) => typeof label === 'string' && label.length <= 63),
    'labels are texts of at most 63 characters',
  );
  const isSelected = workloadsOf(byRelease.flat())
    .filter(({ spec }) => spec.selector)
    .every(({ spec }) =>
      Object.entries(spec.selector.matchLabels).every(([key, value]) => spec.template.metadata.labels[key] === value),
    );
  check(isSelected, 'every workload selects its own pods');
}

/** What an upgrade with changed values restarts. */
function checkRestarts(chart, check) {
  const before = chart.objects(ALL);
  const restarted = (more) => {
    const after = chart.objects(merged(ALL, more));
    const parts = [
      ['StatefulSet', 'edge'],
      ['Deployment', 'platform'],
      ['Deployment', 'client'],
    ];
    return parts
      .filter(([kind, name]) => podOf(before, kind, name) !== podOf(after, kind, name))
      .map(([, name]) => name)
      .join();
  };
  const is = (more, expected) => {
    const found = restarted(more);
    check(found === expected, `${JSON.stringify(more)} restarts ${expected || 'nothing'} (${found})`);
  };
  is({ config: { capture: { bodies: true } } }, 'edge,platform');
  is({ config: { platform: { sign_up: 'closed' } } }, 'platform');
  is({ client: { tunnels: { web: { local_port: 3001 } } } }, 'client');
  is({ platform: { replicas: 5, service: { port: 8080 } } }, '');
  is({ edge: { service: { annotations: { a: 'c' } } } }, '');
}

/** Rules of Kubernetes that schemas do not contain. */
function checkObjects(chart, check) {
  const objects = chart.objects(ALL);
  const service = objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'hatchway-edge');
  check(service.metadata.annotations['example.test/odd'] === ODD_TEXT, 'odd characters stay as they are');
  for (const workload of workloadsOf(objects)) {
    const { spec } = workload.spec.template;
    const { securityContext: pod } = spec;
    const { securityContext: own } = spec.containers[0];
    const isRestricted =
      pod.runAsNonRoot === true &&
      pod.seccompProfile.type === 'RuntimeDefault' &&
      own.allowPrivilegeEscalation === false &&
      own.readOnlyRootFilesystem === true &&
      own.capabilities.drop.join() === 'ALL' &&
      spec.volumes.every((volume) => volume.hostPath === undefined) &&
      spec.automountServiceAccountToken === false;
    check(isRestricted && !spec.hostNetwork, `${workload.metadata.name} meets restricted Pod Security`);
  }
  const { spec } = objects.find(({ kind }) => kind === 'StatefulSet').spec.template;
  check(spec.terminationGracePeriodSeconds === 15, 'the grace period of the edge is drainSeconds + 10');
}

const SECRETS = {
  TUNNEL_DATABASE__URL: 'postgres://db',
  TUNNEL_PLATFORM__MAIL__SMTP_URL: 'smtp://mail',
  TUNNEL_PLATFORM__BILLING__STRIPE_SECRET_KEY: 'sk_test_x',
  TUNNEL_PLATFORM__BILLING__STRIPE_WEBHOOK_SECRET: 'whsec_x',
  TUNNEL_API_KEY: 'x',
  GROUP_KEY: 'x',
};

/** Every config file of every value set, as the server and the client read them. */
function checkConfigs(chart, folder, check) {
  const names = ['tunnels.test', 'fra.tunnels.test', 'console.test'].flatMap((name) => [name, `*.${name}`]);
  const files = certificateFor(folder, 'any', names);
  for (const mount of ['tls', 'platform-tls', 'ca'].map((name) => join(folder, 'etc/tunnel', name))) {
    mkdirSync(mount, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(mount, name), text);
  }
  for (const [name, values] of Object.entries(VALUE_SETS)) {
    for (const { kind, metadata, data } of chart.objects(values)) {
      if (kind !== 'ConfigMap') continue;
      const [[file, text]] = Object.entries(data);
      const path = join(folder, file);
      writeFileSync(path, text.replaceAll('/etc/tunnel', `${folder}/etc/tunnel`));
      const part = /-(edge|platform|client)$/.exec(metadata.name)[1];
      const args =
        part === 'client'
          ? ['apps/cli/bin/tunnel.mjs', 'check', '--config', path]
          : ['apps/server/bin/tunnel-server.mjs', 'check-config', '--for', part, '--config', path];
      const checked = run(process.execPath, args, { env: { PATH: process.env.PATH, HOME: folder, ...SECRETS } });
      check(checked.status === 0, `${name}: ${file} of the ${part}: ${lastLines(checked, 1)}`);
    }
  }
}

function checkWorkflows(check) {
  const linted = run(program('actionlint'), ['-no-color']);
  check(linted.status === 0, `actionlint: ${linted.status === 0 ? 'no finding' : lastLines(linted, 20)}`);
}

const EXPOSURE_MAX = 2.5;

function checkUnits(folder, check, say) {
  if (isMissing('systemd-analyze')) return say('skipped: the units, because systemd-analyze is not found');
  for (const unit of readdirSync(join(ROOT, 'deploy/systemd'))) {
    const path = join(ROOT, 'deploy/systemd', unit);
    const verified = run('systemd-analyze', ['verify', path]);
    const findings = verified.stderr
      .split('\n')
      .filter((line) => line.includes(unit) && !/is not executable: No such file/.test(line));
    check(findings.length === 0, `${unit}: systemd-analyze verify ${findings.join('; ')}`);
    const scored = run('systemd-analyze', ['security', '--offline=true', path]);
    const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(scored.stdout)?.[1]);
    check(exposure <= EXPOSURE_MAX, `${unit}: exposure ${exposure}, at most ${EXPOSURE_MAX}`);
  }
}

/** Reason why the containers cannot be started, or null. */
function containersMissing() {
  if (process.platform !== 'linux' || process.getuid() !== 0)
    return 'this needs Linux and root for a network namespace';
  if (!existsSync(join(ROOT, 'deploy/container/Containerfile'))) return 'deploy/container/Containerfile is not found';
  const needed = [['openssl', ['version']], ['ip', ['-V']], ['unshare'], ['setpriv']];
  const missing = needed.find(([command, args]) => isMissing(command, args));
  if (missing === undefined) return missingPrograms();
  return `${missing[0]} is not found`;
}

/** Starts the containers of two installations: without TLS, and with everything. */
function runContainers(chart, folder, check) {
  const plain = merged(VALUE_SETS.defaults, {
    edge: { drainSeconds: 5 },
    client: { ...VALUE_SETS.client.client, tls: false },
  });
  const bwrap = join(unpackPrograms('bubblewrap'), 'usr/bin/bwrap');
  const manifests = join(folder, 'manifests.json');
  writeFileSync(
    manifests,
    JSON.stringify({
      'without TLS': chart.objects(plain),
      'everything on': chart.objects(VALUE_SETS['everything on']),
    }),
  );
  const { status } = spawnSync(
    'unshare',
    ['--net', process.execPath, join(ROOT, 'tests/tools/helm/lib/run-in-network.mjs')],
    { cwd: ROOT, stdio: ['ignore', 1, 2], env: { ...process.env, HELM_MANIFESTS: manifests, HELM_BWRAP: bwrap } },
  );
  check(status === 0, 'the containers of both installations');
}

async function main({ values, say, check }) {
  const installed = installGoPrograms(BIN, PROGRAMS);
  if (installed !== 'ready') throw new Error('Helm, kubeconform and actionlint could not be installed with Go');
  makeSchemas();
  mkdirSync(join(CACHE_DIR, 'helm'), { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-try-helm-'));
  try {
    const file = makeChart(folder, check);
    const chart = new Chart(file, folder);
    checkValueSets(chart, check);
    checkJudge(chart, check);
    checkRefused(chart, check);
    checkNames(chart, check);
    checkRestarts(chart, check);
    checkObjects(chart, check);
    if (isMissing('openssl', ['version'])) say('skipped: the config files, because openssl is not found');
    else checkConfigs(chart, folder, check);
    checkWorkflows(check);
    checkUnits(folder, check, say);
    const reason = values.static ? '--static' : containersMissing();
    if (reason === null) runContainers(chart, folder, check);
    else say(`skipped: the containers, ${reason}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return `${Object.keys(VALUE_SETS).length} value sets, ${REFUSED.length} refused`;
}

if (isMissing('go', ['version'])) console.log('skipped: Go is not found, and Helm is installed with it');
else await runScript({ name: 'the Helm chart', usage: USAGE, options: { static: false }, limitSecs: () => 2400 }, main);
