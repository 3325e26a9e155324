// The tunnel described by a command line: its entry for config.yml, and its spec for the client.
import { statSync } from 'node:fs';
import { type ClientSpec, localLabel } from '@tunnel/client';
import type { ClientTunnel } from '@tunnel/config/client';
import { pathFrom, readGroupKeyFile } from '@tunnel/config/layers';
import { Secret } from '@tunnel/runtime';
import { defaultOf, hasOption, OPTION_KEYS, type OptionKey, type Proto, specOfEntry } from '@tunnel/tunnel-spec';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import type { EntryKeys } from './entries.ts';
import type { KindName } from './kinds.ts';
import { type TypedTarget, targetEntry } from './local-target.ts';
import { guardEntryOf, guardSpecOf, type HttpGuardFlags } from './policy-flags.ts';
import { entryOfFlags, type FlagEntry } from './tunnel-flags.ts';

/** Flags with a meaning beyond the config key that they set. All other flags are handled by their option row. */
export interface TunnelFlags extends HttpGuardFlags {
  readonly name?: string;
  readonly https?: boolean;
  readonly localHost?: string;
  readonly subdomain?: string;
  readonly domain?: string;
  readonly group?: string;
  readonly groupKeyFile?: string;
  readonly groupKeyEnv?: string;
  readonly health?: { readonly type: 'tcp' | 'http' };
  readonly healthAnyStatus?: boolean;
  readonly healthInterval?: number;
  readonly healthTimeout?: number;
  readonly healthMaxFailed?: number;
}

/** Local target of a tunnel: a port or socket, or the path of a folder as a string. */
export type Target = TypedTarget | string;

type TunnelIo = Pick<Io, 'env' | 'cwd' | 'home'>;

export interface DescribedTunnel {
  readonly spec: ClientSpec & { readonly name: string };
  /**
   * Returns the tunnel's entry for config.yml, without defaults. Secrets stay in their file or variable, which the entry names. Throws a
   * Fault.
   */
  readonly entry: () => EntryKeys;
}

/** Converts a command line to a tunnel. Throws a Fault or a ConfigProblem that names the flags. */
export const describeTunnel = (kind: KindName, target: Target, flags: TunnelFlags, io: TunnelIo): DescribedTunnel => {
  if (kind === 'tls') checkTlsFlags(flags);
  const leadsTo =
    typeof target === 'string' ? { files: { dir: folderOf(target, io) } } : targetEntry(target, flags.localHost, io);
  const proto = protoOf(kind, target, flags);
  checkHostFlags(flags);
  const groupKey = findGroupKey(flags, io);
  checkHealthFlags(flags);
  const entry = withoutDefaults(proto, joined(leadsTo, entryOfFlags(kind, { ...flags }, io)));
  const { policy: _read, ...keys } = entry;
  const spec = {
    ...specOfEntry({ proto, ...keys, group_key: groupKey }),
    // A host beside a socket is passed on, so that the client rejects the combination.
    ...(keys.local_host === undefined ? {} : { local_host: keys.local_host }),
    ...guardSpecOf(flags, io),
  } as ClientSpec;
  return {
    spec: { ...spec, name: flags.name ?? `${kind}-${localLabel(spec)}` },
    entry: () => ({ proto, ...(keys as EntryKeys), ...guardEntryOf(flags, io) }),
  };
};

/** Returns an entry as if read from config.yml: with the defaults of its protocol. */
export const filledEntry = (proto: Proto, entry: FlagEntry): ClientTunnel => {
  const keys = OPTION_KEYS.filter((key) => hasOption(proto, key));
  return { proto, ...Object.fromEntries(keys.map((key) => [key, entry[key] ?? defaultOf(key)])) } as ClientTunnel;
};

const protoOf = (kind: KindName, target: Target, { https = false }: TunnelFlags): Proto => {
  if (kind === 'files' || typeof target === 'string') return 'http';
  if (kind !== 'http') return kind;
  if (target.scheme === 'http' && https) throw misuse('use an https:// URL, or leave out --https.');
  return target.scheme === 'https' || https ? 'https' : 'http';
};

/**
 * Returns the path of the folder to publish. On the command line the folder must exist already. A folder in config.yml may be mounted
 * later than the client starts.
 */
const folderOf = (given: string, io: TunnelIo): string => {
  const dir = pathFrom(io.cwd, given, io.home);
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined) throw misuse(`the folder ${dir} does not exist.`);
  if (!stat.isDirectory()) throw misuse(`${dir} is not a folder.`);
  return dir;
};

const isTable = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Merges two entries. A nested table in both entries gets the keys of both tables. */
const joined = (one: FlagEntry, other: FlagEntry): FlagEntry => {
  const both: Partial<Record<OptionKey, unknown>> = { ...one };
  for (const [key, value] of Object.entries(other) as [OptionKey, unknown][]) {
    const known = one[key];
    both[key] = isTable(known) && isTable(value) ? { ...known, ...value } : value;
  }
  return both;
};

/** Leaves out default values, keys of other protocols, and the permission for a control socket if the tunnel has no socket. */
const withoutDefaults = (proto: Proto, entry: FlagEntry): FlagEntry =>
  Object.fromEntries(
    Object.entries(entry).filter(
      ([key, value]) =>
        hasOption(proto, key as OptionKey) &&
        // A host beside a socket is kept even if it is the default host, so that the combination is rejected.
        (value !== defaultOf(key as OptionKey) || (key === 'local_host' && entry.local_socket !== undefined)) &&
        (key !== 'allow_control_socket' || entry.local_socket !== undefined),
    ),
  );

const checkTlsFlags = ({ domain, subdomain, group, health }: TunnelFlags): void => {
  // A tls tunnel in a group needs no subdomain, because the group's name is used as the subdomain.
  if (domain === undefined && subdomain === undefined && group === undefined) {
    throw misuse('a tls tunnel needs --subdomain or --domain, because visitors are routed by host name.');
  }
  if (health?.type === 'http') throw misuse('tls tunnels support only `--health tcp`.');
};

/** Throws a Fault if a tunnel has both a subdomain and a domain. */
export const checkHostFlags = ({ subdomain, domain }: Pick<TunnelFlags, 'subdomain' | 'domain'>): void => {
  if (subdomain !== undefined && domain !== undefined) throw misuse('use --domain or --subdomain, not both.');
};

const findGroupKey = (flags: TunnelFlags, io: TunnelIo): Secret | undefined => {
  const { group, groupKeyFile: file, groupKeyEnv: variable } = flags;
  if (file !== undefined && variable !== undefined) throw misuse('use --group-key-file or --group-key-env, not both.');
  const given = file === undefined ? variable : file;
  if (group !== undefined && given === undefined) throw misuse('--group needs --group-key-file or --group-key-env.');
  if (group === undefined && given !== undefined) throw misuse('a group key needs --group.');
  if (file !== undefined) {
    const answer = readGroupKeyFile(pathFrom(io.cwd, file, io.home));
    if ('key' in answer) return answer.key;
    throw misuse(`cannot read the group key from ${file}: ${answer.reason}.`);
  }
  if (variable === undefined) return undefined;
  const text = io.env[variable] ?? '';
  if (text === '') throw misuse(`the variable ${variable} is not set (--group-key-env).`);
  return new Secret(text);
};

/** Throws a Fault for a health flag that has no effect without `--health`, because the user expects an effect. */
const checkHealthFlags = ({ health, ...flags }: TunnelFlags): void => {
  if (flags.healthAnyStatus === true && health?.type !== 'http') {
    throw misuse('--health-any-status needs --health http:/path.');
  }
  if (health !== undefined) return;
  if (flags.healthInterval !== undefined) throw misuse('--health-interval needs --health.');
  if (flags.healthTimeout !== undefined) throw misuse('--health-timeout needs --health.');
  if (flags.healthMaxFailed !== undefined) throw misuse('--health-max-failed needs --health.');
};
