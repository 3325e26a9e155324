// The effect of a changed configuration on a running client: tunnels and peers to keep, to give another target or policy in place, to
// close, or to open. The option rows define the effect of a changed value.

import type { ReloadClass } from './option.ts';
import { hasOption, OPTION_KEYS, optionOf, SPEC_KEYS, type SpecKey, type TunnelSpec } from './tunnel-spec.ts';

/**
 * A config entry as plain data, with the keys of config.yml, with defaults, and with hashes instead of secrets. Entries with the same
 * meaning are equal.
 */
export type EntryFields = Readonly<Record<string, unknown>>;

/** Converts the value of an option to comparable plain data. Returns undefined for a value without any effect. */
type PlainValue = (value: never) => unknown;

const same = (value: unknown): unknown => value;

/**
 * Converts a spec to comparable entry fields: the options of the protocol with their defaults, without options that do not affect a
 * running tunnel.
 */
export const entryFields = (spec: TunnelSpec, plain: Partial<Record<SpecKey, PlainValue>>): EntryFields => {
  const keys = SPEC_KEYS.filter((key) => hasOption(spec.proto, key) && optionOf(key).reload !== 'same');
  // A local host without a port has no effect, so it is not compared.
  const asked = keys.filter((key) => key !== 'local_host' || spec.local_port !== undefined);
  const fields = asked.flatMap((key): [string, unknown][] => {
    const value = filledValue(key, spec[key]);
    const compared = value === undefined ? undefined : (plain[key] ?? same)(value as never);
    return compared === undefined ? [] : [[key, compared]];
  });
  return { proto: spec.proto, ...Object.fromEntries(fields) };
};

/** Returns a validated value with the defaults of its nested table, or the default value of an absent option. */
const filledValue = (key: SpecKey, value: unknown): unknown => {
  const parsed = optionOf(key).schema().safeParse(value);
  return parsed.success ? parsed.data : value;
};

export interface WantedEntry {
  readonly name: string;
  /** `peer` is a connection to a tunnel of another client. A changed peer is always closed and opened again. */
  readonly kind: 'tunnel' | 'peer';
  readonly fields: EntryFields;
}

export interface RunningEntry extends WantedEntry {
  /**
   * False if the tunnel was opened while the client was running. A reload keeps such a tunnel unless the file defines a tunnel with the
   * same name.
   */
  readonly isOfFile: boolean;
}

/**
 * Names of tunnels and peers by the step to take. A name is in at most one list. Tunnels opened while the client was running and absent
 * from the file are in no list.
 */
export interface ReloadPlan {
  readonly keep: readonly string[];
  readonly retarget: readonly string[];
  /** Tunnels with a changed policy or changed services, and possibly a changed target. The edge applies the change; connections stay. */
  readonly update: readonly string[];
  readonly reopen: readonly string[];
  readonly open: readonly string[];
  readonly close: readonly string[];
}

/** The outcome of a reload for people and programs: names of tunnels, and in `restart_required` the names of config keys. */
export interface ReloadOutcome {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  readonly unchanged: number;
  readonly restart_required: readonly string[];
}

/** Compares running and wanted entries, and plans the step for each entry. Names must be unique within each list. */
export const planReload = (running: readonly RunningEntry[], wanted: readonly WantedEntry[]): ReloadPlan => {
  const plan: Record<Exclude<keyof ReloadPlan, 'close'>, string[]> = {
    keep: [],
    retarget: [],
    update: [],
    reopen: [],
    open: [],
  };
  const before = new Map(running.map((entry) => [entry.name, entry]));
  for (const entry of wanted) plan[stepFor(before.get(entry.name), entry)].push(entry.name);
  const names = new Set(wanted.map(({ name }) => name));
  const close = running.filter(({ name, isOfFile }) => isOfFile && !names.has(name)).map(({ name }) => name);
  return { ...plan, close };
};

const stepFor = (before: RunningEntry | undefined, after: WantedEntry): Exclude<keyof ReloadPlan, 'close'> => {
  if (before === undefined) return 'open';
  if (before.kind !== after.kind) return 'reopen';
  if (isSame(before.fields, after.fields)) return 'keep';
  if (after.kind !== 'tunnel') return 'reopen';
  if (isRetarget(before.fields, after.fields)) return 'retarget';
  return isUpdate(before.fields, after.fields) ? 'update' : 'reopen';
};

/** Returns true if the entries differ only in policy, services and target. */
export const isUpdate = (before: EntryFields, after: EntryFields): boolean =>
  isRetarget(withPolicyOf(before, after), after);

/** Returns true if the entries differ in the target or the health check, apart from policy and services. */
export const hasOtherTarget = (before: EntryFields, after: EntryFields): boolean =>
  !isSame(withPolicyOf(before, after), after);

const keysOf = (reload: ReloadClass): readonly string[] => OPTION_KEYS.filter((key) => optionOf(key).reload === reload);

/** Tunnel options that the edge can change while the tunnel is open. */
const UPDATED: readonly string[] = keysOf('update');

const withPolicyOf = (fields: EntryFields, other: EntryFields): EntryFields => ({
  ...fields,
  ...Object.fromEntries(UPDATED.map((key) => [key, other[key]])),
});

/** Tunnel options used only by the client, such as the local target. */
const RETARGETED: readonly string[] = keysOf('retarget');

/** Returns true if the entries differ only in the target, so that the tunnel can stay open. */
export const isRetarget = (before: EntryFields, after: EntryFields): boolean => {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => !isSame(before[key], after[key]),
  );
  return changed.every((key) => {
    // With `host_header: rewrite` the edge writes the local address into every request, so a changed target must reach the edge.
    if (RETARGETED.includes(key)) return after['host_header'] !== 'rewrite';
    return key === 'health_check' && isSameToEdge(before[key], after[key]);
  });
};

/** Compares the health check keys known to the edge. The edge does not need the remaining keys, because the client runs the probes. */
const isSameToEdge = (before: unknown, after: unknown): boolean =>
  ['type', 'alert_webhook'].every((key) => isSame(fieldOf(before, key), fieldOf(after, key)));

const fieldOf = (value: unknown, key: string): unknown => (isTable(value) ? value[key] : undefined);

/** Config keys outside `tunnels` that a client reads only at startup. */
const RESTART_KEYS: readonly string[] = [
  'server',
  'tls',
  'ca_file',
  'insecure',
  'proxy',
  'proxy_auth_file',
  'auth_token',
  'auth_token_file',
  'log_file',
];

/**
 * Returns the changed keys that take effect only after a restart. `started` has the values from the client's start, because reloads do
 * not apply such keys.
 */
export const restartRequired = (started: EntryFields, now: EntryFields): string[] =>
  RESTART_KEYS.filter((key) => !isSame(started[key], now[key]));

export const reloadOutcome = (plan: ReloadPlan, restart_required: readonly string[]): ReloadOutcome => ({
  added: plan.open,
  removed: plan.close,
  changed: [...plan.retarget, ...plan.update, ...plan.reopen],
  unchanged: plan.keep.length,
  restart_required,
});

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Compares plain data deeply. A key with the value undefined counts as absent. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true;
  if (!isTable(one) || !isTable(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((key) => isSame(one[key], other[key]));
};
