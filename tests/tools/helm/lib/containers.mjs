// Runs the containers of rendered manifests as processes of this checkout, with bubblewrap: the image's user, environment and command, a
// read-only root, and the volumes that the manifests name. Namespaces for processes and networks are shared.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { dirname, join } from 'node:path';
import { startChild } from '../../../../bench/lib/children.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

const USER = 10_001;

const PROGRAMS = {
  'tunnel-server': join(ROOT, 'apps/server/bin/tunnel-server.mjs'),
  tunnel: join(ROOT, 'apps/cli/bin/tunnel.mjs'),
};

/** Environment and program of an image, from its Containerfile. */
function imageOf(name) {
  const target = /hatchway-(server|client):/.exec(name)[1];
  const text = readFileSync(join(ROOT, 'deploy/container/Containerfile'), 'utf8').replaceAll('\\\n', ' ');
  const stages = Object.fromEntries(
    text
      .split(/^FROM /m)
      .slice(1)
      .map((stage) => [/ AS (\S+)/.exec(stage)[1], stage]),
  );
  const env = ['base', target].flatMap((stage) => [...stages[stage].matchAll(/^ENV (.*)$/gm)].map(([, line]) => line));
  const entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(stages[target])[1]);
  return {
    env: Object.fromEntries(
      env
        .join(' ')
        .trim()
        .split(/\s+/)
        .map((pair) => pair.split('=')),
    ),
    program: entrypoint.at(-1),
  };
}

/** Folders above mounts, outermost first: bubblewrap would make them for root only. */
function foldersAbove(paths) {
  const folders = new Set();
  for (const path of paths) {
    const names = path.split('/').slice(1, -1);
    for (const count of names.keys()) folders.add(`/${names.slice(0, count + 1).join('/')}`);
  }
  return [...folders].filter((path) => !paths.includes(path));
}

export class Cluster {
  /** Objects by kind and name, and Secrets by name: { key: text }. */
  #objects = new Map();
  secrets = {};
  #folder;
  #bwrap;

  /** `hosts`: names that lead to 127.0.0.1, as Services and DNS records would. `bwrap`: path of bubblewrap. */
  constructor(folder, { hosts, bwrap }) {
    this.#folder = folder;
    this.#bwrap = bwrap;
    mkdirSync(folder);
    this.#write('etc/hosts', `127.0.0.1 localhost ${hosts.join(' ')}\n`);
    this.#write('etc/passwd', `tunnel:x:${USER}:${USER}:Hatchway:/data:/usr/sbin/nologin\n`);
    this.#write('etc/group', `tunnel:x:${USER}:\n`);
    this.#write('etc/nsswitch.conf', 'hosts: files\n');
    for (const [name, path] of Object.entries(PROGRAMS))
      this.#write(`bin/${name}`, `#!/bin/sh\nexec '${process.execPath}' '${path}' "$@"\n`, 0o755);
  }

  apply(objects) {
    for (const object of objects) this.#objects.set(`${object.kind}/${object.metadata.name}`, object);
  }

  get(kind, name) {
    const found = this.#objects.get(`${kind}/${name}`);
    if (found === undefined) throw new Error(`the chart has no ${kind} ${name}`);
    return found;
  }

  /** Starts the container of a workload. */
  start(workload) {
    const { container, command } = this.#commandOf(workload);
    const child = startChild({ name: container.name, ...command(container.args) });
    return { ...child, child, pod: workload.spec.template.spec, container };
  }

  /** Runs another program in the container, as `kubectl exec` and exec probes do. */
  exec(workload, args, input = '') {
    const { command } = this.#commandOf(workload);
    const { command: bwrap, args: all } = command(null, args);
    return spawnSync(bwrap, all, { encoding: 'utf8', input });
  }

  #commandOf(workload) {
    const { spec } = workload.spec.template;
    const [container] = spec.containers;
    const image = imageOf(container.image);
    const env = { PATH: '/opt/bin:/usr/bin', ...image.env };
    for (const variable of container.env ?? []) env[variable.name] = variable.value ?? this.#secretOf(variable);
    const mounts = [
      ['--ro-bind', ROOT, ROOT],
      ['--ro-bind', dirname(dirname(process.execPath)), dirname(dirname(process.execPath))],
      ...['hosts', 'passwd', 'group', 'nsswitch.conf'].map((name) => [
        ...['--ro-bind', join(this.#folder, 'etc', name), `/etc/${name}`],
      ]),
      ['--ro-bind', join(this.#folder, 'bin'), '/opt/bin'],
      ...container.volumeMounts.map((mount) => this.#mountOf(workload, mount)),
    ];
    const isReadOnly = container.securityContext.readOnlyRootFilesystem === true;
    const command = (args, other) => ({
      command: this.#bwrap,
      args: [
        ...['--ro-bind', '/usr', '/usr'],
        ...['lib', 'lib64', 'bin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
        ...['--proc', '/proc', '--dev', '/dev'],
        ...foldersAbove(mounts.map(([, , path]) => path)).flatMap((path) => ['--perms', '0755', '--dir', path]),
        ...mounts.flat(),
        ...(isReadOnly ? ['--remount-ro', '/'] : []),
        ...['--chdir', '/data', '--die-with-parent', '--clearenv'],
        ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
        ...['setpriv', `--reuid=${spec.securityContext.runAsUser}`, `--regid=${spec.securityContext.runAsGroup}`],
        ...['--clear-groups', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'],
        ...(other ?? [image.program, ...args]),
      ],
    });
    return { container, command };
  }

  #secretOf({ name, valueFrom: { secretKeyRef } }) {
    const value = this.secrets[secretKeyRef.name]?.[secretKeyRef.key];
    if (value === undefined) throw new Error(`${name}: no key ${secretKeyRef.key} in Secret ${secretKeyRef.name}`);
    return value;
  }

  #mountOf(workload, { name, mountPath, subPath, readOnly = false }) {
    const path = this.#volumeOf(workload, name);
    return [readOnly ? '--ro-bind' : '--bind', subPath === undefined ? path : join(path, subPath), mountPath];
  }

  /** The folder of a volume, with the owner and modes that Kubernetes gives its files with fsGroup. */
  #volumeOf(workload, name) {
    const { metadata, spec } = workload;
    const group = spec.template.spec.securityContext.fsGroup;
    const own = join('volumes', metadata.name, name);
    const volume = spec.template.spec.volumes.find((one) => one.name === name);
    if (volume?.configMap !== undefined) {
      const { data } = this.get('ConfigMap', volume.configMap.name);
      for (const [file, text] of Object.entries(data)) this.#write(join(own, file), text, 0o644);
    } else if (volume?.secret !== undefined) {
      const { secretName, items, defaultMode = 0o644 } = volume.secret;
      const secret = this.secrets[secretName];
      if (secret === undefined) throw new Error(`no Secret ${secretName}`);
      for (const { key, path } of items ?? Object.keys(secret).map((one) => ({ key: one, path: one }))) {
        if (secret[key] === undefined) throw new Error(`no key ${key} in Secret ${secretName}`);
        this.#write(join(own, path), secret[key], defaultMode | 0o040, group);
      }
    } else {
      const isClaim = spec.volumeClaimTemplates?.some((claim) => claim.metadata.name === name) === true;
      if (!isClaim && volume?.emptyDir === undefined) throw new Error(`${metadata.name} has no volume ${name}`);
      const folder = join(this.#folder, own);
      if (!existsSync(folder)) {
        mkdirSync(folder, { recursive: true });
        chownSync(folder, 0, group);
        chmodSync(folder, isClaim ? 0o2775 : 0o2777);
      }
    }
    return join(this.#folder, own);
  }

  #write(path, text, mode = 0o644, group = 0) {
    const file = join(this.#folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    chownSync(file, 0, group);
    chmodSync(file, mode);
  }
}

/** Calls the probe of a container once. Returns a text about a failure, or null. */
export async function probe(cluster, workload, { httpGet, exec, timeoutSeconds }) {
  if (exec !== undefined) {
    const { status, stderr } = cluster.exec(workload, exec.command);
    return status === 0 ? null : `exit code ${status}: ${stderr.trim()}`;
  }
  const [container] = workload.spec.template.spec.containers;
  const port = container.ports.find(({ name }) => name === httpGet.port).containerPort;
  const request = httpGet.scheme === 'HTTPS' ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    request({ port, path: httpGet.path, rejectUnauthorized: false, timeout: timeoutSeconds * 1000, host: '127.0.0.1' })
      .on('response', (response) => {
        response.resume();
        resolve(response.statusCode < 400 ? null : `status ${response.statusCode}`);
      })
      .on('timeout', () => resolve(`no answer in ${timeoutSeconds} s`))
      .on('error', (error) => resolve(error.message))
      .end();
  });
}
