// Flags that describe a tunnel, derived from the option rows: the flags of a command, and the config entry for the typed flags.
import { pathFrom } from '@tunnel/config/layers';
import {
  defaultOf,
  type Flag,
  type FlagValue,
  OPTION_KEYS,
  type OptionKey,
  optionOf,
  type Proto,
  type TunnelCommand,
} from '@tunnel/tunnel-spec';
import { InvalidArgumentError, Option } from 'commander';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { FLAG_GROUPS, wholeNumber } from './flags.ts';

/** Flags parsed by commander, by the flag's name in camel case. */
export type TypedFlags = Readonly<Record<string, unknown>>;

/** Config keys of one tunnel, without `proto`, local target and secrets. */
export type FlagEntry = Readonly<Partial<Record<OptionKey, unknown>>>;

/** A flag and the config key that the flag sets. `field` is the key inside a nested table, or null. */
interface FlagRow {
  readonly key: OptionKey;
  readonly field: string | null;
  readonly flag: Flag;
}

const FLAG_ROWS: readonly FlagRow[] = OPTION_KEYS.flatMap((key) => {
  const { flag, fields = {} } = optionOf(key);
  const nested = Object.entries(fields).flatMap(([field, row]) =>
    row.flag === undefined ? [] : [{ key, field, flag: row.flag }],
  );
  return flag === undefined ? nested : [{ key, field: null, flag }, ...nested];
});

const PROTOS: Readonly<Record<TunnelCommand, readonly Proto[]>> = {
  http: ['http', 'https'],
  files: ['http'],
  tcp: ['tcp'],
  tls: ['tls'],
  udp: ['udp'],
  'p2p publish': ['p2p'],
  'p2p connect': ['p2p'],
};

const rowsOf = (command: TunnelCommand): readonly FlagRow[] =>
  FLAG_ROWS.filter(
    ({ key, flag }) =>
      flag.commands?.includes(command) !== false &&
      optionOf(key).protos.some((proto) => PROTOS[command].includes(proto)),
  );

const longOf = ({ key, field, flag }: FlagRow): string => `--${flag.long ?? (field ?? key).replaceAll('_', '-')}`;

/** Creates the flags of a command from the option rows. */
export const tunnelOptions = (command: TunnelCommand): Option[] =>
  rowsOf(command).map((row) => optionFor(row, command));

/** Returns the long names of the flags shown by a command's short help (`-h`). */
export const commonTunnelFlags = (command: TunnelCommand): string[] =>
  rowsOf(command)
    .filter(({ flag }) => flag.isCommon)
    .map(longOf);

const optionFor = (row: FlagRow, command: TunnelCommand): Option => {
  const { shown, value, help, helpFor, heading, choicesFor, showsDefault } = row.flag;
  const option = new Option(
    [longOf(row), ...(shown === undefined ? [] : [shown])].join(' '),
    helpFor?.[command] ?? help,
  );
  option.helpGroup(FLAG_GROUPS[heading]);
  // commander only displays the default. A flag that was not typed has no value.
  if (showsDefault) option.default(undefined, String(defaultOf(row.key)));
  if (value.kind === 'choice') option.choices(choicesFor?.[command] ?? value.values);
  const read = readerOf(value);
  if (read !== null) option.argParser(read as (text: string, before: unknown) => unknown);
  return option.makeOptionMandatory(value.kind === 'listen');
};

/** Values from earlier uses of the same flag. */
type Before = readonly string[] | undefined;

/** Returns the parser for a flag's text, or null if the text is the value. */
const readerOf = (value: FlagValue): ((text: string, before: Before) => unknown) | null => {
  if (value.kind === 'whole') return wholeNumber(value.from, value.to);
  if (value.kind === 'seconds') return seconds(value.to);
  if (value.kind === 'probe') return probe;
  if (value.kind === 'listen') return listenAddress;
  return value.kind === 'named ports' ? repeated : null;
};

const seconds =
  (most: number) =>
  (text: string): number => {
    const value = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0 && value <= most) return value;
    throw new InvalidArgumentError(`Use a number of seconds above 0, up to ${most}.`);
  };

const probe = (text: string): { type: 'tcp' } | { type: 'http'; path: string } => {
  if (text === 'tcp') return { type: 'tcp' };
  if (text.startsWith('http:/')) return { type: 'http', path: text.slice('http:'.length) };
  throw new InvalidArgumentError('Use tcp or http:/path.');
};

const LISTEN = /^(?:(?<host>\[[0-9a-fA-F:.%]+\]|[^\s:/@[\]]+):)?(?<port>\d{1,5})$/;

const listenAddress = (text: string): { listen_host?: string; listen_port: number } => {
  const { host, port = '' } = LISTEN.exec(text)?.groups ?? {};
  if (port === '' || Number(port) > 65_535) throw new InvalidArgumentError('Use 0-65535 or host:port.');
  return { ...(host === undefined ? {} : { listen_host: host.replace(/^\[|\]$/g, '') }), listen_port: Number(port) };
};

/** Adds one value for each use of a flag. A comma is part of the value. */
export const repeated = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

/** Converts typed flags to config keys, in the order of the option rows. Throws a Fault. */
export const entryOfFlags = (command: TunnelCommand, flags: TypedFlags, io: Pick<Io, 'cwd' | 'home'>): FlagEntry => {
  const entry: Record<string, unknown> = {};
  for (const row of rowsOf(command)) {
    const value = valueOf(row, flags, io);
    if (value === undefined) continue;
    if (row.flag.value.kind === 'listen') Object.assign(entry, value);
    else if (row.field === null) entry[row.key] = value;
    else
      entry[row.key] = {
        ...(entry[row.key] as object),
        ...(row.flag.value.kind === 'probe' ? (value as object) : { [row.field]: value }),
      };
  }
  return entry;
};

/** Returns the value of a flag, or undefined if the flag was not typed. */
const valueOf = (row: FlagRow, flags: TypedFlags, io: Pick<Io, 'cwd' | 'home'>): unknown => {
  const { value } = row.flag;
  const typed = flags[new Option(longOf(row)).attributeName()];
  if (value.kind === 'is') return typed === !longOf(row).startsWith('--no-') ? value.value : undefined;
  if (typed === undefined) return undefined;
  if (value.kind === 'path') return pathFrom(io.cwd, typed as string, io.home);
  return value.kind === 'named ports' ? servicesOf(typed as readonly string[]) : typed;
};

const servicesOf = (given: readonly string[]): Record<string, string> => {
  const services: Record<string, string> = {};
  for (const text of given) {
    const [, name = '', address = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (name === '') throw misuse(`'${text}' is not a service. Use --service name=port or name=host:port.`);
    if (Object.hasOwn(services, name)) throw misuse(`--service names ${name} twice.`);
    services[name] = address;
  }
  return services;
};
