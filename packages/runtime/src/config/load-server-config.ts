// server.toml, the environment and flags, laid over the defaults: one checked and frozen value.
import { deepFreeze } from './deep-freeze.ts';
import { envLayer } from './env-layer.ts';
import { mergeLayers, namedLayer } from './layer.ts';
import { refuseFinding, refuseIssues } from './refuse.ts';
import { serverFindings } from './server/cross-checks.ts';
import { BUILT_IN_PLANS } from './server/platform-schema.ts';
import { type ServerConfig, serverFileSchema } from './server/schema.ts';
import { tomlLayer } from './toml-layer.ts';

export interface ServerConfigSources {
  /** Absent: `defaults`, the environment and `overrides` alone. */
  readonly file?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Laid below the file, above the built-in defaults. */
  readonly defaults?: object;
  /** Laid above all: the flags of the command line. */
  readonly overrides?: object;
}

/** Throws a `ConfigProblem` for the first thing that is wrong. */
export const loadServerConfig = (sources: ServerConfigSources): ServerConfig => {
  const layers = [
    namedLayer('built-in defaults', { platform: { plans: BUILT_IN_PLANS } }),
    namedLayer('defaults', sources.defaults ?? {}),
    ...(sources.file === undefined ? [] : [tomlLayer(sources.file)]),
    envLayer(serverFileSchema, sources.env),
    namedLayer('command line', sources.overrides ?? {}),
  ];
  const source = { schema: serverFileSchema, layers, merged: mergeLayers(layers) };
  const parsed = serverFileSchema.safeParse(source.merged);
  if (!parsed.success) throw refuseIssues(source, parsed.error.issues);
  const config = deepFreeze(parsed.data);
  const [finding] = serverFindings(config);
  if (finding !== undefined) throw refuseFinding(source, finding);
  return config;
};
