// config.yml: one checked and frozen value, every refusal at its line.
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { clientFindings } from './client/cross-checks.ts';
import { pathFrom } from './client/file-path.ts';
import { type GroupKeySources, readGroupKey } from './client/group-keys.ts';
import { type ClientConfig, type ClientFile, type ClientTunnel, clientFileSchema } from './client/schema.ts';
import { deepFreeze } from './deep-freeze.ts';
import type { Layer } from './layer.ts';
import { type ConfigSource, refuseFinding, refuseIssues } from './refuse.ts';
import { yamlLayer } from './yaml-layer.ts';

export interface ClientConfigSources {
  readonly file: string;
  /** For `group_key_env`. */
  readonly env: NodeJS.ProcessEnv;
  /** For paths that begin with `~/`; the user's own when left out. */
  readonly home?: string;
}

/** Throws a `ConfigProblem` for the first thing that is wrong. */
export const loadClientConfig = (sources: ClientConfigSources): ClientConfig => {
  const layer = yamlLayer(sources.file);
  const source = { schema: clientFileSchema, layers: [layer], merged: layer.tree };
  const parsed = clientFileSchema.safeParse(layer.tree);
  if (!parsed.success) throw refuseIssues(source, parsed.error.issues);
  const findings = clientFindings(parsed.data).sort((a, b) => layer.line(a.path) - layer.line(b.path));
  if (findings[0] !== undefined) throw refuseFinding(source, findings[0]);
  const { file, env, home = homedir() } = sources;
  const pathOf = (path: string): string => pathFrom(dirname(file), path, home);
  return deepFreeze({ ...parsed.data, tunnels: finishTunnels(parsed.data, layer, source, { env, pathOf }) });
};

const finishTunnels = (
  file: ClientFile,
  layer: Layer,
  source: ConfigSource,
  keySources: GroupKeySources,
): Record<string, ClientTunnel> =>
  Object.fromEntries(
    Object.entries(file.tunnels).map(([name, entry]) => {
      const path = ['tunnels', name];
      const answer = readGroupKey(path, entry, keySources);
      if ('finding' in answer) throw refuseFinding(source, answer.finding);
      const groupKey = answer.key === undefined ? {} : { group_key: answer.key };
      return [name, { ...entry, ...groupKey, line: layer.line(path) }];
    }),
  );
