// Debian's Prometheus, unpacked into .cache: checks of rules by promtool, and a server on loopback that scrapes the stack.
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';
import { unpackPrograms } from '../../lib/debian.mjs';
import { until } from '../../lib/until.mjs';
import { MONITORING } from './dashboards.mjs';

const HOST = '127.0.0.1';
const LISTENING = '0A';

const program = (name) => join(unpackPrograms('prometheus'), 'usr/bin', name);

export function promtool(...args) {
  const { status, stdout, stderr } = spawnSync(program('promtool'), args, { cwd: MONITORING, encoding: 'utf8' });
  return { isRight: status === 0, output: `${stdout}${stderr}`.trim() };
}

/**
 * deploy/monitoring/prometheus.yml with the addresses of this run, and with the job that the file has as a comment.
 * @param {{ edge: string, platform: string, tokenFile: string, scrapeSecs: number }} run
 */
export function configFor(text, { edge, platform, tokenFile, scrapeSecs }) {
  const config = parse(text.replaceAll(/^# {2}/gm, '  '));
  const targets = { 'hatchway-edge': edge, 'hatchway-platform': platform };
  for (const job of config.scrape_configs) {
    job.static_configs = [{ targets: [targets[job.job_name]] }];
    if (job.authorization) job.authorization = { credentials_file: tokenFile };
  }
  config.global = { scrape_interval: `${scrapeSecs}s`, evaluation_interval: `${scrapeSecs}s` };
  return config;
}

export class Prometheus {
  #child;
  #port;

  /** Starts a server with the configuration and the rules of deploy/monitoring. */
  static async start(run) {
    const folder = throwAwayFolder();
    const text = readFileSync(join(MONITORING, 'prometheus.yml'), 'utf8');
    writeFileSync(join(folder, 'prometheus.yml'), stringify(configFor(text, run)));
    copyFileSync(join(MONITORING, 'alerts.yml'), join(folder, 'alerts.yml'));
    const port = await freePort();
    const child = startChild({
      name: 'prometheus',
      command: program('prometheus'),
      args: [
        ...['--config.file', join(folder, 'prometheus.yml'), '--storage.tsdb.path', join(folder, 'data')],
        ...['--web.listen-address', `${HOST}:${port}`, '--log.level', 'warn'],
      ],
      cwd: folder,
    });
    const server = new Prometheus(child, port);
    const isReady = () => server.#ask('/-/ready').then(({ ok }) => ok);
    await Promise.race([until('Prometheus is ready', () => isReady().catch(() => false)), failAtExit(child)]);
    return server;
  }

  constructor(child, port) {
    this.#child = child;
    this.#port = port;
  }

  /** The addresses on which the port is open, as in the kernel's tables. */
  get listensOn() {
    const port = `:${this.#port.toString(16).toUpperCase().padStart(4, '0')}`;
    return ['tcp', 'tcp6'].flatMap((table) =>
      readFileSync(`/proc/net/${table}`, 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, , state]) => local?.endsWith(port) && state === LISTENING)
        .map(([, local]) => local.split(':')[0]),
    );
  }

  /** @returns {Promise<{ metric: Record<string, string>, value: [number, string] }[]>} */
  async query(query) {
    return (await this.#data('/api/v1/query', { query })).result;
  }

  /** @returns {Promise<{ metric: Record<string, string>, values: [number, string][] }[]>} */
  async range(query, { start, end, step }) {
    return (await this.#data('/api/v1/query_range', { query, start, end, step })).result;
  }

  /** The names of all stored series. */
  names() {
    return this.#data('/api/v1/label/__name__/values');
  }

  async targets() {
    return (await this.#data('/api/v1/targets')).activeTargets;
  }

  async rules() {
    return (await this.#data('/api/v1/rules', { type: 'alert' })).groups.flatMap(({ rules }) => rules);
  }

  close() {
    return stopChild(this.#child, 'SIGTERM');
  }

  async #data(path, parameters = {}) {
    const answer = await this.#ask(`${path}?${new URLSearchParams(parameters)}`);
    const { status, error, data } = await answer.json();
    if (status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${error}`);
    return data;
  }

  #ask(path) {
    return fetch(`http://${HOST}:${this.#port}${path}`);
  }
}
