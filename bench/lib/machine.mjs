// Describes the conditions of a run besides our code: machine, system and versions.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';

export function describeMachine() {
  const processors = cpus();
  return {
    cores: processors.length,
    model: processors[0]?.model.trim() ?? 'unknown',
    architecture: arch(),
    memoryGib: Math.round((totalmem() / 1024 ** 3) * 10) / 10,
    kernel: release(),
    system: systemName(),
    /** Load before the start. A value above about 0.3 means that other programs were running, which widens the ranges. */
    loadBefore: Math.round(loadavg()[0] * 100) / 100,
  };
}

function systemName() {
  try {
    return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}

export function describeVersions({ node, nginx, wrk }) {
  const others = { nginx: nginx.version ?? null, wrk: wrk.version ?? null };
  return { ours: ourVersion(), node: versionOf(node), load: process.version, ...others };
}

export const versionOf = (node) => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? null;

function ourVersion() {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  const commit = git('rev-parse', '--short', 'HEAD');
  if (commit.status !== 0) return version;
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', 'packages', 'apps').stdout !== '';
  return `${version} (${commit.stdout.trim()}${changed ? ' and changes' : ''})`;
}
